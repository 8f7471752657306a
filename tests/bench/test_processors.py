"""The class of a processor, and the library that hides instructions: what NumPy finds without and with it."""

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import environments, processors
from bench.environments import hide_instructions
from bench.processors import ARM, AVX2, HIDING, VNNI, cpu_name, processor_class
from bench.report import Missing

FEATURES = """
import json
from numpy._core._multiarray_umath import __cpu_features__ as features
from bench.processors import cpu_name, processor_class
print(json.dumps([features, processor_class(), cpu_name()]))
"""


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
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    assert processor_class() == expected
    assert f"; {shown})" in cpu_name()


def test_hidden_instructions_are_found_by_no_library_and_the_result_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("cc") is None or "cpuid_fault" not in processors.cpu_fields().get("flags", "").split():
        pytest.skip("no C compiler, or a processor that cannot fault at CPUID")
    started: list[dict[str, str]] = []
    monkeypatch.setattr("os.execve", lambda path, words, variables: started.append(variables))
    hide_instructions(tmp_path)
    done = subprocess.run([sys.executable, "-c", FEATURES], env=started[0], capture_output=True, text=True, check=True)
    features, processor, name = json.loads(done.stdout)
    assert features["AVX2"]
    assert [feature for feature, is_there in features.items() if is_there and feature.startswith("AVX512")] == []
    assert (processor, "newer instructions hidden" in name) == (AVX2, True)


def test_a_machine_that_cannot_hide_instructions_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "cpu_fields", dict)
    with pytest.raises(
        Missing, match=r"^--avx2 needs a C compiler, and a processor with `cpuid_fault` in /proc/cpuinfo"
    ):
        hide_instructions(tmp_path)
    assert not (tmp_path / HIDING).exists()
