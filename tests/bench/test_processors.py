"""The class of a processor."""

import platform
from pathlib import Path

import pytest

from bench import processors
from bench.processors import ARM, AVX2, VNNI, cpu_name, processor_class


@pytest.mark.parametrize(
    ("machine", "cpuinfo", "expected", "shown"),
    [
        ("x86_64", "model name\t: A\nflags\t\t: avx2 avx512f avx512_vnni", VNNI, "avx2, avx512f, avx512_vnni"),
        ("x86_64", "model name\t: A\nflags\t\t: avx2 avx_vnni", VNNI, "avx2, avx_vnni"),
        ("x86_64", "model name\t: A\nflags\t\t: avx2 avx512f", AVX2, "avx2, avx512f"),
        ("aarch64", "Features\t: fp asimddp i8mm", ARM, "asimddp, i8mm"),
    ],
    ids=["AVX-512 VNNI", "AVX-VNNI", "AVX-512 alone", "Arm"],
)
def test_a_processor_is_of_the_class_of_its_products_of_bytes(
    machine: str, cpuinfo: str, expected: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{cpuinfo}\n")
    monkeypatch.setattr(processors, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert processor_class() == expected
    assert f"; {shown})" in cpu_name()
