"""The agents that `semsearch install-mcp` knows: their configuration files, and the form of a server in each.

Left out: what else an agent can state of a server, such as its timeouts. An update of an entry keeps it.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

AgentName = Literal[
    "claude-code", "claude-desktop", "codex", "cursor", "gemini", "opencode", "vscode", "windsurf", "zed", "other"
]

APPLICATIONS = "~/.config"
if sys.platform == "darwin":
    APPLICATIONS = "~/Library/Application Support"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration file of an agent, and the words that it uses for a server."""

    file: str  # relative to the folder of the project, or to ~; "" if it is not known
    servers: str = "mcpServers"  # member of the file that holds the servers by their names
    program: str = ""  # `type` of a server that the agent starts; "" if the agent needs none
    remote: str = ""  # `type` of a server that has an address; "" if the agent needs none
    address: str = "url"  # member that holds an address; "" if the file cannot hold one
    reference: str = ""  # how a header refers to the variable NAME; "" if it cannot

    @property
    def path(self) -> Path:
        """The path of the file."""
        if self.is_toml and (home := os.environ.get("CODEX_HOME")):
            return Path(home) / Path(self.file).name
        path = Path(self.file).expanduser()
        with_comments = path.with_suffix(".jsonc")
        reads_both = path.name == "opencode.json"
        if reads_both and not path.exists() and with_comments.exists():
            return with_comments
        return path

    @property
    def is_toml(self) -> bool:
        """Whether the file is TOML, which Codex alone uses; all others are JSON."""
        return self.file.endswith(".toml")

    @property
    def asks_for_keys(self) -> bool:
        """Whether the agent asks its user for the value of a variable, which the file then lists in `inputs`."""
        return "input:" in self.reference


AGENTS: dict[AgentName, Configuration] = {
    "claude-code": Configuration(".mcp.json", program="stdio", remote="http", reference="${NAME}"),
    "claude-desktop": Configuration(
        f"{APPLICATIONS}/Claude/claude_desktop_config.json",
        program="stdio",
        address="",
    ),
    "codex": Configuration("~/.codex/config.toml", servers="mcp_servers", reference="NAME"),
    "cursor": Configuration("~/.cursor/mcp.json", program="stdio", reference="${env:NAME}"),
    "gemini": Configuration("~/.gemini/settings.json", address="httpUrl", reference="${NAME}"),
    "opencode": Configuration(
        "~/.config/opencode/opencode.json",
        servers="mcp",
        program="local",
        remote="remote",
        reference="{env:NAME}",
    ),
    "vscode": Configuration(
        ".vscode/mcp.json",
        servers="servers",
        program="stdio",
        remote="http",
        reference="${input:NAME}",
    ),
    "windsurf": Configuration(
        "~/.codeium/windsurf/mcp_config.json",
        address="serverUrl",
        reference="${env:NAME}",
    ),
    "zed": Configuration("~/.config/zed/settings.json", servers="context_servers"),
    "other": Configuration("", program="stdio", remote="http"),
}


def program_entry(agent: Configuration, command: Sequence[str]) -> dict[str, Any]:
    """Return what the file of an agent says of a server that the agent starts by a command."""
    entry: dict[str, Any] = {"type": agent.program} if agent.program else {}
    if agent.program == "local":  # opencode
        return entry | {"command": list(command)}
    return entry | {"command": command[0], "args": list(command[1:])}


def remote_entry(agent: Configuration, address: str, variable: str | None) -> dict[str, Any]:
    """Return what the file of an agent says of a server at an address, whose key the environment variable holds."""
    entry: dict[str, Any] = {"type": agent.remote} if agent.remote else {}
    entry[agent.address] = address
    if variable is None:
        return entry
    reference = agent.reference.replace("NAME", variable)
    if agent.is_toml:
        return entry | {"bearer_token_env_var": reference}
    return entry | {"headers": {"Authorization": f"Bearer {reference}"}}


def key_input(variable: str) -> dict[str, Any]:
    """Return the item of `inputs` by which VS Code asks for a key, which it then stores encrypted."""
    return {"type": "promptString", "id": variable, "description": "Key of the search server", "password": True}


def is_of(entry: object, targets: Sequence[str]) -> bool:
    """Return whether an entry of a file is for these paths and no others, or for this address."""
    words = list(_strings(entry))
    if any("://" in target for target in targets):
        return targets[0] in words
    given = (call[call.index("mcp") + 1 :] for call in _lists(entry) if "mcp" in call)
    paths = {word for call in given for word in call if not word.startswith("-")}
    return paths == {*targets} and any(Path(word).name == "semsearch" for word in words)


def _lists(value: object) -> Iterator[list[str]]:
    """Yield the lists that a value of JSON or TOML holds, as strings."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _lists(each)
    elif isinstance(value, list):
        yield [*map(str, value)]


def _strings(value: object) -> list[str]:
    """Return all strings that a value of JSON or TOML holds."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [word for item in value for word in _strings(item)]
    return [value] if isinstance(value, str) else []
