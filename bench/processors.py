"""Classes of processors by their instructions for products of bytes. Results of different classes are kept apart."""

import os
import platform
from pathlib import Path

VNNI, AVX2, ARM = "vnni", "avx2", "arm"
CLASSES = (VNNI, AVX2, ARM)
CPUINFO = Path("/proc/cpuinfo")


def cpu_fields() -> dict[str, str]:
    """Return what Linux reports about the last core, by name; empty on other systems."""
    lines = CPUINFO.read_text().splitlines() if CPUINFO.exists() else []
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines if ":" in line)}


def processor_class() -> str:
    """Return the class of the processor that this process sees."""
    if platform.machine() in ("aarch64", "arm64"):
        return ARM
    has_vnni = {"avx512_vnni", "avx_vnni"} & set(cpu_fields().get("flags", "").split())
    return VNNI if has_vnni else AVX2


def cpu_name() -> str:
    """Return the processor's name as Linux reports it, its cores, and its instructions for 8-bit products."""
    fields = cpu_fields()
    flags = fields.get("flags", fields.get("Features", "")).split()
    widest = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "asimddp", "i8mm") if flag in flags]
    return f"{fields.get('model name', platform.processor())} ({os.cpu_count()} cores; {', '.join(widest)})"
