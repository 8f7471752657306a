"""Which tests run which lines: `record` runs all tests under coverage, with this module as their plugin.

Lines that a fixture of several tests runs belong to all of its tests, and so do those of the processes that it starts:
such a process inherits PYTEST_CURRENT_TEST, from which coverage reads the context of its lines.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import pytest

CURRENT = "PYTEST_CURRENT_TEST"
FOLDER = "MUTANTS_RECORDING"  # the variable with the folder for the files of a run
FIXTURE = "fixture "  # begins the context of a fixture that several tests share
SETTINGS = """[run]
data_file = "{folder}/lines"
parallel = true
source = ["{checkout}/semsearch", "{checkout}/function"]
core = "ctrace"
context = "${{PYTEST_CURRENT_TEST}}"
patch = ["fork", "_exit"]
sigterm = true
disable_warnings = ["no-data-collected", "module-not-measured", "module-not-imported"]
"""
_tests: dict[str, dict[str, Any]] = {}
_fixtures: dict[str, float] = {}


def without_phase(context: str) -> str:
    """Return the name of a test from the value of PYTEST_CURRENT_TEST."""
    return re.sub(r" \((setup|call|teardown)\)$", "", context)


def processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def switch(context: str) -> str:
    """Let coverage record the next lines of this process and of its new children under this name."""
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.switch_context(context)
    before = os.environ.get(CURRENT, "")
    os.environ[CURRENT] = context
    return before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Record the lines of a test and its time, without that of the fixtures that it shares."""
    fixtures: list[str] = getattr(item, "fixturenames", [])
    test = _tests[item.nodeid] = {"passed": True, "fixtures": fixtures}
    switch(item.nodeid)
    shared, begin = sum(_fixtures.values()), processor_seconds()
    result = yield
    test["seconds"] = processor_seconds() - begin - sum(_fixtures.values()) + shared
    switch("")
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note that a test did not pass."""
    report = yield
    _tests[item.nodeid]["passed"] &= report.passed
    return report


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """Record the lines of a fixture that several tests share, and its time, under its own name."""
    if fixturedef.scope == "function":
        return (yield)
    name = FIXTURE + fixturedef.argname
    before, others, begin = switch(name), sum(_fixtures.values()), processor_seconds()
    try:
        return (yield)
    finally:
        seconds = processor_seconds() - begin - sum(_fixtures.values()) + others
        _fixtures[name] = max(seconds, _fixtures.get(name, 0))
        switch(without_phase(before))


def pytest_sessionfinish() -> None:
    """Write what was recorded in this process."""
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.save()
        written = {"tests": _tests, "fixtures": _fixtures}
        Path(os.environ[FOLDER], f"tests-{os.getpid()}.json").write_text(json.dumps(written), encoding="utf-8")


def record(checkout: Path, folder: Path, processes: int) -> None:
    """Run all tests of a copy of the checkout, and write what they ran as two files of a folder."""
    with tempfile.TemporaryDirectory() as parts:
        settings = Path(parts, "coverage.toml")
        settings.write_text(SETTINGS.format(folder=parts, checkout=checkout), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-p", __name__, "-p", "no:cacheprovider"]
        subprocess.run(
            [*command, "-n", str(processes), "--dist", "loadgroup"],
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": str(checkout), "COVERAGE_PROCESS_START": str(settings), FOLDER: parts},
            check=False,
        )
        merge(Path(parts), checkout, folder)


def merge(parts: Path, checkout: Path, folder: Path) -> None:
    """Write what all processes of a run recorded, with paths that are relative to the checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lines").unlink(missing_ok=True)
    lines = coverage.CoverageData(str(folder / "lines"))
    for part in parts.glob("lines.*"):
        ran = coverage.CoverageData(str(part))
        try:
            ran.read()
        except coverage.exceptions.DataError as error:
            print(f"left out, since its process was killed while it wrote: {error}")
            continue
        lines.update(ran, map_path=lambda path: Path(path).relative_to(checkout).as_posix())
    found: dict[str, dict[str, Any]] = {"tests": {}, "fixtures": {}}
    for part in parts.glob("tests-*.json"):
        for kind, values in json.loads(part.read_text(encoding="utf-8")).items():
            found[kind] |= values
    if not found["tests"]:
        raise SystemExit("coverage did not start in the tests' processes; expected its .pth file in this environment")
    (folder / "tests.json").write_text(json.dumps(found), encoding="utf-8")
