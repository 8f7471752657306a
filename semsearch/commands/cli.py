"""The console script `semsearch`: short names for the commands of function/, export/ and this package.

The first argument of a command is a path. Its options have the same names as in the command that it calls.
"""

import argparse
import difflib
import json
import os
import re
import sys
from importlib.metadata import version
from pathlib import Path

from semsearch.commands.terminal import fail, run
from semsearch.indexing.errors import explain_import
from semsearch.indexing.watching import MODULE, bundle_of, is_bundle, start

HELP = """\
index PATH [--out bundle/]         make an index of documents or rows, or update it
  PATH is a folder of Markdown, HTML, PDF, DOCX or text, a CSV, TSV, JSON lines or Parquet file, or python (its docs).
  --out BUNDLE                     folder of the index; an existing index is updated with the options it was made with
  --model MODEL                    a sentence-transformer (default: all-MiniLM-L6-v2)
  --text-column, --id-column NAME  columns of the texts and of the ids, in a table
  --base-url URL                   address at which the documents are published
  --exclude GLOB                   documents to leave out, such as 404.html or drafts/*
  --title, --description TEXT      title and description of the texts, which agents read
  --stem LANGUAGE                  language whose word endings keyword search ignores (default: english)
  --help-all                       show all options
query BUNDLE TEXT                  search an index
  --num-results N, --mode semantic|keyword|hybrid, --filter JSON, --sort COLUMN, --facet COLUMN, --json, --help-all
serve PATH [--watch [FOLDER]]      serve a page, an API and MCP on http://localhost:8000
  PATH is a bundle, s3://BUCKET/PREFIX, or a folder of documents, whose index is kept in a cache.
  --watch [FOLDER]                 update the index when files change; a bundle needs the FOLDER of its files
  --help-all                       show all options
mcp PATH [--watch]                 run an MCP server for agents on standard input and output
  PATH is a bundle, or a folder of documents, whose index is made or updated first and kept in a cache.
install-mcp AGENT PATH [--watch]   show how an agent's configuration changes; --write changes it
  AGENT is claude-code, claude-desktop, cursor or vscode.
model pack|unpack FILE             write converted models to a file, or read them on a machine without PyTorch
evaluate BUNDLE --questions FILE   measure how well searches answer your questions
site BUNDLE --out FOLDER           write a static site that searches in the browser
publish BUNDLE s3://BUCKET/PREFIX  publish an index to S3"""
SECTIONS = {section.split()[0]: section for section in re.split(r"\n(?! )", HELP)}
APPLICATIONS = "~/Library/Application Support" if sys.platform == "darwin" else "~/.config"
AGENTS = {  # the configuration file of each agent, and the key in it that holds the servers
    "claude-code": (".mcp.json", "mcpServers"),
    "claude-desktop": (f"{APPLICATIONS}/Claude/claude_desktop_config.json", "mcpServers"),
    "cursor": ("~/.cursor/mcp.json", "mcpServers"),
    "vscode": (".vscode/mcp.json", "servers"),
}


def main() -> None:
    """Run the command that sys.argv names, and exit with its exit code."""
    os.environ["PYTHONSAFEPATH"] = "1"  # child processes do not import from the current folder
    encoding = "utf-8" if sys.argv[1:2] in (["serve"], ["mcp"]) else None
    sys.exit(run(lambda: dispatch(sys.argv[1:]), encoding, explain_import))


def dispatch(words: list[str]) -> int:
    """Run a command, and return its exit code."""
    command, *rest = words or ["--help"]
    asks_help = not {"--help", "-h"}.isdisjoint(rest)
    place, *options = ["s3://BUCKET/PREFIX", "--help"] if "--help-all" in rest else rest or [""]
    match command:
        case "--version":
            print("semsearch", version("semantic-search-lambda"))
            return 0
        case "--help" | "-h":
            print("".join(f"semsearch {line}\n" for line in HELP.splitlines() if line[0] != " "))
            print("semsearch COMMAND --help shows options.")
            return 0
        case "evaluate" | "site" | "publish":
            from semsearch.commands.export_cli import main as export

            return export(words, f"semsearch {command}")
        case _ if command in SECTIONS and (asks_help or place[:1] in ("", "-")):
            print("usage: semsearch", SECTIONS[command])
            return 0 if asks_help else 2
        case "index":
            return _index(place, options)
        case "query":
            from semsearch.commands.query import main as query

            return query([*options, "--bundle", place], "semsearch query BUNDLE")
        case "serve":
            return _serve(place, options)
        case "mcp" if {*options} <= {"--watch"}:
            from semsearch.app.mcp.stdio import serve

            return serve(Path(place), watch=bool(options))
        case "install-mcp" if place in AGENTS and options and {*options[1:]} <= {"--watch", "--write"}:
            return _install(place, options[0], options[1:])
        case "model" if place in ("pack", "unpack") and len(options) == 1:
            from semsearch.indexing.models.cache import pack, unpack

            (pack if place == "pack" else unpack)(Path(options[0]))
            return 0
    return fail(f"found {' '.join(words)!r}; see `semsearch --help`") + 1


def _index(place: str, options: list[str]) -> int:
    from semsearch.commands.export_cli import main as export

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--out", default="bundle")
    parser.add_argument("--model", nargs=1, default=[])
    named, others = parser.parse_known_args(options)
    update = ["--update", named.out] if is_bundle(named.out) and "--update" not in others else []
    corpus = [] if place == "python" and not Path(place).exists() else ["--corpus", place]
    return export([*named.model, *others, *corpus, "--out", named.out, *update], "semsearch index")


def _serve(place: str, options: list[str]) -> int:
    from semsearch.server.cli import main as serve

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--watch", nargs="?", const=place, type=Path)
    named, others = parser.parse_known_args(options)
    documents = Path(place) if named.watch is None else named.watch
    if named.watch is not None and (is_bundle(documents) or not documents.exists()):
        return fail(f"--watch: found {documents}, expected the folder of the documents; write it after --watch")
    if named.watch is not None or not (is_bundle(place) or place.startswith("s3://")):
        place = str(bundle_of(Path(place)))
        process = start(documents, Path(place), watch=named.watch is not None)  # ends when this process ends
        if process.stdout is None or process.stdout.readline().strip():
            return 1  # the other process has printed the error
    return serve([*others, "--bundle", place], prog="semsearch serve")


def _install(agent: str, folder: str, options: list[str]) -> int:
    """Print how the configuration of the agent changes, write it if --write is set, and return the exit code."""
    named, key = AGENTS[agent]
    file, place = Path(named).expanduser(), Path(folder).resolve(strict=True)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    try:
        content = json.loads(before or "{}")
    except ValueError as error:
        return fail(f"{file}: {error}, expected JSON without comments; add the server yourself: see docs/clients.md")
    arguments = [*MODULE[1:], "semsearch", "mcp", str(place), *(["--watch"] if "--watch" in options else [])]
    content.setdefault(key, {})[place.name] = {"type": "stdio", "command": MODULE[0], "args": arguments}
    after = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), str(file), str(file)))
    if "--write" in options:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(after, encoding="utf-8")
    elif before != after:
        print("\nNothing is written yet: add --write.")
    return 0
