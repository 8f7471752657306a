"""List the results whose measured code has changed since, with the files that changed; exit 1 if there are any.

A result depends on the files that its measurement imports and runs: the imports at the top of its module and of the
modules in its MEASURES are followed through the whole project. Imports inside functions and under `if` are not, because
a request that does not use a capability does not import it; MEASURES names those that are measured. A changed comment
or docstring changes no result, nor does the bench itself, which measures and is not measured.
"""

import argparse
import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import MEASUREMENTS, load_measurement
from bench.processors import VNNI
from bench.report import CHANGES, PROJECT, UNKNOWN, console, git, read_results

PACKAGES = ("function", "export", "deploy", "bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the results are those in bench/results/."""


def run(options: argparse.Namespace) -> int:
    """Print a line for each stale result; return 1 if there are any."""
    if git(PROJECT, "rev-parse", "HEAD") is None:
        raise SystemExit(f"{PROJECT}: is not a git checkout, expected one, to compare with older code; run this in one")
    stale = 0
    for command, module in MEASUREMENTS.items():
        measurement = load_measurement(command)
        files = measured_files(PROJECT, (module, *measurement.MEASURES))
        for name in measurement.WRITES:
            for processor, result in ({VNNI: None} | read_results(name)).items():
                reason = "not measured yet"
                if result is not None:
                    reason = why_stale(PROJECT, str(result.get("commit", UNKNOWN)), files)
                if reason:
                    where = "" if processor == VNNI else f" ({processor})"
                    console.print(f"{name}{where}: {reason}; run `python -m bench {command}`", markup=False)
                stale += bool(reason)
    return 1 if stale else 0


def why_stale(project: Path, commit: str, files: Sequence[str]) -> str:
    """Return why a result of this commit no longer holds for these files of a checkout, "" if it does."""
    if commit == UNKNOWN:
        return "its commit was not recorded"
    if commit.endswith(CHANGES):
        return f"measured on {commit.removesuffix(CHANGES)} with changes that were not committed"
    if git(project, "cat-file", "-e", f"{commit}^{{commit}}") is None:
        return f"measured on {commit}, which this checkout does not have"
    differing = (git(project, "diff", "--name-only", "--no-renames", commit, "--", *files) or "").splitlines()
    changed = [file for file in differing if has_changed(project, commit, file)]
    return f"changed since {commit}: {', '.join(changed)}" if changed else ""


def has_changed(project: Path, commit: str, file: str) -> bool:
    """Return whether the code of a file differs from the commit's; comments, docstrings and layout do not count."""
    before, now = git(project, "show", f"{commit}:{file}"), project / file
    if before is None or not now.exists():
        return True
    return code_of(before, file) != code_of(now.read_text(encoding="utf-8"), file)


def code_of(text: str, file: str) -> str:
    """Return the text of a file in a form that does not change with its comments, docstrings and layout."""
    if not file.endswith(".py"):
        return "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            del node.body[0]
    return ast.dump(tree)


def measured_files(project: Path, names: Sequence[str]) -> list[str]:
    """Return the paths of the project's files, without the bench's, that these modules import at their tops.

    names has modules, such as "function.handler", and paths of other files or folders, which are returned as they are.
    """
    modules = [name for name in names if _file_of(project, name) is not None]
    found: dict[str, str] = {}
    while modules:
        module = modules.pop()
        path = _file_of(project, module)
        if path is None or module in found:
            continue
        found[module] = str(path.relative_to(project))
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for name in imports(body):
            parts = name.split(".")
            if parts[0] in PACKAGES:
                modules += [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    others = [name for name in names if name not in found]
    return sorted({path for path in found.values() if not path.startswith("bench/")} | set(others))


def _file_of(project: Path, module: str) -> Path | None:
    path = project.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def imports(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the names that these statements import whenever they run; some are no modules but names in modules."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)
        elif isinstance(statement, ast.With | ast.Try):
            yield from imports(statement.body)
