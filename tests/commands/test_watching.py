"""Indexes that follow the documents of a folder, in one process or in several."""

import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from semsearch.commands import watching
from semsearch.commands.options import NONE_STATED, FolderOptions
from semsearch.commands.places import FolderIndex, bundle_at, kept_index
from semsearch.commands.watching import IndexProcess, main
from semsearch.engine.bundle import PASSAGES, BundleError
from semsearch.engine.passages import Passages
from semsearch.indexing.documents import folder as document_folder
from semsearch.indexing.documents.reading import ReadDocument, Reading, read_document
from semsearch.indexing.make import index
from semsearch.indexing.progress import no_progress
from tests.command_line import run
from tests.commands.running import SEMSEARCH, Agent, write_story
from tests.server.running import eventually


@pytest.fixture
def linked(documents: Path) -> Path:
    """The folder of documents, with links to another one and to its document."""
    (documents.parent / "private").mkdir()
    write_story(documents.parent / "private" / "b.md", "The ferry")
    (documents / "linked").symlink_to("../private")
    (documents / "linked.md").symlink_to("../private/b.md")
    return documents


def at(path: Path) -> FolderIndex:
    """Return the kept index of a document or a folder."""
    return FolderIndex.kept([path])


def texts_of(bundle: Path) -> set[str]:
    passages = Passages(bundle / PASSAGES)
    return {passages.text(row) for row in range(len(passages))}


def test_a_change_of_a_document_alone_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a")
    index = at(tmp_path / "a.md")
    before = index.states()
    (tmp_path / "a.md").write_text("longer than before")
    assert index.states() != before


def test_a_kept_index_has_no_hidden_file_and_nothing_that_links_out_of_the_folder_lead_to(linked: Path) -> None:
    (linked / ".hidden.md").write_text("The hidden note")
    assert texts_of(bundle_at(linked)) == {"An angry goose."}
    assert at(linked).states().keys() == {"a.md"}


@pytest.mark.slow  # starts an agent and waits for its update
def test_what_links_out_of_the_folder_lead_to_is_watched_if_the_index_follows_them(linked: Path) -> None:
    bundle = linked.parent / "bundle"
    shutil.copytree(kept_index(linked), bundle)
    index(linked, bundle, mode="replace", follow_symlinks=True, progress=False)
    assert texts_of(bundle) == {"An angry goose.", "The ferry."}
    with closing(IndexProcess(FolderIndex({"": linked}, bundle), watch=True)) as process:
        assert process.error_of_first() == ""
        write_story(linked / "linked" / "c.md", "The night nurse")
        assert eventually(lambda: "The night nurse." in texts_of(bundle))


@pytest.mark.slow  # starts an agent and waits for its updates
def test_an_update_that_fails_is_reported_and_the_process_is_started_again_when_it_dies(
    documents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (documents / "a.md").rename(documents.parent / "a.md")
    with closing(IndexProcess(at(documents), watch=True)) as process:
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
    with closing(IndexProcess(at(documents), watch=False)) as process:
        assert process.error_of_first() == ""
        assert "broken.md" in str(process.updates.error)


MADE = SimpleNamespace(report=SimpleNamespace(outdated=(), refused=()))  # what an update returns
NOT_READ = SimpleNamespace(report=SimpleNamespace(outdated=("a.md: Permission denied",), refused=("a.md",)))

IN_VAIN = SimpleNamespace(report=SimpleNamespace(outdated=("a.md: odd",), refused=()))


def results(printed: str) -> list[dict[str, Any]]:
    """Return the results of updates that the process which makes an index has printed."""
    return [line for line in map(json.loads, printed.splitlines()) if "error" in line]


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

    monkeypatch.setattr(FolderIndex, "update", update)
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert main(FolderIndex({"": folder}, folder / "b"), watch=True, pause=0.0) == 0
    assert results(capsys.readouterr().out) == [
        {"error": "bundle: No space left on device", "is_made": False},
        {"error": f"{folder}: 1 documents were not read, such as a.md: Permission denied", "is_made": True},
        {"error": "", "is_made": True},
    ]


def test_a_new_index_of_a_folder_has_the_addresses_of_its_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stated = []

    def index(*places: object, **options: Any) -> Any:
        stated.append(options)
        return MADE

    monkeypatch.setattr("semsearch.indexing.make.index", index)
    index_of_folder = FolderIndex({"": folder}, folder / "b", FolderOptions(["c.md"], ["*.py"]))
    assert main(index_of_folder, watch=False) == 0
    assert results(capsys.readouterr().out) == [{"error": "", "is_made": True}]
    (options,) = stated
    assert (options["base_url"], options["exclude"], options["include"]) == ("file:", ["c.md"], ["*.py"])


def test_the_states_of_files_are_the_same_however_their_folder_is_named(
    documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = at(documents).states()
    assert expected.keys() == {"a.md"}
    assert at(Path("notes")).states() == at(documents / "a.md").states() == expected
    monkeypatch.chdir(documents)
    assert at(Path()).states() == at(Path("a.md")).states() == expected


def test_what_patterns_leave_out_is_found_only_by_commands_without_them(
    documents: Path, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (documents / "secrets").mkdir()
    write_story(documents / "secrets" / "b.md", "The ferry")
    patterns = FolderOptions(["secrets/*", "c.md"])
    shutil.copytree(bundle, kept_index(documents, options=patterns))  # for its model
    for _ in range(2):
        assert texts_of(bundle_at(documents, patterns)) == {"An angry goose."}
        assert texts_of(bundle_at(documents)) == {"An angry goose.", "The ferry."}
    capsys.readouterr()
    lengthen(documents / "secrets" / "b.md")
    assert bundle_at("notes", FolderOptions(["c.md", "secrets/*", "c.md"])) == kept_index(documents, options=patterns)
    assert capsys.readouterr().err == ""  # nothing was updated
    others = [kept_index(documents, options=FolderOptions(["secrets/*"])), kept_index(documents)]
    assert kept_index(documents, options=patterns) not in others
    patterns_of_two: list[tuple[list[str], list[str]]] = [
        (["ab"], []),
        (["a", "b"], []),
        (["a"], ["b"]),
        (["b"], ["a"]),
        ([], ["a", "b"]),
        ([], ["ab"]),
        (["", "a", "b"], []),
        ([], ["", "a", "b"]),
        ([], []),
    ]
    kept = [kept_index(documents, options=FolderOptions(exclude, include)) for exclude, include in patterns_of_two]
    assert len({*kept}) == len(patterns_of_two)
    assert kept_index(documents, options=FolderOptions([], ["b", "a", "b"])) == kept[4]


def test_texts_of_other_suffixes_are_searched_by_commands_that_include_them(documents: Path, bundle: Path) -> None:
    (documents / "ferry.py").write_text("# The ferry\n")
    (documents / "picture.png").write_bytes(b"\x89PNG")
    shutil.copytree(bundle, kept_index(documents, options=FolderOptions(include=["*.py"])))  # for its model
    first = run("query", "notes", "ferry", "--json")
    assert [hit["text"] for hit in json.loads(first.out)["results"]] == ["An angry goose."]
    counts = "notes: 2 files are not read (1 .py, 1 .png); --include '*.SUFFIX' reads those that are text\n"
    assert first.err.endswith(counts)
    assert run("query", "notes", "ferry", "--json").err == ""
    agent = Agent("notes", "--include", "*.py")
    assert eventually(lambda: '"id":"ferry.py"' in agent.search("ferry"))
    assert agent.end() == 0
    found = run("query", "notes", "ferry", "--include", "*.py", "--json")
    assert {hit["text"] for hit in json.loads(found.out)["results"]} == {"An angry goose.", "# The ferry"}
    assert found.err == ""


@pytest.mark.parametrize(
    ("names", "counts"),
    [
        (["b.py"], "1 files are not read (1 .py)"),
        (["b.py", "c.md", "c.PY", "d.toml", "Makefile"], "4 files are not read (2 .py, 1 without a suffix, 1 .toml)"),
        ([f"b.{n}" for n in range(10)], f"10 files are not read ({', '.join(f'1 .{n}' for n in range(10))})"),
        (
            [f"b.{n:02}" for n in range(12)],
            f"12 files are not read ({', '.join(f'1 .{n:02}' for n in range(10))}, others)",
        ),
        (["b.\x1b[2J"], "1 files are not read (1 .\\x1b[2j)"),
        (["b.\xe9", "_static/c.py", ".d.py"], "1 files are not read (1 .\xe9)"),
    ],
    ids=["one", "several", "ten", "twelve", "control", "skipped"],
)
def test_a_query_that_makes_an_index_says_which_suffixes_were_not_read(
    names: list[str], counts: str, documents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in names:
        (documents / name).parent.mkdir(exist_ok=True)
        (documents / name).write_text("words")
    bundle_at(documents)
    (line,) = [each for each in capsys.readouterr().err.splitlines() if "files are not read" in each]
    assert line == f"{documents}: {counts}; --include '*.SUFFIX' reads those that are text"
    lengthen(documents / "a.md")
    bundle_at(documents)
    assert "are not read" not in capsys.readouterr().err


def test_a_query_and_an_agent_do_not_find_what_their_patterns_leave_out(documents: Path, bundle: Path) -> None:
    write_story(documents / "b.md", "The ferry")
    shutil.copytree(bundle, kept_index(documents, options=FolderOptions(["b.*"])))  # for its model
    agent = Agent("notes", "--exclude", "b.*")
    assert eventually(lambda: "a.md#story" in (found := agent.search("ferry")) and "b.md" not in found)
    assert agent.index().endswith("; files changed since: 0")
    assert agent.end() == 0
    found = run("query", "notes", "ferry", "--exclude", "b.*", "--json")
    assert [hit["text"] for hit in json.loads(found.out)["results"]] == ["An angry goose."]
    assert found.err == ""


@pytest.mark.parametrize("command", [["query", "{bundle}", "goose"], ["mcp", "{bundle}"]])
def test_a_bundle_is_searched_in_whole_or_not_at_all(bundle: Path, command: list[str]) -> None:
    for option in ("--exclude", "--include"):
        done = run(*(word.format(bundle=bundle) for word in command), option, "a.md")
        expected = "expected a folder of documents; `semsearch index` has this option too"
        assert (done.code, done.out, done.err) == (2, "", f"error: {option}: found the bundle {bundle}, {expected}\n")


def test_an_update_of_a_kept_index_reads_the_changed_documents_alone(
    documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def note(folder: Path, reading: Reading, path: Path) -> ReadDocument:
        read.append(path.name)
        return read_document(folder, reading, path)

    monkeypatch.setattr(document_folder, "read_document", note)
    bundle_at(documents)
    write_story(documents / "b.md", "The ferry")
    bundle_at("notes")  # the same folder by another name
    assert read == ["a.md", "b.md"]
    lengthen(documents / "a.md")
    bundle_at(documents)
    assert read == ["a.md", "b.md", "a.md"]


@pytest.mark.parametrize("name", ["b.md", "cafe\u0301.md"])  # a disk of macOS can return a name in NFD
def test_a_document_that_the_system_refuses_to_read_is_tried_again(
    name: str, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path, reading: Reading, path: Path) -> ReadDocument:
        if path.name == name:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return read_document(folder, reading, path)

    write_story(documents / name, "The ferry")
    with monkeypatch.context() as patch:
        patch.setattr(document_folder, "read_document", refuse)
        assert texts_of(bundle_at(documents)) == {"An angry goose."}
    assert texts_of(bundle_at(documents)) == {"An angry goose.", "The ferry."}


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """What ends `main`, as the end of the process that started it does."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w") as stdout:
        monkeypatch.setattr("sys.stdin", stdin)
        yield stdout.close


class NotedIndex(FolderIndex):
    """An index of which nothing is made: its updates are noted."""

    updated: ClassVar[list[Path]] = []

    def update(self, *given: object) -> Any:
        self.updated.append(self.folders[""])
        return MADE


@pytest.fixture
def updated(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that `watch_with` has updated the index of."""
    monkeypatch.setattr(NotedIndex, "updated", [])
    return NotedIndex.updated


MOST_LOOKS = 40  # that `watch_with` takes


def watch_with(on_look: Callable[[int], object], stop: Callable[[], None], documents: Path, **options: Any) -> None:
    """Watch documents with a clock that is a second later at each look, and call `on_look` then, MOST_LOOKS times."""
    ticks = count()

    def clock() -> float:
        now = next(ticks)
        if now < MOST_LOOKS:
            on_look(now)
        elif now == MOST_LOOKS:
            stop()
        return float(now)

    index = NotedIndex({"": documents}, options.pop("bundle", kept_index(documents)))
    assert main(index, watch=True, interval=0.0, clock=clock, **options) == 0


def lengthen(path: Path) -> None:
    with path.open("a") as file:
        file.write("more\n")


@pytest.mark.parametrize(("patience", "is_read"), [(2.0, True), (math.inf, False)])
def test_a_document_that_is_written_without_end_is_read_after_a_while(
    patience: float,
    is_read: bool,
    documents: Path,
    updated: list[Path],
    stop: Callable[[], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    bundle = documents.parent / "b"
    watch_with(lambda now: lengthen(documents / "a.md"), stop, documents, bundle=bundle, patience=patience)
    assert (len(updated) > 2) == is_read  # the first is that of the start


def test_a_log_beside_the_documents_starts_no_update(
    documents: Path, updated: list[Path], stop: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    bundle_at(documents)
    watch_with(lambda now: lengthen(documents / "app.log"), stop, documents)
    assert updated == []
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"waiting": 0},
        {"error": "", "is_made": True},
    ]


HOLD = """
import fcntl, sys
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(documents: Path) -> Iterator["subprocess.Popen[str]"]:
    """Let another process hold the lock of the kept index, as one does that updates it, until it is killed."""
    lock = kept_index(documents).with_name(f"{kept_index(documents).name}.lock")
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "locked\n"
            yield process
        finally:
            process.kill()


def test_an_index_that_another_process_updates_is_followed_in_silence_until_that_is_killed(
    documents: Path, updated: list[Path], stop: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    bundle_at(documents)
    write_story(documents / "b.md", "The ferry")
    seen: list[tuple[list[Path], str]] = []
    with locked(documents) as other:

        def kill(now: int) -> None:
            if now == MOST_LOOKS // 2:
                seen.append(([*updated], capsys.readouterr().out))
                other.kill()
                other.wait()

        watch_with(kill, stop, documents)
    assert seen == [([], '{"waiting": 1}\n')]
    assert updated == [documents]
    assert results(capsys.readouterr().out) == [{"error": "", "is_made": True}]


def test_what_another_process_has_indexed_is_not_indexed_again(
    documents: Path, updated: list[Path], stop: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    bundle_at(documents)
    write_story(documents / "b.md", "The ferry")

    def update_meanwhile(now: int) -> None:
        if now == 0:
            bundle_at(documents)

    watch_with(update_meanwhile, stop, documents)
    assert updated == []
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[-2:] == [{"waiting": 0}, {"error": "", "is_made": True}]


def test_a_command_that_waited_for_another_process_finds_the_index_current(
    documents: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = at(documents)
    found = kept.states()
    with ExitStack() as other:
        other.enter_context(kept.updating())

        def finish(seconds: float) -> None:
            kept.update(found, no_progress)
            other.close()

        monkeypatch.setattr("semsearch.indexing.replacing.sleep", finish)
        assert texts_of(bundle_at(documents)) == {"An angry goose."}
    said = capsys.readouterr().err
    assert "another process makes the index; waiting for it" in said
    assert "updating the index" not in said


def test_a_query_during_an_update_answers_from_the_older_index_and_says_so(documents: Path) -> None:
    assert run("query", "notes", "goose").code == 0
    write_story(documents / "a.md", "The ferry")
    with at(documents).updating():
        done = run("query", "notes", "goose")
    assert "An angry goose." in done.out
    assert (done.code, done.err) == (0, "notes: another process updates the index; searching the older one\n")
    assert "The ferry." in run("query", "notes", "goose").out


@pytest.mark.parametrize(
    ("words", "is_made", "expected"),
    [(("query", "goose"), False, "An angry goose."), (("verify",), True, "ok")],
)
def test_a_command_waits_for_another_process_where_an_older_index_does_not_do(
    words: tuple[str, ...], is_made: bool, expected: str, documents: Path, bundle: Path
) -> None:
    if not is_made:
        shutil.rmtree(kept_index(documents))
    name, *others = words
    with locked(documents) as other:
        command = [*SEMSEARCH, name, "notes", *others]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert process.stderr.readline() == "notes: another process makes the index; waiting for it\n"
            if not is_made:
                shutil.copytree(bundle, kept_index(documents))  # for its model
            other.kill()
            out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "wait for the index: 100%" in err
    assert expected in out


@pytest.mark.slow  # starts three agents, each with a process that watches
def test_three_agents_on_one_folder_make_one_update_and_any_of_them_goes_on(documents: Path, folder: Path) -> None:
    bundle_at(documents)

    def wait_for(written: str) -> None:
        write_story(documents / "b.md", written)
        for agent in agents:
            assert eventually(lambda agent=agent: f"{written}." in agent.search(written))  # type: ignore[misc]

    with ExitStack() as stack:
        errors = [stack.enter_context((folder / f"errors-{number}").open("wb")) for number in range(3)]
        agents = [Agent("notes", "--watch", errors=file) for file in errors]
        wait_for("The ferry")
        first = agents.pop(0)
        first.process.kill()
        first.end()
        wait_for("The night nurse")
        assert [agent.end() for agent in agents] == [0, 0]
    printed = "".join((folder / f"errors-{number}").read_text() for number in range(3))
    assert printed.count("write the index: 100%") == 2
    assert "error" not in printed


@pytest.mark.slow  # starts an agent and waits for its updates
def test_an_agent_learns_that_a_change_waits_and_of_what_an_update_could_not_read(documents: Path) -> None:
    bundle_at(documents)
    agent = Agent("notes", "--watch")
    assert "; " not in agent.index()
    with at(documents).updating():
        write_story(documents / "b.md", "The ferry")
        assert eventually(lambda: agent.index().endswith("Z; files changed since: 1"))
    assert eventually(lambda: "; " not in agent.index())
    (documents / "broken.md").symlink_to("nowhere.md")
    write_story(documents / "b.md", "The last ferry")
    said = "Z; error of the last update: notes: 1 documents were not read, such as broken.md: a link to nowhere.md: "
    assert eventually(lambda: said in agent.index())
    assert agent.end() == 0


def test_a_query_of_unchanged_documents_imports_no_reader(
    documents: Path, in_a_new_process: Callable[..., Any]
) -> None:
    bundle_at(documents)
    script = """
import json, sys
from semsearch.commands.main import dispatch
dispatch(["query", "notes", "goose"])
print(json.dumps(sorted(name for name in sys.modules if name.startswith("semsearch.indexing."))))
"""
    light = [f"semsearch.indexing.{name}" for name in ("cache", "file_choice", "folder_names", "walking")]
    assert in_a_new_process(script) == light


def test_an_update_that_finds_no_change_opens_no_model(documents: Path, in_a_new_process: Callable[..., Any]) -> None:
    bundle_at(documents)
    script = f"""
import json, sys
from semsearch.commands.main import dispatch
dispatch(["index", "notes", "--out", {str(kept_index(documents))!r}])
print(json.dumps("onnxruntime" in sys.modules))
"""
    assert not in_a_new_process(script)


class Died:
    """A process that has printed lines and ended with a code."""

    pid = 7

    def __init__(self, code: int, *printed: object) -> None:
        self.returncode = code
        self.stdout = [*map(json.dumps, printed), "a library printed this\n"]

    def __enter__(self) -> "Died":
        return self

    def __exit__(self, *error: object) -> None:
        self.closed = True


def follow(
    monkeypatch: pytest.MonkeyPatch, processes: list[Died], *, watch: bool, options: FolderOptions = NONE_STATED
) -> tuple[IndexProcess, list[list[str]]]:
    """Follow processes that die one after the other; return what followed them and the commands that started them."""
    commands = []

    def start(command: list[str], stdin: int, stdout: int, text: bool) -> Died:
        assert (stdin, stdout, text) == (subprocess.PIPE, subprocess.PIPE, True)
        commands.append(command[command.index("-c") + 2 :])
        return processes.pop(0)

    monkeypatch.setattr("semsearch.commands.watching.SECONDS_BEFORE_RESTART", 0)
    monkeypatch.setattr("subprocess.Popen", start)
    followed = IndexProcess(FolderIndex({"": Path("notes")}, Path("bundle"), options), watch=watch)
    followed._following.join(60)
    assert not followed._following.is_alive()
    return followed, commands


FIRST_FAILED: Any = {"error": "no files", "is_made": False}
DONE: Any = {"error": "", "is_made": True}
IN_PART: Any = {"error": "a.md: refused", "is_made": True}


def test_what_a_process_prints_is_noted_and_each_new_error_after_the_first_update_reported_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    later = FIRST_FAILED | {"error": "disk full"}
    first = Died(-signal.SIGKILL, {"waiting": 2}, FIRST_FAILED, FIRST_FAILED, DONE, IN_PART, IN_PART, later)
    followed, commands = follow(monkeypatch, [first, Died(-signal.SIGINT, {"waiting": 3})], watch=True)
    killed = "notes: the process that makes its index was ended by the signal SIGKILL; it was started again"
    assert capsys.readouterr().err.splitlines() == [f"error: {each}" for each in ("a.md: refused", "disk full", killed)]
    assert [words[1:] for words in commands] == [["--watch"]] * 2
    assert (followed.updates.waiting, followed.updates.error, followed.updates.failures) == (3, killed, 6)
    assert (followed.error_of_first(), followed.number) == ("", 7)
    followed.wait_until_made()


def test_a_process_that_makes_an_index_once_ends_after_its_first_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    followed, commands = follow(monkeypatch, [Died(1, FIRST_FAILED)], watch=False)
    assert (followed.error_of_first(), len(commands[0])) == ("no files", 1)
    options = FolderOptions(["a b", "--watch"], ["--exclude=c"], ["notes=\udce9 = \u00e9"])
    followed, commands = follow(monkeypatch, [Died(0, IN_PART)], watch=False, options=options)
    ((argument,),) = commands
    assert argument.isascii()
    assert watching._from_argument(argument) == FolderIndex({"": Path("notes")}, Path("bundle"), options)
    assert (followed.error_of_first(), followed.updates.error) == ("", "a.md: refused")
    followed, _ = follow(monkeypatch, [Died(3)], watch=False)
    ended = "notes: the process that makes its index ended with exit code 3; run the command again"
    assert followed.error_of_first() == ended
    followed, _ = follow(monkeypatch, [Died(-signal.SIGINT)], watch=False)
    assert followed.error_of_first(0) is None
    assert capsys.readouterr().err == "error: a.md: refused\n"


class Watched:
    """Files whose states change at each look, a second after another, and the looks at which they are indexed."""

    def __init__(self, states: str, outcomes: list[Any], stop: Callable[[], None]) -> None:
        self.states, self.outcomes, self.stop = states, outcomes, stop
        self.now, self.look, self.updates = -1.0, -1, list[int]()

    def states_now(self) -> dict[str, list[int]]:
        self.look += 1
        self.now = max(self.now, float(self.look))
        if self.look == len(self.states) - 1:
            self.stop()
        if self.states[self.look] == "!":
            raise PermissionError(errno.EACCES, "Permission denied", "notes")
        return {"a.md": [ord(self.states[self.look])]}

    def update(self, found: object, on_progress: object) -> Any:
        self.updates.append(self.look)
        seconds, outcome = self.outcomes.pop(0) if self.outcomes else (0, MADE)
        self.now += seconds
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@pytest.mark.parametrize(
    ("states", "outcomes", "updates", "printed"),
    [
        # a change is read when the next look finds the same, or 3 seconds after the first of several
        ("aabbb", [], [0, 3], [{"waiting": 1}, {"waiting": 0}, DONE, {"waiting": 1}, {"waiting": 0}, DONE]),
        ("abcdefff", [], [0, 4, 6], [{"waiting": 1}, {"waiting": 0}, DONE] * 3),
        # an update that failed is tried again after 2 seconds, or after ten times as long as it took
        (
            "a" * 11,
            [(0, OSError(errno.ENOSPC, "No space left", "x")), (0.55, ValueError("odd")), (0, MADE)],
            [0, 2, 9],
            [
                *({"waiting": 1}, {"waiting": 0}, {"error": "x: No space left", "is_made": False}),
                *({"error": "{folder}: ValueError('odd')", "is_made": False}, DONE),
            ],
        ),
        # documents that no other try can read are not tried again
        (
            "aaaa",
            [(0, IN_VAIN)],
            [0],
            [
                {"waiting": 1},
                {"waiting": 0},
                {"error": "{folder}: 1 documents were not read, such as a.md: odd", "is_made": True},
            ],
        ),
        (
            "a!!a",
            [],
            [0],
            [
                {"waiting": 1},
                {"waiting": 0},
                DONE,
                {"error": "{folder}: [Errno 13] Permission denied: 'notes'", "is_made": False},
                DONE,
            ],
        ),
    ],
)
def test_files_are_read_when_they_are_still_and_again_after_a_failure(
    states: str,
    outcomes: list[Any],
    updates: list[int],
    printed: list[Any],
    folder: Path,
    stop: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    watched = Watched(states, [*outcomes], stop)
    monkeypatch.setattr(FolderIndex, "states", lambda index: watched.states_now())
    monkeypatch.setattr(FolderIndex, "update", lambda index, *given: watched.update(*given))
    arguments: Any = {"pause": 2.0, "interval": 0.0, "patience": 3.0, "clock": lambda: watched.now}
    assert main(FolderIndex({"": folder}, folder / "b"), watch=True, **arguments) == 0
    out, err = capsys.readouterr()
    assert watched.updates == updates
    assert [json.loads(line.replace(str(folder), "{folder}")) for line in out.splitlines()] == printed
    assert ("Traceback" in err) == ("odd" in out and len(updates) > 1)


def test_an_update_that_is_made_once_says_by_its_code_whether_there_is_an_index(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def update(*arguments: object) -> Any:
        raise BundleError("b: is damaged\nin two lines")

    monkeypatch.setattr(FolderIndex, "update", update)
    assert main(FolderIndex({"": folder}, folder / "b"), watch=False) == 1
    printed = {"error": "b: is damaged", "is_made": False}
    assert results(capsys.readouterr().out) == [printed]


def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """Return the steps of the progress that commands display from now on."""
    seen: list[tuple[str, float]] = []

    @contextmanager
    def showing(console: Any) -> Iterator[Callable[..., None]]:
        assert console.stderr
        yield lambda step, share, texts=0: seen.append((step, share))

    monkeypatch.setattr("semsearch.indexing.progress.showing_progress", showing)
    return seen


def test_a_command_that_waits_says_so_once_and_looks_again_until_the_lock_is_free(
    documents: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen, pauses = steps(monkeypatch), list[float]()
    bundle_at(documents)
    capsys.readouterr()
    seen.clear()
    write_story(documents / "b.md", "The ferry")
    write_story(documents / "c.md", "The night nurse")
    (documents / "a.md").unlink()
    with ExitStack() as other:
        other.enter_context(at(documents).updating())

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 2:
                other.close()

        monkeypatch.setattr("semsearch.indexing.replacing.sleep", pause)
        assert texts_of(bundle_at(documents)) == {"The ferry.", "The night nurse."}
    assert pauses == [0.2, 0.2]
    assert seen[:3] == [("wait for the index", 0), ("wait for the index", 0), ("wait for the index", 1)]
    assert capsys.readouterr().err.splitlines() == [
        f"{documents}: another process makes the index; waiting for it",
        f"{documents}: 2 files are new or have changed, 1 are gone; updating the index",
    ]
    seen.clear()
    assert bundle_at(documents) == kept_index(documents)
    assert (seen, capsys.readouterr().err) == ([], "")


def test_the_process_that_makes_an_index_names_options_of_the_command(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\nx,y\n")
    with closing(IndexProcess(FolderIndex({"": rows}, tmp_path / "bundle"), watch=False)) as process:
        error = process.error_of_first(60)
    assert error is not None
    assert error.endswith("name the one to embed with --text-column")
