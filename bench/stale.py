"""List the results that were measured on older code than there is now; exit 1 if there are any."""

import argparse
from pathlib import Path

from bench.folders import PROJECT
from bench.measurements import MEASUREMENTS
from bench.provenance import CHANGES, UNKNOWN, git
from bench.report import console, read_result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the results are those in bench/results/."""


def run(options: argparse.Namespace) -> int:
    """List the stale results, with the command that measures each again; return 1 if there are any."""
    if git(PROJECT, "rev-parse", "HEAD") is None:
        raise SystemExit(f"{PROJECT}: is not a git checkout, so nothing tells which code is newer; run this in one")
    stale = 0
    for command, module in MEASUREMENTS.items():
        for name in module.WRITES:
            result = read_result(name)
            reason = "not measured yet"
            if result is not None:
                reason = why_stale(PROJECT, str(result.get("commit", UNKNOWN)), module.MEASURES)
            if reason:
                console.print(f"{name}: {reason}; run `python -m bench {command}`")
            stale += bool(reason)
    console.print(f"{stale} results are stale" if stale else "no result is stale")
    return 1 if stale else 0


def why_stale(folder: Path, commit: str, paths: tuple[str, ...]) -> str:
    """Return why a result of this commit no longer holds for these paths of the checkout in `folder`, "" if it does."""
    if commit == UNKNOWN:
        return "its commit was not recorded"
    if commit.endswith(CHANGES):
        return f"measured on {commit.removesuffix(CHANGES)} with changes that were not committed"
    newer = git(folder, "log", "--oneline", f"{commit}..HEAD", "--", *paths)
    if newer is None:
        return f"measured on {commit}, which this checkout does not have"
    if not newer:
        return ""
    return f"measured on {commit}; newer commits that changed {', '.join(paths)}: {len(newer.splitlines())}"
