"""All measurements: what they need, what they write, and what `all` does with those that cannot run."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import MEASUREMENTS, load_measurement
from bench.__main__ import run_all
from bench.report import RESULTS, SKIPPED
from tests.project import ROOT

FAIL = [sys.executable, "-c", "raise SystemExit('boom')"]
SKIP = [sys.executable, "-c", f"import sys; sys.stderr.write('no such thing here\\n'); sys.exit({SKIPPED})"]
WORK = [sys.executable, "-c", "pass"]


def bench(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    variables = os.environ | environment
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)


def test_the_results_that_are_kept_are_those_that_measurements_write_each_once() -> None:
    names = [name for command in MEASUREMENTS for name in load_measurement(command).WRITES]
    assert len(names) == len(set(names))
    assert {path.name.partition(".")[0] for path in RESULTS.iterdir()} <= set(names)


@pytest.mark.parametrize("command", MEASUREMENTS)
def test_every_measurement_adds_its_arguments_and_has_defaults(command: str) -> None:
    parser = argparse.ArgumentParser()
    load_measurement(command).add_arguments(parser)
    parser.parse_args([])


@pytest.mark.parametrize("command", ["memory", "ablation"])
def test_without_docker_the_image_is_not_measured_and_one_line_says_why(command: str, tmp_path: Path) -> None:
    done = bench(command, "--work", str(tmp_path), PATH=str(tmp_path))
    assert done.returncode == SKIPPED
    assert done.stderr.startswith("docker is not installed on this machine; ")
    assert len(done.stderr.splitlines()) == 1


def test_without_data_accuracy_says_what_is_missing_before_it_makes_models(tmp_path: Path) -> None:
    done = bench("accuracy", "--work", str(tmp_path / "work"), "--data", str(tmp_path))
    assert done.returncode == SKIPPED
    assert done.stderr.startswith(f"{tmp_path}/headlines.csv.gz: there is no such file; docs/benchmarks.md says where ")
    assert not (tmp_path / "work").exists()


def test_all_goes_on_after_what_is_skipped_and_what_fails(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run_all({"one": SKIP, "two": FAIL, "three": WORK}, tmp_path) == 1
    lines = capfd.readouterr().out.splitlines()
    assert "one: skipped: no such thing here" in lines
    assert "two: failed: exit 1" in lines
    assert any(line.startswith("three: measured in ") for line in lines)
    assert run_all({"one": SKIP, "three": WORK}, tmp_path) == 0
