"""The command `semsearch install-mcp`: add the MCP server to an agent's configuration."""

import difflib
import json
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from semsearch.commands.places import PlaceError

APPLICATIONS = "~/.config"
if sys.platform == "darwin":
    APPLICATIONS = "~/Library/Application Support"
AGENTS = {  # the configuration file of each agent, and the key in it that holds the servers
    "claude-code": (".mcp.json", "mcpServers"),
    "claude-desktop": (f"{APPLICATIONS}/Claude/claude_desktop_config.json", "mcpServers"),
    "cursor": ("~/.cursor/mcp.json", "mcpServers"),
    "vscode": (".vscode/mcp.json", "servers"),
}
EXAMPLES = """\
Examples:

    semsearch install-mcp claude-code docs/ --watch
    semsearch install-mcp vscode bundle/ --write
"""
command: App = App(help_epilogue=EXAMPLES)


@command.default
def install_mcp(
    agent: Literal["claude-code", "claude-desktop", "cursor", "vscode"],
    place: Path,
    /,
    *,
    watch: bool = False,
    write: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Show how an agent's configuration changes, or change it with --write.

    Args:
        agent: the agent that the server is for.
        place: a bundle, or a folder of documents.
        watch: update the index when files change.
        write: write the configuration.
    """
    named, key = AGENTS[agent]
    file, place = Path(named).expanduser(), place.resolve(strict=True)
    before = ""
    if file.exists():
        before = file.read_text(encoding="utf-8")
    try:
        content = json.loads(before or "{}")
    except ValueError as error:
        expected = "expected JSON without comments; add the server yourself: see docs/clients.md"
        raise PlaceError(f"{file}: {error}, {expected}") from error
    words = ["-P", "-m", "semsearch", "mcp", str(place)]  # -P: not a module of the agent's folder
    if watch:
        words.append("--watch")
    content.setdefault(key, {})[place.name] = {"type": "stdio", "command": sys.executable, "args": words}
    after = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), str(file), str(file)))
    if write:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(after, encoding="utf-8")
    elif before != after:
        print("\nNothing is written yet: add --write.")
