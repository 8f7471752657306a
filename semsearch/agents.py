"""semsearch install-mcp: write `semsearch mcp PATH` into the configuration of an agent."""

import difflib
import json
import sys
from pathlib import Path

from function.commands.terminal import fail
from semsearch.places import MODULE


def configuration(agent: str) -> tuple[Path, str]:
    """Return an agent's file, below the current folder or the home folder, and the key of its servers."""
    home = Path.home()
    applications = home / ("Library/Application Support" if sys.platform == "darwin" else ".config")
    return {
        "claude-code": (Path(".mcp.json"), "mcpServers"),
        "claude-desktop": (applications / "Claude" / "claude_desktop_config.json", "mcpServers"),
        "cursor": (home / ".cursor" / "mcp.json", "mcpServers"),
        "vscode": (Path(".vscode") / "mcp.json", "servers"),
    }[agent]


def install(agent: str, path: Path, *, watch: bool, write: bool) -> int:
    """Print how the agent's file changes, and with `write` change it. Return the exit code."""
    file, key = configuration(agent)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    try:
        content = json.loads(before or "{}")
    except ValueError as error:
        return fail(f"{file}: {error}, expected JSON without comments; add the server yourself: see docs/clients.md")
    place = path.resolve(strict=True)
    arguments = [*MODULE[1:], "semsearch", "mcp", str(place), *(["--watch"] if watch else [])]
    content.setdefault(key, {})[place.name] = {"type": "stdio", "command": MODULE[0], "args": arguments}
    after = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), str(file), str(file)))
    if write:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(after, encoding="utf-8")
    elif before != after:
        sys.stdout.write("\nNothing is written yet: add --write.\n")
    return 0
