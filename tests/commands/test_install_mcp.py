"""`semsearch install-mcp`: what it shows, what it writes into the file of each agent, and what it refuses."""

import json
import shutil
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from semsearch.commands.agents import AGENTS, AgentName
from semsearch.commands.install_mcp import MOST_TOOL_NAME
from semsearch.engine.bundle import read_manifest
from tests.command_line import error_line, run

START = ["-P", "-m", "semsearch", "mcp"]
# the file of each agent below the home folder, its member that holds the servers, and how a header names a variable
FILES = {
    "claude-code": (".mcp.json", "mcpServers", "${SEARCH_KEY}"),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "mcpServers", None),
    "codex": (".codex/config.toml", "mcp_servers", None),
    "cursor": (".cursor/mcp.json", "mcpServers", "${env:SEARCH_KEY}"),
    "gemini": (".gemini/settings.json", "mcpServers", "${SEARCH_KEY}"),
    "opencode": (".config/opencode/opencode.json", "mcp", "{env:SEARCH_KEY}"),
    "vscode": (".vscode/mcp.json", "servers", "${input:SEARCH_KEY}"),
    "windsurf": (".codeium/windsurf/mcp_config.json", "mcpServers", "${env:SEARCH_KEY}"),
    "zed": (".config/zed/settings.json", "context_servers", None),
}


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is the home folder too, with two folders named docs."""
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    # the place on Linux, on a Mac too
    desktop = replace(AGENTS["claude-desktop"], file=f"~/{FILES['claude-desktop'][0]}")
    monkeypatch.setitem(AGENTS, "claude-desktop", desktop)
    for name in ("a/docs", "b/docs"):
        (folder / name).mkdir(parents=True)
    return folder.resolve()


def content(file: Path) -> Any:
    """Return what a file without comments holds."""
    text = file.read_text(encoding="utf-8")
    return tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)


def test_the_agents_of_the_help_have_their_files() -> None:
    assert {*get_args(AgentName)} == {*AGENTS} == {*FILES, "other"}


@pytest.mark.parametrize("agent", FILES)
def test_the_file_of_an_agent_is_shown_and_then_written_beside_what_is_there(home: Path, agent: str) -> None:
    name, key, _ = FILES[agent]
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    before = (
        f'[{key}.other]\nargs = ["a"]\n' if file.suffix == ".toml" else json.dumps({key: {"other": {"args": ["a"]}}})
    )
    file.write_text(before)
    shown = run("install-mcp", agent, "a/docs", "--watch", "--exclude", "secrets/*", "--include", "*.py")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.endswith("\nNothing is written yet: add --write.\n")
    assert file.read_text() == before
    written = run("install-mcp", agent, "a/docs", "--watch", "--exclude", "secrets/*", "--include", "*.py", "--write")
    undo = "To undo it, remove the lines marked + and put back those marked -.\n"
    if agent == "codex":
        undo = "To undo it, remove the lines marked +.\n"
    assert written.out.splitlines()[:-1] == shown.out.splitlines()[:-1]
    assert written.out.endswith(f"{undo}")
    servers = content(file)[key]
    words = [*START, str(home / "a/docs"), "--exclude=secrets/*", "--include=*.py", "--watch"]
    entry = {
        "command": sys.executable,
        "args": words,
    }
    if agent in ("claude-code", "claude-desktop", "cursor", "vscode"):
        entry["type"] = "stdio"
    if agent == "opencode":
        entry = {"type": "local", "command": [sys.executable, *words]}
    assert servers == {"other": {"args": ["a"]}, "docs": entry}


@pytest.mark.parametrize(
    ("agent", "entry"),
    [
        ("claude-code", {"type": "http", "url": "ADDRESS"}),
        ("codex", {"url": "ADDRESS"}),
        ("cursor", {"url": "ADDRESS"}),
        ("gemini", {"httpUrl": "ADDRESS"}),
        ("opencode", {"type": "remote", "url": "ADDRESS"}),
        ("vscode", {"type": "http", "url": "ADDRESS"}),
        ("windsurf", {"serverUrl": "ADDRESS"}),
        ("zed", {"url": "ADDRESS"}),
    ],
)
def test_an_address_is_written_with_a_reference_to_its_key(home: Path, agent: str, entry: dict[str, Any]) -> None:
    name, key, reference = FILES[agent]
    address = "https://search.example.com/mcp"
    entry = {field: value.replace("ADDRESS", address) for field, value in entry.items()}
    assert run("install-mcp", agent, "--http", "https://search.example.com", "--write").code == 0
    assert content(home / name) == {key: {"search": entry}}
    done = run("install-mcp", agent, "--http", address, "--key-variable", "SEARCH_KEY", "--write")
    if agent == "zed":
        assert "--key-variable: zed has no form for variables that is known" in done.err
        return
    assert done.code == 0
    found = content(home / name)
    if agent == "vscode":
        (asked,) = found.pop("inputs")
        assert (asked["type"], asked["id"], asked["password"]) == ("promptString", "SEARCH_KEY", True)
    if agent == "codex":
        assert found == {key: {"search": {**entry, "bearer_token_env_var": "SEARCH_KEY"}}}
    else:
        assert found == {key: {"search": {**entry, "headers": {"Authorization": f"Bearer {reference}"}}}}
    assert run("install-mcp", agent, "--http", address, "--key-variable", "SEARCH_KEY").out == (
        f"{AGENTS[agent].path}: search is there already\n"  # type: ignore[index]
    )


def test_a_new_file_is_shown_in_whole_and_written_with_its_folders(home: Path) -> None:
    (home / "Bücher").mkdir()
    file = home / ".cursor/mcp.json"
    added = [
        "{",
        '  "mcpServers": {',
        '    "Bucher": {',
        '      "type": "stdio",',
        f'      "command": "{sys.executable}",',
        '      "args": [',
        *(f'        "{word}",' for word in START),
        f'        "{home}/Bücher"',
        "      ]",
        "    }",
        "  }",
        "}",
    ]
    changes = [f"--- {file}", f"+++ {file}", "@@ -0,0 +1,15 @@", *(f"+{line}" for line in added)]
    shown = run("install-mcp", "cursor", "Bücher")
    assert shown.out.splitlines() == [*changes, "", "Nothing is written yet: add --write."]
    assert not file.exists()
    written = run("install-mcp", "cursor", "Bücher", "--write")
    assert written.out.splitlines() == [*changes, "", f"Written to {file}. To undo it, delete this file."]
    assert file.read_text(encoding="utf-8").splitlines() == added
    assert run("install-mcp", "cursor", "Bücher", "--write").out == f"{file}: Bucher is there already\n"


def test_two_folders_of_one_name_and_a_server_of_that_name_do_not_replace_each_other(home: Path) -> None:
    file = home / ".mcp.json"
    # another program, on the same folder
    other = {"command": "npx", "args": ["-y", "files", str(home / "a/docs")]}
    file.write_text(json.dumps({"mcpServers": {"docs": other}}))
    for place in ("a/docs", "b/docs", "a/docs"):
        assert run("install-mcp", "claude-code", place, "--write").code == 0
    servers = content(file)["mcpServers"]
    assert servers.pop("docs") == other
    assert {name: entry["args"][-1] for name, entry in servers.items()} == {
        "a-docs": str(home / "a/docs"),
        "b-docs": str(home / "b/docs"),
    }


def test_an_entry_of_the_same_folder_is_updated_under_its_name_and_keeps_what_it_says_besides(home: Path) -> None:
    file = home / ".mcp.json"
    mine = {"command": "semsearch", "args": ["mcp", str(home / "a/docs")], "env": {"A": "1"}}
    file.write_text(json.dumps({"mcpServers": {"mine": mine, "z": {}}}, indent=4))
    done = run("install-mcp", "claude-code", "a/docs", "--watch", "--write")
    assert '     "args": [' in done.out
    args = [*START, str(home / "a/docs"), "--watch"]
    updated = {"command": sys.executable, "args": args, "env": {"A": "1"}, "type": "stdio"}
    assert content(file) == {"mcpServers": {"mine": updated, "z": {}}}


def test_two_servers_on_this_machine_get_two_names(home: Path) -> None:
    for port in (8000, 8001, 8000):
        assert run("install-mcp", "codex", "--http", f"http://127.0.0.1:{port}/mcp", "--write").code == 0
    servers = content(home / ".codex/config.toml")["mcp_servers"]
    assert servers == {
        "semsearch": {"url": "http://127.0.0.1:8000/mcp"},
        "semsearc-2": {"url": "http://127.0.0.1:8001/mcp"},
    }


@pytest.mark.parametrize(
    ("name", "server", "second"),
    [
        ("docs", "docs", "q-docs"),
        ("My Notes & ideas.v2", "My-Notes-ideas-v2", "q-My-Notes-ideas-v2"),
        ("日本語", "semsearch", "q"),
        ("long_folder_name_of_my_team_knowledge_base_2026", "long-folde", "long-fol-2"),
        ("a" * 33, "a" * 17, "a" * 15 + "-2"),  # 64 - 7 characters, less search_ and the name
    ],
)
def test_the_name_of_a_server_leaves_room_for_the_longest_name_of_a_tool(
    home: Path, name: str, server: str, second: str
) -> None:
    (home / "p" / name).mkdir(parents=True)
    (home / "q" / name).mkdir(parents=True)
    for place in ("p", "q"):
        assert run("install-mcp", "claude-code", f"{place}/{name}", "--write").code == 0
    assert list(content(home / ".mcp.json")["mcpServers"]) == [server, second]
    tool = "search_" + "".join(letter if letter.isalnum() else "_" for letter in name.lower())[:40]
    assert all(len(f"mcp__{each}__{tool}") <= MOST_TOOL_NAME for each in (server, second))


def test_the_name_of_a_server_leaves_room_for_list_documents_too(home: Path) -> None:
    for above in ("x", "p" * 38, "q" * 39):  # 64 characters are mcp__, 43 others, __ and list_documents
        (home / above / "docs").mkdir(parents=True)
        assert run("install-mcp", "claude-code", f"{above}/docs", "--write").code == 0
    assert list(content(home / ".mcp.json")["mcpServers"]) == ["docs", "p" * 38 + "-docs", "docs-2"]


def test_the_tool_of_a_bundle_is_named_after_its_title(home: Path, bundle: Path) -> None:
    shutil.copytree(bundle, home / "a-rather-long-name-of-a-bundle")
    manifest = json.loads((home / "a-rather-long-name-of-a-bundle/manifest.json").read_text())
    manifest["index"]["title"] = "x" * 40
    (home / "a-rather-long-name-of-a-bundle/manifest.json").write_text(json.dumps(manifest))
    assert read_manifest(home / "a-rather-long-name-of-a-bundle").corpus.title == "x" * 40
    assert run("install-mcp", "claude-code", "a-rather-long-name-of-a-bundle", "--write").code == 0
    assert list(content(home / ".mcp.json")["mcpServers"]) == ["a-rather-l"]


def test_comments_of_vs_code_stay(home: Path) -> None:
    (home / ".vscode").mkdir()
    before = '{\n\t// mine\n\t"servers": {\n\t\t"other": {}, // kept\n\t},\n}\n'
    (home / ".vscode/mcp.json").write_text(before)
    assert run("install-mcp", "vscode", "a/docs", "--write").code == 0
    after = (home / ".vscode/mcp.json").read_text()
    begin, end = before.split("\t},\n}")
    assert after.startswith(f'{begin}\t\t"docs": {{\n\t\t\t"type": "stdio",\n')
    assert after.endswith(f"\n\t\t}},\n\t}},\n}}{end}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ a", "Expecting property name enclosed in double quotes: line 1 column 3 (char 2), expected JSON"),
        ("[]", "the file is a list, expected an object"),
        ('{"servers": null}', "servers is null, expected an object"),
        ('{"servers": []}', "servers is a list, expected an object"),
        ('{"servers": {}, "inputs": {}}', "inputs is {}, expected a list"),
        ("\xff", "invalid start byte at byte 0, expected UTF-8"),
    ],
)
def test_a_file_that_cannot_be_edited_is_refused_with_where_and_the_lines_to_add(
    home: Path, text: str, message: str
) -> None:
    (home / ".vscode").mkdir()
    file = home / ".vscode/mcp.json"
    file.write_bytes(text.encode("latin-1"))
    done = run("install-mcp", "vscode", "--http", "https://a.example.com", "--key-variable", "K", "--write")
    line = error_line(done)
    assert line.startswith(f"error: .vscode/mcp.json: {message}")
    assert line.endswith("; nothing is written, add the lines above by hand")
    block = json.loads(done.out)
    assert block["servers"]["a"]["headers"] == {"Authorization": "Bearer ${input:K}"}
    assert block["inputs"][0]["id"] == "K"
    assert file.read_bytes() == text.encode("latin-1")


def test_an_inline_table_of_codex_is_refused_with_the_table_to_add(home: Path) -> None:
    (home / ".codex").mkdir()
    file = home / ".codex/config.toml"
    file.write_text("mcp_servers = {other = {url = 'a'}}\n")
    done = run("install-mcp", "codex", "a/docs", "--write")
    assert "expected TOML; nothing is written" in error_line(done)
    assert tomllib.loads(done.out)["mcp_servers"]["docs"]["args"] == [*START, str(home / "a/docs")]
    assert file.read_text() == "mcp_servers = {other = {url = 'a'}}\n"


def test_an_edit_that_would_change_anything_else_is_refused(home: Path) -> None:
    (home / ".codex").mkdir()
    file = home / ".codex/config.toml"
    lines = ["[mcp_servers.docs]", 'command = "semsearch"', f'args = ["mcp", "{home}/a/docs"]']
    before = "\n".join(['note = """', *lines, '"""', *lines, ""])
    file.write_text(before)
    done = run("install-mcp", "codex", "a/docs", "--write")
    assert "mcp_servers has a form that cannot be edited, expected one entry for each server" in error_line(done)
    assert file.read_text() == before


def test_the_lines_for_any_other_agent_are_printed_and_never_written(home: Path) -> None:
    done = run("install-mcp", "other", "a/docs")
    entry = {"type": "stdio", "command": sys.executable, "args": [*START, str(home / "a/docs")]}
    assert json.loads(done.out) == {"mcpServers": {"docs": entry}}
    refused = run("install-mcp", "other", "a/docs", "--write")
    assert (refused.code, refused.out) == (2, done.out)
    assert "--write: the file of this agent is not known; add the lines above by hand" in refused.err


def test_files_that_variables_and_suffixes_place_elsewhere_are_found(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(home / "mine"))
    (home / ".config/opencode").mkdir(parents=True)
    (home / ".config/opencode/opencode.jsonc").write_text("// mine\n")
    (home / ".mcp.jsonc").write_text("{}")  # which Claude Code does not read
    for agent in ("codex", "opencode", "claude-code"):
        assert run("install-mcp", agent, "a/docs", "--write").code == 0
    assert (home / "mine/config.toml").exists()
    assert (home / ".config/opencode/opencode.jsonc").read_text().startswith('// mine\n{\n  "mcp": {')
    assert not (home / ".config/opencode/opencode.json").exists()
    assert (home / ".mcp.json").exists()
    (home / ".config/opencode/opencode.json").touch()
    assert AGENTS["opencode"].path.name == "opencode.json"  # opencode reads it too


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cursor"], "--http: found neither a folder nor an address"),
        (["cursor", "a/docs", "--http", "http://a"], "--http: found a folder or its options too"),
        (["cursor", "--http", "http://a", "--include", "*.py"], "--http: found a folder or its options too"),
        (["cursor", "--http", "http://a", "--watch"], "--http: found a folder or its options too"),
        (["cursor", "--http", "a:8000"], "--http: found a:8000, expected an address such as http://127.0.0.1:8000"),
        (["cursor", "--http", "http://[a"], "--http: found http://[a, expected an address"),
        (["cursor", "--http", "http://me:secret@a"], "--http: found a user before the host, expected a key"),
        (["cursor", "a/docs", "--key-variable", "K"], "--key-variable: is for --http"),
        (["claude-desktop", "--http", "http://a"], "--http: the file of claude-desktop holds no addresses"),
        (["cursor", "{bundle}", "--exclude", "a"], "--exclude: found the bundle {bundle}, expected a folder"),
    ],
)
def test_options_that_do_not_fit_are_an_error(home: Path, bundle: Path, words: list[str], message: str) -> None:
    done = run("install-mcp", *(word.replace("{bundle}", str(bundle)) for word in words))
    (line,) = done.err.splitlines()
    assert message.replace("{bundle}", str(bundle)) in line
    assert "secret" not in line
    assert (done.code, done.out) == (2, "")


def test_watching_a_bundle_and_a_folder_that_is_missing_are_refused_before_anything_is_shown(
    home: Path, bundle: Path
) -> None:
    done = run("install-mcp", "cursor", bundle, "--watch")
    assert f"{bundle}: found a bundle, expected a folder of documents" in error_line(done)
    assert "No such file or directory" in error_line(run("install-mcp", "cursor", "nowhere"))
    (home / "a\nb").mkdir()
    assert f"{home}/a b: found control characters" in error_line(run("install-mcp", "cursor", "a\nb"))


@pytest.mark.parametrize("key", ["c0ffee" * 10 + "beef", "SECRET-ab12", "sk_secret", "Kabcd12"])
def test_a_key_in_place_of_the_name_of_its_variable_is_refused_and_not_shown(home: Path, key: str) -> None:
    done = run("install-mcp", "cursor", "--http", "http://a", "--key-variable", key)
    assert done.code == 2
    assert key not in done.out + done.err
    assert "--key-variable: found other characters" in done.err
