"""The tests that run for a change, and their order."""

import json
from pathlib import Path

import coverage

from tests.mutants.choice import Recording, choose

MODULE = "semsearch/engine/shelf.py"


def recording(folder: Path, lines: dict[str, set[int]], tests: dict[str, float], **fixtures: float) -> Recording:
    """Return a recording in which each context ran these lines of the module, and each test uses all fixtures."""
    data = coverage.CoverageData(str(folder / "lines"))
    for context, ran in lines.items():
        data.set_context(context)
        data.add_lines({MODULE: ran})
    data.write()
    made = {f"fixture {name}": seconds for name, seconds in fixtures.items()}
    timed = {
        name: {"seconds": seconds, "passed": True, "fixtures": ["tmp_path", *fixtures]}
        for name, seconds in tests.items()
    }
    (folder / "tests.json").write_text(json.dumps({"tests": timed, "fixtures": made}), encoding="utf-8")
    return Recording(folder)


def test_the_tests_that_run_a_line_are_found_also_by_a_process_that_they_started(tmp_path: Path) -> None:
    lines = {"t.py::here": {1, 2}, "t.py::child[a (b)] (call)": {2}, "t.py::elsewhere": {3}, "": {2}}
    ran = recording(tmp_path, lines, {"t.py::here": 1, "t.py::child[a (b)]": 1, "t.py::elsewhere": 1})
    assert ran.tests_of(MODULE, [1]) == {"t.py::here"}
    assert ran.tests_of(MODULE, range(1, 3)) == {"t.py::here", "t.py::child[a (b)]"}
    assert ran.tests_of(MODULE, [4]) == ran.tests_of("semsearch/unknown.py", [1]) == set()


def test_the_lines_of_a_shared_fixture_belong_to_all_tests_that_use_it(tmp_path: Path) -> None:
    ran = recording(tmp_path, {"fixture bundle": {1}}, {"t.py::one": 1, "t.py::other": 1}, bundle=5)
    assert ran.tests_of(MODULE, [1]) == {"t.py::one", "t.py::other"}


def test_a_test_that_did_not_pass_is_not_chosen(tmp_path: Path) -> None:
    recording(tmp_path, {"t.py::one": {1}}, {"t.py::one": 1})
    written = (tmp_path / "tests.json").read_text(encoding="utf-8")
    (tmp_path / "tests.json").write_text(written.replace("true", "false"), encoding="utf-8")
    assert Recording(tmp_path).tests_of(MODULE, [1]) == set()


def test_quick_tests_are_first_then_those_of_the_module_of_its_room_and_of_others(tmp_path: Path) -> None:
    tests = {
        "tests/engine/test_shelf.py::slow": 1.5,
        "tests/engine/test_shelf.py::quick": 0.9,
        "tests/engine/test_shelf.py::quicker": 0.5,
        "tests/engine/test_table.py::quick": 0.2,
        "tests/app/test_shelf.py::quick": 0.1,
    }
    choice = choose(tests, recording(tmp_path, {}, tests), MODULE, budget=60)
    assert choice.tests == [
        "tests/engine/test_shelf.py::quicker",
        "tests/engine/test_shelf.py::quick",
        "tests/engine/test_table.py::quick",
        "tests/app/test_shelf.py::quick",
        "tests/engine/test_shelf.py::slow",
    ]
    assert choice.left_out == 0


def test_a_fixture_is_counted_once(tmp_path: Path) -> None:
    tests = {f"t.py::{number}": 1.0 for number in range(4)}
    ran = recording(tmp_path, {}, tests, bundle=5)
    choice = choose(tests, ran, MODULE, budget=8)
    assert (choice.tests, choice.left_out) == (["t.py::0", "t.py::1", "t.py::2"], 1)
    assert choose(tests, ran, MODULE, budget=9).left_out == 0


def test_one_test_runs_that_exceeds_the_budget(tmp_path: Path) -> None:
    tests = {"t.py::one": 9.0, "t.py::other": 9.0}
    choice = choose(tests, recording(tmp_path, {}, tests), MODULE, budget=1)
    assert (choice.tests, choice.seconds, choice.left_out) == (["t.py::one"], 9, 1)
