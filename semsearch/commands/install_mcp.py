"""The command `semsearch install-mcp`: add the MCP server to an agent's configuration."""

import difflib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any
from unicodedata import normalize
from urllib.parse import urlsplit

from cyclopts import App, Parameter

from semsearch.app.mcp.names import MOST_NAME, tool_name
from semsearch.commands.agent_files import (
    EditError,
    parse_json,
    parse_toml,
    read_configuration,
    servers_in,
    toml_table,
    with_item,
    with_table,
    with_value,
    write_configuration,
)
from semsearch.commands.agents import (
    AGENTS,
    AgentName,
    Configuration,
    is_of,
    key_input,
    program_entry,
    remote_entry,
)
from semsearch.commands.options import NONE_STATED, FolderOptions
from semsearch.commands.places import PlaceError, folders_at, kept_index, refuse_for_bundle
from semsearch.commands.terminal import visible
from semsearch.engine.bundle import CorpusInfo, find_corpus, is_bundle
from semsearch.engine.errors import OptionError

MOST_TOOL_NAME = 64  # characters that APIs accept; agents call a tool mcp__SERVER__TOOL
LONGEST_COMMON_TOOL = "list_documents"  # the longest name of a tool that every server has
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")  # capitals alone, so that no key is taken for a name
EXAMPLES = """\
Examples:

    semsearch install-mcp claude-code docs/ --watch
    semsearch install-mcp codex notes/ --watch --write
    semsearch install-mcp vscode bundle/ --write
    semsearch install-mcp cursor --http http://127.0.0.1:8000 --key-variable SEARCH_KEY --write
    semsearch install-mcp other docs/
"""
command: App = App(help_epilogue=EXAMPLES)


@command.default
def install_mcp(
    agent: AgentName,
    /,
    *places: Path,
    watch: bool = False,
    options: FolderOptions = NONE_STATED,
    http: str | None = None,
    key_variable: str | None = None,
    write: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Show how an agent's configuration changes, or change it with --write.

    Args:
        agent: the agent that the server is for. For other, the lines to add by hand are printed.
        places: a bundle, or folders of documents.
        watch: update the index when files change.
        http: the address of a running server, in place of a bundle or a folder.
        key_variable: with --http, the environment variable that holds the key, such as SEARCH_KEY. The file gets its
            name, never the key.
        write: write the configuration.
    """
    known = AGENTS[agent]
    if http is not None:
        if places or watch or options:
            raise OptionError("http", "found a folder or its options too, expected the address alone")
        targets = [_endpoint(http)]
        _refuse_remote(agent, known, key_variable)
        entry = remote_entry(known, targets[0], key_variable)
        names = _names(list(reversed(_host_labels(targets[0]))), _most_characters(None))
    elif not places:
        raise OptionError("http", "found neither a folder nor an address, expected one of them")
    elif key_variable is not None:
        raise OptionError("key_variable", "is for --http; a server on this machine needs no key")
    else:
        whole = [place.resolve(strict=True) for place in places]
        refuse_for_bundle(whole, options, watch=watch)
        targets = [*map(str, folders_at(whole).values())]
        for target in targets:
            if visible(target) != target:
                found = "found control characters, or bytes that are no UTF-8"
                raise PlaceError(
                    f"{visible(target)}: {found}, expected a path that a file of text can hold; rename the folder"
                )
        entry = program_entry(known, _program(targets, options, watch=watch))
        parts: Sequence[str] = whole[0].parts[1:]
        if len(whole) > 1:
            parts = ["-".join(Path(target).name for target in targets)]
        names = _names(parts, _most_characters(_tool_of(whole, options)))
    if agent == "other":
        print(_block(known, next(names), entry, None))
        if write:
            raise OptionError("write", "the file of this agent is not known; add the lines above by hand")
        return
    _install(known, targets, entry, names, key_variable, write=write)


def _install(
    agent: Configuration,
    targets: Sequence[str],
    entry: Mapping[str, Any],
    names: Iterator[str],
    variable: str | None,
    *,
    write: bool,
) -> None:
    """Show the change of a file, and make it with `write`. Raises PlaceError if the file cannot be edited."""
    file = agent.path
    name = next(names)
    try:
        before = read_configuration(file)
        content = parse_toml(before) if agent.is_toml else parse_json(before)
        servers = servers_in(content, agent.servers)
        name = _free_name(servers, targets, name, names)
        expected = _changed(agent, content, name, entry, variable)
        after = _edited(agent, before, name, entry, variable, is_new=name not in servers)
        if (parse_toml(after) if agent.is_toml else parse_json(after)) != expected:
            raise EditError(f"{agent.servers} has a form that cannot be edited, expected one entry for each server")
    except EditError as error:
        print(_block(agent, name, entry, variable))
        raise PlaceError(f"{file}: {error}; nothing is written, add the lines above by hand") from error
    if before == after:
        print(f"{visible(str(file))}: {name} is there already")
        return
    older, newer = before.splitlines(), after.splitlines()
    changes = list(difflib.unified_diff(older, newer, str(file), str(file), lineterm=""))
    print("\n".join(map(visible, changes)))
    if not write:
        print("\nNothing is written yet: add --write.")
        return
    is_new = not file.exists()
    write_configuration(file, after)
    undo = "remove the lines marked +"
    if is_new:
        undo = "delete this file"
    elif any(line.startswith("-") for line in changes[2:]):  # behind the names of the file
        undo = "remove the lines marked + and put back those marked -"
    print(f"\nWritten to {visible(str(file))}. To undo it, {undo}.")


def _changed(
    agent: Configuration, content: Mapping[str, Any], name: str, entry: Mapping[str, Any], variable: str | None
) -> dict[str, Any]:
    """Return the text of a file after its change. Other fields of the entry stay."""
    servers = servers_in(content, agent.servers)
    expected = {**content, agent.servers: {**servers, name: {**servers.get(name, {}), **entry}}}
    if _needs_input(agent, content, variable):
        expected["inputs"] = [*content.get("inputs", []), key_input(str(variable))]
    return expected


def _edited(
    agent: Configuration, text: str, name: str, entry: Mapping[str, Any], variable: str | None, *, is_new: bool
) -> str:
    if agent.is_toml:
        return with_table(text, agent.servers, name, entry)
    needs_input = _needs_input(agent, parse_json(text), variable)
    if is_new:
        text = with_value(text, [agent.servers, name], entry)
    else:
        for field, value in entry.items():
            text = with_value(text, [agent.servers, name, field], value)
    if needs_input:
        text = with_item(text, "inputs", key_input(str(variable)))
    return text


def _needs_input(agent: Configuration, content: Mapping[str, Any], variable: str | None) -> bool:
    """Return whether `inputs` lacks a variable that the agent asks for. Raises EditError if they are no list."""
    if variable is None or not agent.asks_for_keys:
        return False
    inputs = content.get("inputs", [])
    if not isinstance(inputs, list):
        raise EditError(f"inputs is {json.dumps(inputs)}, expected a list")
    return all(not isinstance(each, dict) or each.get("id") != variable for each in inputs)


def _block(agent: Configuration, name: str, entry: Mapping[str, Any], variable: str | None) -> str:
    """Return the lines that somebody adds by hand."""
    if agent.is_toml:
        return toml_table(agent.servers, name, entry).rstrip()
    block: dict[str, Any] = {agent.servers: {name: entry}}
    if _needs_input(agent, {}, variable):
        block["inputs"] = [key_input(str(variable))]
    return json.dumps(block, indent=2, ensure_ascii=False)


def _free_name(servers: Mapping[str, Any], targets: Sequence[str], name: str, names: Iterator[str]) -> str:
    """Return the name of the entry for these targets, or else the first name that no server has."""
    for known, entry in servers.items():
        if is_of(entry, targets):
            return known
    while name in servers:
        name = next(names)
    return name


def _names(parts: Sequence[str], most: int) -> Iterator[str]:
    """Yield names of a server: the last part, then also those before it while they fit, then with numbers."""
    first = _short(parts[-1:], most) or _short(["semsearch"], most)
    yield first
    for count in range(2, len(parts) + 1):
        longer = _short(parts[-count:], len("-".join(parts)))
        if len(longer) > most:
            break
        yield longer
    number = 2
    while True:
        suffix = f"-{number}"
        yield first[: most - len(suffix)].rstrip("-") + suffix
        number += 1


def _short(parts: Sequence[str], most: int) -> str:
    """Return a name of letters, digits and hyphens, which every agent accepts; Gemini CLI takes no underscores."""
    letters = normalize("NFKD", "-".join(parts)).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "-", letters).strip("-")[:most].rstrip("-")


def _most_characters(tool: str | None) -> int:
    """Return the length of the longest name of a server; tool is its longest one, None if that is not known."""
    longest = len("search_") + MOST_NAME
    if tool is not None:
        longest = max(len(tool), len(LONGEST_COMMON_TOOL))
    return MOST_TOOL_NAME - len("mcp____") - longest


def _tool_of(places: Sequence[Path], options: FolderOptions) -> str:
    """Return the name of the tool that searches the texts of a bundle or of folders."""
    info = find_corpus(places[0] if is_bundle(places[0]) else kept_index(*places, options=options))
    if info is None:  # the index is not made yet, and will be named after the folder
        info = CorpusInfo(
            rows=0,
            stages=None,
            recall={},
            model_sha256="",
            tokenizer_sha256="",
            source=", ".join(folders_at(places)) or places[0].name,
            columns={},
            keywords=None,
        )
    return tool_name(info)


def _program(places: Sequence[str], options: FolderOptions, *, watch: bool) -> list[str]:
    """Return the command line of a server. -P: no module of the agent's folder is imported."""
    words = [sys.executable, "-P", "-m", "semsearch", "mcp", *places]
    words += (f"--{name}={word}" for name, stated in asdict(options).items() for word in stated)
    if watch:
        words.append("--watch")
    return words


def _endpoint(address: str) -> str:
    """Return the address of MCP on a server, /mcp if only the host is stated. Raises OptionError for no address."""
    try:
        parts = urlsplit(address)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise OptionError("http", f"found {address}, expected an address such as http://127.0.0.1:8000")
    if parts.username is not None:
        raise OptionError("http", "found a user before the host, expected a key by way of --key-variable")
    if parts.path in ("", "/"):
        parts = parts._replace(path="/mcp")
    return parts.geturl()


def _host_labels(address: str) -> list[str]:
    """Return the parts of a host's name, the most specific first; that of this machine is semsearch."""
    host = urlsplit(address).hostname or ""
    if host == "localhost" or ":" in host or host.replace(".", "").isdigit():
        return ["semsearch"]
    return host.split(".")


def _refuse_remote(agent: AgentName, known: Configuration, variable: str | None) -> None:
    """Raise OptionError for an agent whose file can hold no address, or no reference to a variable."""
    if not known.address:
        raise OptionError("http", f"the file of {agent} holds no addresses; add it under Settings, Connectors")
    if variable is None:
        return
    if not known.reference:
        expected = "expected none; leave it out, and add the header by hand"
        raise OptionError("key_variable", f"{agent} has no form for variables that is known, {expected}")
    if not VARIABLE.fullmatch(variable):  # the value is not shown, because it can be a key
        expected = "expected the name of an environment variable in capitals, such as SEARCH_KEY"
        raise OptionError("key_variable", f"found other characters, {expected}; the key itself is never written")
