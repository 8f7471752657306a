"""The same answers on other processors, emulated by QEMU: one with AVX2 and no AVX-512, and an arm64 one.

Lambda promises neither AVX-512 nor which of its arm64 processors a function gets.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.image.docker import LIKE_LAMBDA, docker, run
from tests.image.sources import REQUESTS, SOURCES, last_line
from tests.project import ROOT

EVENT = SOURCES["http-api"](REQUESTS["similar"])
# Tells of the processor, and answers one event. What it logs comes first.
ASK = """
import json, platform, sys
from numpy._core._multiarray_umath import __cpu_features__ as features
from function.handler import handler
reply = handler(json.load(sys.stdin), None)
print("\\n" + json.dumps([platform.machine(), [name for name in features if features[name]], reply]))
"""
DIGITS = 5e-6  # tolerance of a score: replies have six digits, and the last may be rounded the other way
# Tolerance of a score on arm64. Sums of floats end differently there, which now and then tips a rounding to 14 bits.
# Passages whose scores are as near to each other may change places.
NEAR_ON_ARM64 = 1e-3


def emulator(name: str) -> str:
    """Return the path of QEMU's static emulator of one kind of processor; skip the test if there is none."""
    found = shutil.which(f"qemu-{name}-static")
    if found is None:
        pytest.skip(f"there is no qemu-{name}-static on this machine; Debian has it in qemu-user-static")
    return found


def assert_same_answer(found: dict[str, Any], answer: Callable[[Any], Any], near: float) -> None:
    (wanted,) = answer([EVENT])
    assert found["statusCode"] == wanted["statusCode"] == 200
    results, expected = (json.loads(reply["body"])["results"] for reply in (found, wanted))
    scores = {result["id"]: result["score"] for result in expected}
    assert {result["id"]: result["score"] for result in results} == pytest.approx(scores, abs=near)
    for better, worse in pairwise(results):
        assert better["score"] >= worse["score"]
        assert scores[better["id"]] > scores[worse["id"]] - 2 * near


def test_a_processor_without_avx512_answers_alike(image: str, answer: Callable[[Any], Any]) -> None:
    qemu = ("--volume", f"{emulator('x86_64')}:/usr/bin/qemu:ro", "--entrypoint", "/usr/bin/qemu")
    haswell = ("-cpu", "Haswell", "/var/lang/bin/python3.13", "-c", ASK)
    printed = docker("run", "--rm", "-i", *LIKE_LAMBDA, *qemu, image, *haswell, text=json.dumps(EVENT))
    machine, features, found = last_line(printed)
    assert machine == "x86_64"
    assert "AVX2" in features
    assert not [name for name in features if name.startswith("AVX512")]
    assert_same_answer(found, answer, DIGITS)


# Of one core of Graviton2. ONNX Runtime asks for it, and breaks down over what the machine below says of its own.
ARM_CPUINFO = """processor\t: {core}
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1

"""


@pytest.fixture(scope="module")
def arm64(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with Debian's Python 3.13 for arm64 in root/ and what the lock has for it, trimmed, in packages/."""
    emulator("aarch64")
    if shutil.which("mmdebstrap") is None or os.geteuid() != 0:
        pytest.skip("an arm64 Python is made by mmdebstrap, as root; one of the two is missing")
    folder = tmp_path_factory.mktemp("arm64")
    root, packages = folder / "root", folder / "packages"
    python = "base-files,python3.13-minimal,libpython3.13-stdlib,libstdc++6,libgcc-s1"  # base-files makes /lib
    run("mmdebstrap", "--quiet", "--arch=arm64", "--variant=extract", f"--include={python}", "trixie", str(root))
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc" / "cpuinfo").write_text("".join(ARM_CPUINFO.format(core=core) for core in range(2)))
    platforms = [f"--platform=manylinux_2_{version}_aarch64" for version in (17, 28)]
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    install += ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--python-version=3.13", *platforms]
    run(*install, "--target", str(packages), "-r", "requirements.txt")
    run(sys.executable, "function/image/trim.py", str(packages))
    yield folder
    shutil.rmtree(folder)


def test_an_arm64_processor_answers_alike_from_the_same_lock(arm64: Path, answer: Callable[[Any], Any]) -> None:
    python = str(arm64 / "root" / "usr" / "bin" / "python3.13")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{arm64 / 'packages'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "BUNDLE_DIR": str(ROOT / "bundle"),
    }
    # what is looked for below / is looked for in root first: its libraries and its /proc/cpuinfo
    command = [emulator("aarch64"), "-cpu", "neoverse-n1", "-L", str(arm64 / "root"), python, "-c", ASK]
    machine, features, found = last_line(run(*command, text=json.dumps(EVENT), environment=environment))
    assert machine == "aarch64"
    assert "ASIMD" in features
    assert_same_answer(found, answer, NEAR_ON_ARM64)
