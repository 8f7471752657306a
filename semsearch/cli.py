"""The console script `semsearch`: names for the commands of function/, export/ and this package.

A path comes first, then options, which have the names that they have in those commands.
"""

import os
import subprocess
import sys
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

from function.commands.terminal import fail, run
from semsearch.places import AGENTS, bundle_of, index_command, is_bundle

HELP = """\
index PATH [--out bundle/]         make an index of documents or rows, or update it
  PATH is a folder of Markdown, HTML, PDF, DOCX or text, or a CSV, TSV, JSON lines or Parquet file.
  --out BUNDLE                     folder of the index; if it is there, it is updated with its own options
  --model MODEL                    a sentence-transformer (default: all-MiniLM-L6-v2)
  --text-column, --id-column NAME  columns of a table
  --column NAME=TYPE               type of another column for filters
  --base-url URL                   where the documents are published
  --title, --description TEXT      what agents read about the texts
  --stem LANGUAGE                  language whose word endings keyword search ignores (default: english)
  --rerank MODEL                   add a cross-encoder
  --no-cache                       convert the model again
  All options: python -m export --help
query BUNDLE TEXT                  search it
  --num-results N, --mode semantic|keyword|hybrid, --filter JSON, --sort COLUMN[:desc], --facet COLUMN,
  --group-by COLUMN, --rerank N, --json
  All options: python -m function query --help
serve PATH [--watch [FOLDER]]      serve a page, an API and MCP on http://localhost:8000
  PATH is a bundle, s3://BUCKET/PREFIX, or a folder of documents, whose index is kept in a cache.
  --watch [FOLDER]                 update the index when files change; a bundle needs the FOLDER of its files
  --host HOST, --port PORT, --workers N, --open
  All options: python -m function --help
mcp PATH [--watch]                 be an MCP server on standard input and output, for agents
  PATH is a bundle, or a folder of documents, whose index is made or updated first, in a cache.
  --watch                          update the index when files change
install-mcp AGENT PATH [--watch]   show how an agent's configuration changes; --write changes it
  AGENT is claude-code, claude-desktop, cursor or vscode.
model pack|unpack FILE             carry converted models to a machine without PyTorch
evaluate BUNDLE --questions FILE   measure how well it answers
  All options: python -m export evaluate --help
site BUNDLE --out FOLDER           write a static site that searches in the browser
  All options: python -m export site --help
publish BUNDLE s3://BUCKET/PREFIX  publish it to S3
  All options: python -m export publish --help
"""
USAGE = {line.split()[0]: line for line in HELP.splitlines() if line[0] != " "}


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
        return 0
    if command in ("--help", "-h"):
        print(
            *(f"semsearch {line}" for line in USAGE.values()), "", "semsearch COMMAND --help shows options.", sep="\n"
        )
        return 0
    if command not in USAGE:
        return _wrong(command, "--help")
    if not rest or {"--help", "-h"} & set(rest):
        section = HELP[HELP.index(f"\n{USAGE[command]}\n") + 1 :] if HELP.index(USAGE[command]) else HELP
        lines = section.splitlines()
        last = next((at for at, line in enumerate(lines) if at and line[0] != " "), len(lines))
        print("usage: semsearch " + "\n".join(lines[:last]))
        return 0 if rest else 2
    try:
        return _run(command, rest)
    except ImportError as error:
        from export.errors import explain_import

        return fail(explain_import(error))


def _wrong(found: str, command: str) -> int:
    return fail(f"found {found!r}; see `semsearch {command}`") + 1


def _run(command: str, rest: list[str]) -> int:
    if command in ("evaluate", "site", "publish"):
        from export.cli import main as export

        return export([command, *rest], f"semsearch {command}")
    place, *options = rest
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

            print((pack if place == "pack" else unpack)(Path(options[0])))
            return 0
    return _wrong(" ".join(rest), f"{command} --help")


def _index(place: str, options: list[str]) -> int:
    from export.cli import main as export

    out = options[options.index("--out") + 1] if "--out" in options[:-1] else "bundle"
    if "--model" in options[:-1]:
        at = options.index("--model")
        options = [options[at + 1], *options[:at], *options[at + 2 :]]
    update = ["--update", out] if is_bundle(out) and "--update" not in options else []
    return export([*options, "--corpus", place, "--out", out, *update], "semsearch index")


def _serve(place: str, options: list[str]) -> int:
    from function.server.cli import main as serve
    from semsearch.watching import start

    folder = None if place.startswith("s3://") or is_bundle(place) else Path(place)
    if folder is not None:
        place = str(bundle_of(folder))
        if code := subprocess.run(index_command(folder, Path(place)), check=False).returncode:  # noqa: S603
            return code
    with ExitStack() as stack:
        if "--watch" in options:
            at = options.index("--watch")
            if options[at + 1 : at + 2] and not options[at + 1].startswith("-"):
                folder = Path(options.pop(at + 1))
            del options[at]
            if folder is None:
                return fail(f"--watch: {place} is a bundle, expected the folder of its files after --watch") + 1
            stack.callback(start(folder, Path(place), watch=True).terminate)
        return serve([*options, "--bundle", place], prog="semsearch serve")
