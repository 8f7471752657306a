"""The console script `semsearch`: names for the commands of function/, export/ and this package.

A path comes first, then options, which have the names that they have in those commands.
"""

import argparse
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from function.commands.terminal import fail, run
from function.engine.bundle import BundleError
from semsearch.places import AGENTS, bundle_of, index_command, is_bundle

HELP = """\
index PATH [--out bundle/]         make an index of documents or rows, or update it
  PATH is a folder of Markdown, HTML, PDF, DOCX or text, or a CSV, TSV, JSON lines or Parquet file.
  --out BUNDLE                     folder of the index; if it is there, it is updated with its own options
  --model MODEL                    a sentence-transformer (default: all-MiniLM-L6-v2)
  --text-column, --id-column NAME  columns of a table
  --base-url URL                   where the documents are published
  --title, --description TEXT      what agents read about the texts
  --stem LANGUAGE                  language whose word endings keyword search ignores (default: english)
  --no-cache                       convert the model again
  All options: python -m export --help
query BUNDLE TEXT                  search it
  --num-results N, --mode semantic|keyword|hybrid, --filter JSON, --sort COLUMN[:desc], --facet COLUMN, --json
  All options: python -m function query --help
serve PATH [--watch [FOLDER]]      serve a page, an API and MCP on http://localhost:8000
  PATH is a bundle, s3://BUCKET/PREFIX, or a folder of documents, whose index is kept in a cache.
  --watch [FOLDER]                 update the index when files change; a bundle needs the FOLDER of its files
  All options: python -m function --help
mcp PATH [--watch]                 be an MCP server on standard input and output, for agents
  PATH is a bundle, or a folder of documents, whose index is made or updated first, in a cache.
install-mcp AGENT PATH [--watch]   show how an agent's configuration changes; --write changes it
  AGENT is claude-code, claude-desktop, cursor or vscode.
model pack|unpack FILE             carry converted models to a machine without PyTorch
evaluate BUNDLE --questions FILE   measure how well it answers
site BUNDLE --out FOLDER           write a static site that searches in the browser
publish BUNDLE s3://BUCKET/PREFIX  publish it to S3
"""
USAGE = {line.split()[0]: line for line in HELP.splitlines() if line[0] != " "}
PASSED_ON = ("evaluate", "site", "publish")  # also their --help


def main() -> None:
    """Run the command of the command line, and exit."""
    os.environ["PYTHONSAFEPATH"] = "1"  # child processes never import from the current folder
    words = sys.argv[1:]
    sys.exit(run(lambda: dispatch(words), encoding="utf-8" if words[:1] in (["serve"], ["mcp"]) else None))


def dispatch(words: list[str]) -> int:
    """Run a command, and return its exit code."""
    command, rest = (words[0] if words else "--help"), words[1:]
    if command == "--version":
        print("semsearch", version("semantic-search-lambda"))
    elif command in ("--help", "-h"):
        print(
            *(f"semsearch {line}" for line in USAGE.values()), "", "semsearch COMMAND --help shows options.", sep="\n"
        )
    elif command not in USAGE:
        return _wrong(command, "--help")
    elif command not in PASSED_ON and (not rest or {"--help", "-h"} & set(rest)):
        section = HELP[HELP.index(USAGE[command]) :].splitlines()
        others = [number for number, line in enumerate(section) if number and line[0] != " "]
        print("usage: semsearch", "\n".join(section[: others[0]]))
        return 0 if rest else 2
    else:
        try:
            return _run(command, rest)
        except BundleError as error:
            return fail(error)
        except ImportError as error:
            from export.errors import explain_import

            return fail(explain_import(error))
    return 0


def _wrong(found: str, command: str) -> int:
    return fail(f"found {found!r}; see `semsearch {command}`") + 1


def _run(command: str, rest: list[str]) -> int:
    place, *options = rest or ["--help"]
    if command in PASSED_ON:
        from export.cli import main as export

        return export([command, place, *options], f"semsearch {command}")
    if place.startswith("-"):
        return _wrong(place, f"{command} --help")
    match command:
        case "index":
            return _index(place, options)
        case "query":
            from function.commands.query import main as query

            return query([*options, "--bundle", place], "semsearch query BUNDLE")
        case "serve":
            return _serve(place, options)
        case "mcp" if set(options) <= {"--watch"}:
            from semsearch.stdio import serve

            return serve(Path(place), watch=bool(options))
        case "install-mcp" if place in AGENTS and options and set(options[1:]) <= {"--watch", "--write"}:
            from semsearch.agents import install

            return install(place, Path(options[0]), watch="--watch" in options, write="--write" in options)
        case "model" if place in ("pack", "unpack") and len(options) == 1:
            from export.model.model_cache import pack, unpack

            (pack if place == "pack" else unpack)(Path(options[0]))
            return 0
    return _wrong(" ".join(rest), f"{command} --help")


def _index(place: str, options: list[str]) -> int:
    from export.cli import main as export

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--out", default="bundle")
    parser.add_argument("--model")
    named, others = parser.parse_known_args(options)
    update = ["--update", named.out] if is_bundle(named.out) and "--update" not in others else []
    model = [named.model] if named.model else []
    return export([*model, *others, "--corpus", place, "--out", named.out, *update], "semsearch index")


def _serve(place: str, options: list[str]) -> int:
    from function.server.cli import main as serve
    from semsearch.watching import start

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--watch", nargs="?", const=place, type=Path)
    named, others = parser.parse_known_args(options)
    if named.watch is not None and (is_bundle(named.watch) or not named.watch.exists()):
        return fail(f"--watch: found {named.watch}, expected the folder of the documents; write it after --watch")
    if not (place.startswith("s3://") or is_bundle(place)):
        folder, place = Path(place), str(bundle_of(Path(place)))
        if code := subprocess.run(index_command(folder, Path(place)), check=False).returncode:  # noqa: S603
            return code
    watcher = None if named.watch is None else start(Path(named.watch), Path(place), watch=True)
    try:
        return serve([*others, "--bundle", place], prog="semsearch serve")
    finally:
        if watcher is not None:
            watcher.terminate()
