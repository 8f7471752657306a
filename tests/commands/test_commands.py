"""The console script, as its user sees it, in a folder with an export/ and a function.py of the user's own."""

import errno
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
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from semsearch.commands.main import COMMANDS
from semsearch.commands.places import bundle_at, file_states, kept_index
from semsearch.commands.watching import IndexProcess, main
from semsearch.engine.bundle import PASSAGES
from semsearch.engine.passages import Passages
from semsearch.indexing.make import index
from tests.command_line import run
from tests.project import ROOT
from tests.server.running import RUNNING, eventually

SEMSEARCH = (sys.executable, "-m", "semsearch")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, whose modules must not be imported."""
    code = "raise SystemExit('a module of the current folder was imported')"
    (tmp_path / "export").mkdir()
    for file in ("export/__init__.py", "function.py"):
        (tmp_path / file).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def write_story(path: Path, text: str) -> None:
    """Write a document whose anchor is #story."""
    path.write_text(f"# Story\n\n{text}.\n", encoding="utf-8")


@pytest.fixture
def documents(folder: Path, bundle: Path) -> Path:
    """A folder with a document, and a kept index so that the tests' model embeds it."""
    (folder / "notes").mkdir()
    write_story(folder / "notes" / "a.md", "An angry goose")
    shutil.copytree(bundle, kept_index(folder / "notes"))
    return folder / "notes"


def test_an_index_that_is_there_is_updated_with_its_model_and_then_searched(folder: Path, bundle: Path) -> None:
    shutil.copytree(bundle, folder / "b")
    (folder / "texts.jsonl").write_text('{"text": "An angry goose"}\n{"text": "The ferry"}\n', encoding="utf-8")
    command = [*SEMSEARCH, "index", "texts.jsonl", "--out", "b", "--replace"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "texts     2 from texts.jsonl" in done.stdout
    (hit,) = json.loads(run("query", "b", "angry goose", "--num-results", "1", "--json").out)["results"]
    assert hit["text"] == "An angry goose"


@pytest.mark.parametrize("command", [*COMMANDS, "model convert", "model pack"])
def test_the_help_of_a_command_has_its_options_and_an_example(command: str) -> None:
    done = run(*command.split(), "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: semsearch {command}")
    found = done.out.partition("Examples:")[2]
    assert f"semsearch {command.partition(' ')[0]}" in found or command == "model pack"


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    done = run("--version")
    assert (done.code, done.out) == (0, f"{project['name']} {project['version']}\n")


def test_the_help_lists_each_command() -> None:
    done = run()
    assert done.code == 0
    assert all(f"│ {command} " in done.out for command in COMMANDS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], 'Unknown command "nothing"'),
        (["index", "--out", "b"], "PATH requires an argument; see `semsearch index --help`"),
        (["index", "docs", "--column", "year"], "--column: found 'year', expected NAME=TYPE"),
        (["publish", "bundle", "ftp://x"], "expected s3://BUCKET/PREFIX or s3vectors://BUCKET/INDEX"),
        (["remove", "s3://b/p"], "found no ids; write them after the address"),
        (["query", "bundle"], "expected a text, --file or --like"),
        (["query", "bundle", "goose", "--num-results", "101"], "--num-results. Must be <= 100"),
        (["query", "bundle", "goose", "--filter", "{"], "--filter: not JSON"),
        (
            ["query", "bundle", "goose", "--without", "ferry", "--without", " "],
            "--without. expected words, not a blank",
        ),
    ],
)
def test_wrong_words_are_an_error_in_one_line(words: list[str], message: str) -> None:
    done = run(*words)
    (line,) = done.err.splitlines()
    assert done.code == 2
    assert line.startswith("error: ")
    assert message in line


class Agent:
    """A client of `semsearch mcp`."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen([*SEMSEARCH, "mcp", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, method: str, **params: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while "id" not in (reply := json.loads(self.process.stdout.readline())):
            pass  # a notification
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
        write_story(documents / "a.md", written)
        ends = time.monotonic() + 120
        while f"{written}." not in (found := agent.search(written)):
            assert time.monotonic() < ends, found
            time.sleep(0.2)
        (result,) = json.loads(found)["results"]
        assert result["url"] == "a.md#story"  # the bundle was made without --base-url
    assert agent.end() == 0


def test_an_agent_learns_how_old_an_index_is_that_nobody_watches(documents: Path) -> None:
    assert run("query", "notes", "goose").code == 0
    agent = Agent("notes")
    made = r"made \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ; files changed since: "
    assert re.fullmatch(f"{made}0", json.loads(agent.search("goose"))["index"])
    write_story(documents / "b.md", "The last ferry of the year")
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
        number, failures = process.number, process.updates.failures
        os.kill(number, signal.SIGHUP)  # a terminal that is closed sends it
        os.kill(number, signal.SIGKILL)
        assert eventually(lambda: process.updates.failures == failures + 1)
        assert eventually(lambda: process.updates.error is None)  # the new process found that the index is current
    assert "the process that makes its index was ended by the signal SIGKILL" in capsys.readouterr().err


def test_an_index_without_a_document_that_cannot_be_read_is_used_and_the_document_reported(documents: Path) -> None:
    (documents / "broken.md").symlink_to("a link to nowhere.md")
    with closing(IndexProcess(documents, kept_index(documents), watch=False)) as process:
        assert process.error_of_first() == ""
        assert "broken.md" in str(process.updates.error)


MADE = SimpleNamespace(report=SimpleNamespace(outdated=(), refused=()))  # what an update returns
NOT_READ = SimpleNamespace(report=SimpleNamespace(outdated=("a.md: Permission denied",), refused=("a.md",)))


def test_an_update_that_failed_is_tried_again_although_no_file_has_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()
    outcomes: list[Any] = [OSError(errno.ENOSPC, "No space left on device", "bundle"), NOT_READ, MADE]

    def update(*arguments: object) -> Any:
        outcome = outcomes.pop(0)
        if not outcomes:
            os.close(writing)  # ends the process
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    monkeypatch.setattr("semsearch.commands.watching.update", update)
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert main(folder, folder / "b", watch=True, pause=0.0) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        ["bundle: No space left on device", False],
        [f"{folder}: 1 documents were not read, such as a.md: Permission denied", True],
        ["", True],
    ]


def test_a_broken_link_keeps_nothing_else_out_and_is_tried_again_by_the_next_search(documents: Path) -> None:
    (documents / "broken.md").symlink_to("nowhere.md")
    for _ in range(2):
        write_story(documents / "b.md", "The ferry")
        done = run("query", "notes", "The ferry")
        assert "The ferry." in done.out
        assert "notes: not read: broken.md: a link to nowhere.md: No such file or directory\n" in done.err
    write_story(documents / "nowhere.md", "The night nurse")
    assert "The night nurse." in run("query", "notes", "The night nurse").out


def test_a_new_index_of_a_folder_has_the_addresses_of_its_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stated = []

    def index(*places: object, **options: Any) -> Any:
        stated.append(options)
        return MADE

    monkeypatch.setattr("semsearch.indexing.make.index", index)
    assert main(folder, folder / "b", watch=False) == 0
    assert capsys.readouterr().out == '["", true]\n'
    assert [options["base_url"] for options in stated] == [folder.as_uri()]


def test_commands_take_a_folder_of_documents_and_follow_its_changes(documents: Path) -> None:
    first, again = (run("query", "notes", "An angry goose") for _ in range(2))
    assert "notes: making the index" in first.err
    assert "the index" not in again.err
    assert (first.code, again.code) == (0, 0)
    for name, *options in (("query", "The ferry"), ("verify",), ("evaluate", "--make-questions", "1")):
        write_story(documents / f"{name}.md", f"The last ferry before {name}")
        changed = run(name, "notes", *options)
        assert changed.code == 0
        assert "notes: 1 files are new or have changed, 0 are gone; updating the index\n" in changed.err


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


def test_an_agent_searches_the_first_document_of_an_empty_folder_that_is_watched(documents: Path, bundle: Path) -> None:
    (documents / "a.md").rename(documents.parent / "a.md")
    shutil.rmtree(kept_index(documents))
    agent = Agent("notes", "--watch")
    assert "found a folder without files" in agent.search("goose")
    shutil.copytree(bundle, kept_index(documents), dirs_exist_ok=True)  # for its model
    (documents.parent / "a.md").rename(documents / "a.md")
    ends = time.monotonic() + 120
    while "a.md#story" not in (found := agent.search("goose")):
        assert time.monotonic() < ends, found
        time.sleep(0.2)
    assert agent.end() == 0


def test_a_server_waits_for_the_first_document_of_an_empty_folder_that_is_watched(documents: Path) -> None:
    (documents / "a.md").rename(documents.parent / "a.md")
    command = [*SEMSEARCH, "serve", "notes", "--watch", "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            assert "found a folder without files" in server.stderr.readline()
            assert server.stderr.readline() == "notes: waiting for the first document\n"
            (documents.parent / "a.md").rename(documents / "a.md")
            address = next(found[1] for line in server.stderr if (found := RUNNING.search(line)))
            reply = httpx.post(f"{address}/similar", json={"text": "goose"}, timeout=60)
            assert [hit["text"] for hit in reply.json()["results"]] == ["An angry goose."]
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=60)
        finally:
            server.kill()
    assert server.returncode == 0


def test_a_change_of_a_document_alone_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a")
    before = file_states(tmp_path / "a.md")
    (tmp_path / "a.md").write_text("longer than before")
    assert file_states(tmp_path / "a.md") != before


@pytest.fixture
def linked(documents: Path) -> Path:
    """The folder of documents, with links to another one and to its document."""
    (documents.parent / "private").mkdir()
    write_story(documents.parent / "private" / "b.md", "The ferry")
    (documents / "linked").symlink_to("../private")
    (documents / "linked.md").symlink_to("../private/b.md")
    return documents


def texts_of(bundle: Path) -> set[str]:
    passages = Passages(bundle / PASSAGES)
    return {passages.text(row) for row in range(len(passages))}


def test_a_kept_index_has_no_hidden_file_and_nothing_that_links_out_of_the_folder_lead_to(linked: Path) -> None:
    (linked / ".hidden.md").write_text("The hidden note")
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
        write_story(linked / "linked" / "c.md", "The night nurse")
        assert eventually(lambda: "The night nurse." in texts_of(bundle))


@pytest.mark.parametrize(
    ("agent", "file", "key"),
    [
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".vscode/mcp.json", "servers"),
    ],
)
def test_an_agents_configuration_is_shown_and_then_written_beside_what_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, agent: str, file: str, key: str
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(json.dumps({key: {"other": {}}}))
    shown = run("install-mcp", agent, ".", "--watch")
    assert shown.code == 0
    assert '+      "command":' in shown.out
    assert json.loads((folder / file).read_text()) == {key: {"other": {}}}
    assert run("install-mcp", agent, ".", "--watch", "--write").code == 0
    servers = json.loads((folder / file).read_text())[key]
    assert servers.keys() == {"other", folder.name}
    assert servers[folder.name]["args"][-3:] == ["mcp", str(folder.resolve()), "--watch"]
