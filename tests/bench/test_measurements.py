"""All measurements: what they need, what they write, and what `all` does with those that cannot run."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.everything import run_all
from bench.measurements import MEASUREMENTS
from bench.needs import EXIT_CODE

ROOT = Path(__file__).parents[2]
FAIL = [sys.executable, "-c", "raise SystemExit('boom')"]
SKIP = [sys.executable, "-c", f"import sys; sys.stderr.write('no such thing here\\n'); sys.exit({EXIT_CODE})"]
WORK = [sys.executable, "-c", "pass"]


def bench(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    variables = os.environ | environment
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False, timeout=100)


def test_measurements_name_paths_that_exist_and_write_different_results() -> None:
    names = [name for module in MEASUREMENTS.values() for name in module.WRITES]
    assert len(names) == len(set(names))
    for module in MEASUREMENTS.values():
        assert all((ROOT / path).exists() for path in module.MEASURES)


def test_every_result_that_is_kept_is_one_that_a_measurement_writes() -> None:
    names = {name for module in MEASUREMENTS.values() for name in module.WRITES}
    assert {path.stem for path in (ROOT / "bench" / "results").iterdir()} <= names


@pytest.mark.parametrize("command", ["memory", "layers", "ablation"])
def test_without_docker_the_image_is_not_measured_and_one_line_says_why(command: str, tmp_path: Path) -> None:
    done = bench(command, "--work", str(tmp_path), PATH=str(tmp_path))
    assert done.returncode == EXIT_CODE
    assert done.stderr.startswith("docker is not installed on this machine; ")
    assert len(done.stderr.splitlines()) == 1


def test_without_data_accuracy_says_what_is_missing_before_it_makes_models(tmp_path: Path) -> None:
    done = bench("accuracy", "--work", str(tmp_path / "work"), "--data", str(tmp_path))
    assert done.returncode == EXIT_CODE
    assert done.stderr.startswith(f"{tmp_path}/headlines.csv.gz: there is no such file; fetch it with ")
    assert not (tmp_path / "work").exists()


def test_all_goes_on_after_what_is_skipped_and_what_fails(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run_all({"one": SKIP, "two": FAIL, "three": WORK}, tmp_path) == 1
    lines = capfd.readouterr().out.splitlines()
    assert "one: skipped: no such thing here" in lines
    assert "two: failed: exit 1" in lines
    assert any(line.startswith("three: measured in ") for line in lines)


def test_all_succeeds_when_the_rest_was_skipped(tmp_path: Path) -> None:
    assert run_all({"one": SKIP, "three": WORK}, tmp_path) == 0


def test_every_measurement_adds_its_arguments_and_has_defaults() -> None:
    for module in MEASUREMENTS.values():
        parser = argparse.ArgumentParser()
        module.add_arguments(parser)
        parser.parse_args([])
