"""Which tests run for a change, and in which order."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import coverage

from tests.mutants.recording import FIXTURE, without_phase

STEPS = (1, 4, 16)  # seconds of a processor: tests that take less than one of them run before slower ones


@dataclass(frozen=True, slots=True)
class Timed:
    """A test that passes."""

    seconds: float  # processor time, without that of `fixtures`
    fixtures: tuple[str, ...]  # names of fixtures that it shares with other tests


@dataclass(frozen=True, slots=True)
class Choice:
    """The tests for a change, in their order."""

    tests: list[str]
    seconds: float  # their recorded processor time
    left_out: int  # the tests that exceed the budget


class Recording:
    """What a run of all tests showed."""

    def __init__(self, folder: Path) -> None:
        self._lines = coverage.CoverageData(str(folder / "lines"))
        self._lines.read()
        found = json.loads((folder / "tests.json").read_text(encoding="utf-8"))
        self.fixtures: dict[str, float] = found["fixtures"]
        self.tests = dict[str, Timed]()
        self._users: dict[str, set[str]] = {each: set() for each in self.fixtures}
        for name, test in found["tests"].items():
            if test["passed"]:
                shared = tuple(FIXTURE + each for each in test["fixtures"] if FIXTURE + each in self.fixtures)
                self.tests[name] = Timed(test["seconds"], shared)
                for each in shared:
                    self._users[each].add(name)

    def tests_of(self, path: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that run one of these lines, themselves or in a fixture that they share with others."""
        ran = self._lines.contexts_by_lineno(path)
        contexts = {without_phase(context) for line in lines for context in ran.get(line, ())}
        return (contexts & self.tests.keys()).union(*(self._users.get(context, set()) for context in contexts))


def choose(names: Iterable[str], recording: Recording, path: str, budget: float) -> Choice:
    """Return the quick tests first, and of equally quick ones those that are nearest to the changed module.

    Tests of one file stay together, because they share fixtures. The budget is in seconds of a processor.
    """
    room, _, module = path.removeprefix("semsearch/").removesuffix(".py").rpartition("/")

    def order(name: str) -> tuple[int, bool, bool, str, float]:
        file = name.partition("::")[0]
        test = recording.tests[name]
        seconds = test.seconds + sum(recording.fixtures[each] for each in test.fixtures)
        is_far = not file.startswith(f"tests/{room}/")
        return sum(seconds >= step for step in STEPS), file != f"tests/{room}/test_{module}.py", is_far, file, seconds

    chosen, seconds, made = list[str](), 0.0, set[str]()
    names = sorted(names, key=order)
    for name in names:
        test = recording.tests[name]
        needed = test.seconds + sum(recording.fixtures[each] for each in test.fixtures if each not in made)
        if chosen and seconds + needed > budget:
            break
        chosen.append(name)
        seconds += needed
        made.update(test.fixtures)
    return Choice(chosen, seconds, len(names) - len(chosen))
