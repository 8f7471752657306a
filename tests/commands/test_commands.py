"""The console script, as its user sees it, in a folder with an export/ and a function.py of the user's own."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from semsearch.commands.main import COMMANDS, dispatch
from semsearch.commands.places import bundle_at, file_states, kept_index
from semsearch.commands.watching import IndexProcess, main
from semsearch.engine.bundle import PASSAGES
from semsearch.engine.passages import Passages
from semsearch.indexing.make import index
from tests.command_line import run
from tests.project import ROOT
from tests.server.running import eventually

SEMSEARCH = (sys.executable, "-m", "semsearch")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, whose modules must not be imported."""
    (tmp_path / "export").mkdir()
    for file in ("export/__init__.py", "function.py"):
        (tmp_path / file).write_text(
            "raise SystemExit('a module of the current folder was imported')", encoding="utf-8"
        )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def documents(folder: Path, bundle: Path) -> Path:
    """A folder with a document, and a kept index so that the tests' model embeds it."""
    (folder / "notes").mkdir()
    (folder / "notes" / "a.md").write_text("# Goose\n\nAn angry goose won first prize.\n", encoding="utf-8")
    shutil.copytree(bundle, kept_index(folder / "notes"))
    return folder / "notes"


def run_console_script(*words: str) -> str:
    done = subprocess.run([*SEMSEARCH, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_index_that_is_there_is_updated_with_its_model_and_then_searched(folder: Path, bundle: Path) -> None:
    shutil.copytree(bundle, folder / "b")
    (folder / "texts.jsonl").write_text('{"text": "An angry goose"}\n{"text": "The ferry"}\n', encoding="utf-8")
    assert "texts     2 from texts.jsonl" in run_console_script("index", "texts.jsonl", "--out", "b", "--replace")
    (hit,) = json.loads(run_console_script("query", "b", "angry goose", "--num-results", "1", "--json"))["results"]
    assert hit["text"] == "An angry goose"


@pytest.mark.parametrize("command", [*COMMANDS, "model convert", "model pack"])
def test_the_help_of_a_command_has_its_options_and_an_example(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert dispatch([*command.split(), "--help"]) == 0
    found = capsys.readouterr().out
    assert found.startswith(f"Usage: semsearch {command}")
    assert f"semsearch {command.partition(' ')[0]}" in found.partition("Examples:")[2] or command == "model pack"


def test_the_version_is_that_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dispatch(["--version"]) == 0
    assert capsys.readouterr().out == f"{project['name']} {project['version']}\n"


def test_the_help_lists_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch([]) == 0
    found = capsys.readouterr().out
    assert all(f"│ {command} " in found for command in COMMANDS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], 'Unknown command "nothing"'),
        (["index", "--out", "b"], "PATH requires an argument; see `semsearch index --help`"),
        (["mcp", ".", "--watchful"], "--watchful"),
        (["install-mcp", "emacs", "."], '"emacs"'),
        (["index", "docs", "--passage-tokens", "many"], "--passage-tokens"),
        (["index", "docs", "--column", "year"], "--column: found 'year', expected NAME=TYPE"),
        (["publish", "bundle", "ftp://x"], "expected s3://BUCKET/PREFIX or s3vectors://BUCKET/INDEX"),
        (["publish", "bundle", "s3://b/p", "--keep-texts"], "--keep-texts: is for s3vectors://"),
        (["remove", "s3://b/p"], "found no ids; write them after the address"),
        (["query", "bundle"], "expected a text, --file or --like"),
        (["query", "bundle", "goose", "--num-results", "101"], "--num-results. Must be <= 100"),
        (["query", "bundle", "goose", "--filter", "{"], "--filter: not JSON"),
    ],
)
def test_wrong_words_are_an_error_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line


class Agent:
    """A client of `semsearch mcp`."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen([*SEMSEARCH, "mcp", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.notifications: list[str] = []

    def ask(self, method: str, **params: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while "id" not in (reply := json.loads(self.process.stdout.readline())):
            self.notifications.append(reply["method"])
        return reply.get("result", reply)

    def search(self, query: str) -> Any:
        (content,) = self.ask("tools/call", name="search", arguments={"query": query})["content"]
        return content["text"]

    def end(self) -> int:
        self.process.communicate(timeout=60)
        return self.process.returncode


def test_an_agent_searches_the_documents_as_they_are_now(documents: Path) -> None:
    agent = Agent("notes", "--watch")
    assert agent.ask("initialize", protocolVersion="2025-06-18")["capabilities"] == {"tools": {"listChanged": True}}
    for written in ("An angry goose won", "The night nurse told a joke"):
        (documents / "a.md").write_text(f"# Goose\n\n{written}.\n", encoding="utf-8")
        ends = time.monotonic() + 120
        while f"{written}." not in (found := agent.search(written)):
            assert time.monotonic() < ends, found
            time.sleep(0.2)
        (result,) = json.loads(found)["results"]
        assert result["url"] == "a.md#goose"  # the bundle was made without --base-url
    assert agent.end() == 0


def test_an_agent_learns_how_old_an_index_is_that_nobody_watches(documents: Path) -> None:
    assert dispatch(["query", "notes", "goose"]) == 0
    agent = Agent("notes")
    made = r"made \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ; files changed since: "
    assert re.fullmatch(f"{made}0", json.loads(agent.search("goose"))["index"])
    (documents / "b.md").write_text("# Ferry\n\nThe last ferry of the year.\n", encoding="utf-8")
    (documents / "a.md").unlink()
    assert re.fullmatch(f"{made}2", json.loads(agent.search("goose"))["index"])
    assert agent.end() == 0


@pytest.mark.slow  # starts an agent and waits for its updates
def test_an_update_that_fails_is_reported_and_the_process_is_started_again_when_it_dies(
    documents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (documents / "a.md").rename(documents.parent / "a.md")
    with closing(IndexProcess(documents, kept_index(documents), watch=True)) as process:
        assert "a folder without files" in str(process.error_of_first())
        (documents.parent / "a.md").rename(documents / "a.md")
        assert eventually(lambda: process.updates.error is None)
        os.kill(process.number, signal.SIGKILL)
        assert eventually(lambda: process.updates.failures == 2)
        assert eventually(lambda: process.updates.error is None)  # the new process found that the index is current
    assert "the process that makes its index was ended by the signal SIGKILL" in capsys.readouterr().err


def test_a_new_index_of_a_folder_has_the_addresses_of_its_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stated = []
    monkeypatch.setattr("semsearch.indexing.make.index", lambda *places, **options: stated.append(options))
    assert main(folder, folder / "b", watch=False) == 0
    assert capsys.readouterr().out == "\n"
    assert [options["base_url"] for options in stated] == [folder.as_uri()]


@pytest.mark.parametrize("command", [("query", "An angry goose"), ("verify",), ("evaluate", "--make-questions", "1")])
def test_a_command_takes_a_folder_of_documents_and_follows_its_changes(
    documents: Path, command: tuple[str, ...]
) -> None:
    name, *options = command
    first, again = (run(name, "notes", *options) for _ in range(2))
    assert "notes: making the index" in first.err
    assert "the index" not in again.err
    (documents / "b.md").write_text("# Ferry\n\nThe last ferry of the year.\n", encoding="utf-8")
    changed = run(name, "notes", *options)
    assert "notes: 1 files are new or have changed, 0 are gone; updating the index\n" in changed.err
    assert {first.code, again.code, changed.code} == {0}


def test_messages_can_come_from_a_file(folder: Path, bundle: Path) -> None:
    (folder / "messages").write_text('{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n', encoding="utf-8")
    with (folder / "messages").open() as messages:
        command = [*SEMSEARCH, "mcp", str(bundle)]
        done = subprocess.run(command, stdin=messages, capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)["result"]["tools"]) == 3


def test_an_index_that_cannot_be_made_is_the_error_of_each_call_until_the_agent_is_terminated(folder: Path) -> None:
    (folder / "empty").mkdir()
    agent = Agent("empty")
    names = [tool["name"] for tool in agent.ask("tools/list")["tools"]]
    assert names == ["search", "fetch", "list_documents"]
    assert "found a folder without files" in agent.search("goose")
    assert agent.ask("resources/list")["error"]["code"] == -32601
    agent.process.terminate()
    assert agent.process.wait(timeout=30) == 143
    agent.end()


def test_the_files_of_a_folder_are_those_that_an_index_is_made_of(tmp_path: Path) -> None:
    for file in ("a.md", ".b.md", ".git/c.md", "d/e.md"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(file)
    assert {os.path.relpath(file, tmp_path) for file in file_states(tmp_path)} == {"a.md", "d/e.md"}
    before = file_states(tmp_path / "a.md")
    (tmp_path / "a.md").write_text("longer than before")
    assert file_states(tmp_path / "a.md") != before


@pytest.fixture
def linked(folder: Path, bundle: Path) -> Path:
    """A folder of documents with a link to another one, and a kept index whose model is the tests' own."""
    for name, text in (("notes/a.md", "An angry goose"), ("private/b.md", "The ferry")):
        (folder / name).parent.mkdir()
        (folder / name).write_text(f"# Story\n\n{text}.\n", encoding="utf-8")
    (folder / "notes" / "linked").symlink_to("../private")
    (folder / "notes" / "linked.md").symlink_to("../private/b.md")
    shutil.copytree(bundle, kept_index(folder / "notes"))
    return folder / "notes"


def texts_of(bundle: Path) -> set[str]:
    passages = Passages(bundle / PASSAGES)
    return {passages.text(row) for row in range(len(passages))}


def test_a_kept_index_has_nothing_that_links_out_of_the_folder_lead_to(linked: Path) -> None:
    assert texts_of(bundle_at(linked)) == {"An angry goose."}
    assert file_states(linked).keys() == {str(linked / "a.md")}


@pytest.mark.slow  # starts an agent and waits for its update
def test_what_links_out_of_the_folder_lead_to_is_watched_if_the_index_follows_them(linked: Path) -> None:
    bundle = linked.parent / "bundle"
    shutil.copytree(kept_index(linked), bundle)
    index(linked, bundle, mode="replace", follow_symlinks=True, progress=False)
    assert texts_of(bundle) == {"An angry goose.", "The ferry."}
    with closing(IndexProcess(linked, bundle, watch=True)) as process:
        assert process.error_of_first() == ""
        (linked / "linked" / "c.md").write_text("# Story\n\nThe night nurse.\n", encoding="utf-8")
        assert eventually(lambda: "The night nurse." in texts_of(bundle))


@pytest.mark.parametrize(
    ("agent", "file", "key"),
    [
        ("claude-code", ".mcp.json", "mcpServers"),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".vscode/mcp.json", "servers"),
    ],
)
def test_an_agents_configuration_is_shown_and_then_written_beside_what_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], agent: str, file: str, key: str
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(json.dumps({key: {"other": {}}}))
    assert dispatch(["install-mcp", agent, ".", "--watch"]) == 0
    assert '+      "command":' in capsys.readouterr().out
    assert json.loads((folder / file).read_text()) == {key: {"other": {}}}
    assert dispatch(["install-mcp", agent, ".", "--watch", "--write"]) == 0
    servers = json.loads((folder / file).read_text())[key]
    assert servers.keys() == {"other", folder.name}
    assert servers[folder.name]["args"][-3:] == ["mcp", str(folder.resolve()), "--watch"]
