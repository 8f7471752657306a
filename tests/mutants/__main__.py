"""Change the code at random and see which changes no test notices: `make mutants`, or python -m tests.mutants -h.

Each change is made in a copy of the checkout. Only the tests that run the changed line are run, quick ones first, until
one fails. ignored.txt lists changes that change no answer. Whether another change that no test notices matters is for
the reader to decide.
"""

import argparse
import math
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.mutants.changes import Change, changes_of, function_lines, without_ignored
from tests.mutants.choice import Choice, Recording, choose
from tests.mutants.recording import record
from tests.mutants.trial import NOT_FOUND, Trial, failing, run
from tests.project import ROOT

PLACES = ("function", "semsearch")
RECORDING = ROOT / "build" / "mutants"
IGNORED = ROOT / "tests" / "mutants" / "ignored.txt"
LINKED = (".git", ".venv", "build", "bundle")  # not copied
SECONDS = 60  # maximum processor time of the tests of one change


def copy_checkout(folder: Path) -> Path:
    """Copy the checkout into a folder, and link what is large."""
    checkout = folder / "checkout"
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*LINKED, "dist", ".*_cache"))
    for name in LINKED:
        if (ROOT / name).exists():
            (checkout / name).symlink_to(ROOT / name)
    return checkout


def tests_of(change: Change, recording: Recording) -> set[str]:
    """Return the tests that run a change.

    To those of a line that runs only when its module is imported belong those of the module's functions, and of the
    functions of the modules that import it.
    """
    found = recording.tests_of(change.path.as_posix(), change.lines)
    if not change.at_import:
        return found
    name = ".".join(change.path.with_suffix("").parts)
    modules = [path for place in PLACES for path in sorted(ROOT.glob(f"{place}/**/*.py"))]
    users = [path for path in modules if f"from {name} import" in path.read_text(encoding="utf-8")]
    for path in (ROOT / change.path, *users):
        found |= recording.tests_of(path.relative_to(ROOT).as_posix(), function_lines(path.read_bytes()))
    return found


def sample_of(options: argparse.Namespace) -> list[Change]:
    """Return a sample of the changes that are not ignored."""
    paths = [path for place in options.places for path in sorted(ROOT.glob(f"{place}/**/*.py")) or [ROOT / place]]
    changes = [change for path in paths for change in changes_of(path.relative_to(ROOT), path.read_bytes())]
    changes, unknown = without_ignored(changes, IGNORED.read_text(encoding="utf-8"))
    for entry in unknown:
        print(f"{IGNORED.relative_to(ROOT)}: there is no change {entry}; remove it or correct it")
    changes = [change for change in changes if options.matching in change.key]
    return random.Random(options.seed).sample(changes, min(options.count, len(changes)))


def outcome(trial: Trial) -> str:
    """Return what became of a change, in a few words."""
    if trial.noticed_by == NOT_FOUND:
        return "TESTS GONE"
    if trial.noticed_by:
        return "noticed"
    if not trial.choice.tests:
        return "NOT RUN"
    return "PARTLY TRIED" if trial.choice.left_out else "NOT NOTICED"


def main() -> None:
    """Try a sample of all changes, and print what became of each."""
    parser = argparse.ArgumentParser("python -m tests.mutants", description=__doc__)
    parser.add_argument("places", nargs="*", default=PLACES, help="folders and files to change")
    parser.add_argument("--count", type=int, default=100, help="size of the sample")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--matching", default="", help="only changes in whose line of the output this text is")
    parser.add_argument("--tests", nargs="+", help="run these tests, instead of those that run the line")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="changes that are tried at once")
    parser.add_argument("--thorough", action="store_true", help=f"run a change's tests for more than {SECONDS} s")
    parser.add_argument("--record", action="store_true", help="record again which tests run which lines")
    options = parser.parse_args()
    budget = math.inf if options.thorough else SECONDS
    with tempfile.TemporaryDirectory() as temporary:
        checkouts = [copy_checkout(Path(temporary, str(job))) for job in range(options.jobs)]
        if options.record or not (RECORDING / "tests.json").exists():
            record(checkouts[0], RECORDING, options.jobs + 1)
        recording = Recording(RECORDING)
        hours = (time.time() - (RECORDING / "tests.json").stat().st_mtime) / 3600
        print(f"{len(recording.tests)} tests, recorded {hours:.1f} hours ago; --record records them again", flush=True)
        trials = []
        for change in sample_of(options):
            choice = choose(tests_of(change, recording), recording, change.path.as_posix(), budget)
            trials.append(Trial(change, Choice(options.tests, SECONDS, 0) if options.tests else choice))
        counts = Counter(outcome(trial) for trial in trials if not trial.choice.tests)
        for trial in run([trial for trial in trials if trial.choice.tests], checkouts):
            counts[outcome(trial)] += 1
            print(f"{outcome(trial):12} {trial.seconds:5.1f} s  {trial.change.key}  {trial.noticed_by}", flush=True)
        for trial in trials:
            if outcome(trial) != "noticed":
                print(f"{outcome(trial)}: {trial.change.key}")
        print(counts)
        for test in failing(checkouts[0], sorted({trial.noticed_by for trial in trials if "::" in trial.noticed_by})):
            print(f"{test} fails without a change too: what it noticed is not counted for")


if __name__ == "__main__":
    main()
