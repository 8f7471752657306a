"""The console script, as its user sees it, in a folder with an export/ and a function.py of the user's own."""

import json
import re
import shutil
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import httpx
import pytest

from semsearch.app.settings import encode_filter, hash_key
from semsearch.commands.main import COMMANDS
from semsearch.commands.places import kept_index
from tests.command_line import run
from tests.commands.running import SEMSEARCH, Agent, write_story
from tests.project import ROOT
from tests.server.running import RUNNING


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
        (["query", "bundle", "goose", "--num-results", "0"], "--num-results. Must be >= 1"),
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
    (documents / "app.log").write_text("no document")
    (documents / "a.md").unlink()
    assert re.fullmatch(f"{made}2", json.loads(agent.search("goose"))["index"])
    assert agent.end() == 0


def test_a_broken_link_keeps_nothing_else_out_and_is_tried_again_by_the_next_search(documents: Path) -> None:
    (documents / "broken.md").symlink_to("nowhere.md")
    for _ in range(2):
        write_story(documents / "b.md", "The ferry")
        done = run("query", "notes", "The ferry")
        assert "The ferry." in done.out
        assert "notes: not read: broken.md: a link to nowhere.md: No such file or directory\n" in done.err
    write_story(documents / "nowhere.md", "The night nurse")
    assert "The night nurse." in run("query", "notes", "The night nurse").out


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


def test_a_key_is_printed_once_and_its_entry_beside_it(bundle: Path) -> None:
    made = run("key", "team-a")
    secret = made.err.removeprefix("the key, shown only now: ").removesuffix("\n")
    assert (len(secret), made.out) == (64, f"team-a:{hash_key(secret)}\n")
    limited = run("key", "team-b", "--filter", '{"chapter": 1}', "--bundle", bundle)
    secret = limited.err.removeprefix("the key, shown only now: ").removesuffix("\n")
    assert limited.out == f"team-b:{hash_key(secret)}:{encode_filter({'chapter': 1})}\n"
    wrong = run("key", "a name:")
    assert (wrong.code, wrong.out) == (1, "")
    assert "the key" not in wrong.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mcp", "nowhere"], "nowhere: expected a folder of documents, or a bundle; check the path"),
        (["mcp", "{bundle}", "--watch"], "{bundle}: found a bundle, expected a folder of documents; check the path"),
        (
            ["serve", "{bundle}", "--watch", "--port", "0"],
            "--watch: found {bundle}, expected the folder of the documents; name it with --documents",
        ),
        (
            ["publish", "{bundle}", "s3://b/p", "--keys", "none"],
            "--keys: none: cannot be read (No such file or directory), expected a file of keys",
        ),
        (["publish", "{bundle}", "s3vectors://b/i", "--json"], "--json: is for s3://"),
        (["publish", "{bundle}", "s3vectors://b/i", "--keys", "none"], "--keys: is for s3://"),
        (["publish", "{bundle}", "s3vectors://b/i", "--new-pointer"], "--new-pointer: is for s3://"),
        (["publish", "{bundle}", "s3vectors://b/i", "--other-model"], "--other-model: is for s3://"),
        (["history", "bundle"], "--url: found 'bundle', expected s3://BUCKET/PREFIX"),
        (
            ["query", "{bundle}", "goose", "--like", "story-001"],
            '--text: expected one text, --file or --like; put several words into quotes, "like this"',
        ),
        (["query", "{bundle}", "goose", "--filter", "[1]"], "expected an object of JSON, such as"),
        (
            ["evaluate", "{bundle}", "--questions", "q", "--from-log", "log"],
            "--from-log: is for --make-questions N; add it",
        ),
        (
            ["evaluate", "{bundle}", "--questions", "q", "--run", "r"],
            "--run: writes the hits of one mode; name it with --mode, such as --mode semantic",
        ),
        (
            ["evaluate", "{bundle}", "--questions", "q", "--make-questions", "3"],
            "--questions: expected --questions FILE or --make-questions N",
        ),
        (
            ["model", "convert", "m", "--out", "{bundle}"],
            "{bundle}: holds texts, expected a folder without; choose another folder with --out",
        ),
    ],
)
def test_options_that_do_not_fit_are_an_error(folder: Path, bundle: Path, words: list[str], message: str) -> None:
    done = run(*(word.replace("{bundle}", str(bundle)) for word in words))
    (line,) = done.err.splitlines()
    assert message.replace("{bundle}", str(bundle)) in line, line
    assert (done.code, done.out) == (1 if "expected a folder" in message or "--watch:" in message else 2, "")


def test_models_are_packed_into_a_file_and_unpacked_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Path]] = []
    for name in ("pack", "unpack"):
        monkeypatch.setattr(
            f"semsearch.indexing.models.cache.{name}", lambda file, name=name: asked.append((name, file))
        )
        assert run("model", name, "models.tar").code == 0
    assert asked == [("pack", Path("models.tar")), ("unpack", Path("models.tar"))]
