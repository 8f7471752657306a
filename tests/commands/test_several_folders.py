"""Commands over several folders of documents: one index, which is kept, served, and follows the files."""

import json
import shutil
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from semsearch.commands import watching
from semsearch.commands.options import FolderOptions
from semsearch.commands.places import FolderIndex, PlaceError, kept_index
from semsearch.commands.serve import bundle_of
from semsearch.engine.bundle import PASSAGES
from semsearch.engine.passages import Passages
from semsearch.indexing.corpus import CorpusError
from semsearch.indexing.progress import no_progress
from tests.command_line import error_line, run
from tests.commands.running import Agent, write_story
from tests.server.running import eventually

FOLDERS = [Path("notes"), Path("a/docs"), Path("b/docs")]
NAMES = ["a/docs", "b/docs", "notes"]


@pytest.fixture
def world(folder: Path, bundle: Path) -> Path:
    """Three folders of documents, two of one name, and a kept index so that the tests' model embeds them."""
    for path, text in zip(FOLDERS, ("An angry goose", "The ferry", "The night nurse"), strict=True):
        path.mkdir(parents=True)
        write_story(path / "x.md", text)
    shutil.copytree(bundle, kept_index(*FOLDERS))
    return folder


def kept(**options: Any) -> FolderIndex:
    return FolderIndex.kept(FOLDERS, FolderOptions(**options))


def update(index: FolderIndex) -> None:
    index.update(index.states(), no_progress)


def ids_of(bundle: Path) -> list[str]:
    passages = Passages(bundle / PASSAGES)
    return [passages[row].id for row in range(len(passages))]


def test_several_folders_have_one_kept_index_in_any_order(world: Path) -> None:
    assert len({kept_index(*paths) for paths in permutations(FOLDERS)}) == 1
    others = [FOLDERS[:2], FOLDERS[1:], FOLDERS[:1]]
    others_named = {kept_index(*paths) for paths in others} | {
        kept_index(FOLDERS[0], options=FolderOptions(["a/docs"]))
    }
    assert len(others_named | {kept_index(*FOLDERS)}) == 5
    assert kept_index(Path("a/docs"), Path("b/docs")) != kept_index(Path("a/docs"), Path("c/docs"))
    named = kept_index(*FOLDERS).name
    assert named.startswith("docs-docs-notes-")
    assert len(kept_index(*(Path(f"{n}-{'long' * 9}") for n in range(40))).name) < 100


def test_the_states_of_files_begin_with_the_name_of_their_folder_and_change_with_them(world: Path) -> None:
    index = kept()
    assert index.known_states() is None
    update(index)
    assert index.known_states() == index.states()
    assert list(index.states()) == [f"{name}/x.md" for name in NAMES]
    write_story(world / "b" / "docs" / "y.md", "An old sailor")
    known = index.known_states() or {}
    assert index.states().keys() - known.keys() == {"b/docs/y.md"}
    excluded = kept(exclude=["notes/x.md", "docs/y.md"])
    assert list(excluded.states()) == ["a/docs/x.md", "b/docs/x.md"]


@pytest.mark.parametrize("is_empty", [False, True], ids=["missing", "empty"])
def test_a_folder_that_is_not_mounted_changes_nothing_and_is_named(world: Path, is_empty: bool) -> None:
    index = kept()
    assert index.missing() == ""
    update(index)
    (world / "notes").rename(world / "elsewhere")
    if is_empty:
        (world / "notes").mkdir()
    assert index.states() == index.known_states()
    assert index.missing() == "notes: missing or empty; the older texts are searched"
    write_story(world / "a" / "docs" / "x.md", "An old sailor")
    update(index)
    assert ids_of(index.bundle) == [f"{name}/x.md#story:1" for name in NAMES]
    assert index.states() == index.known_states()
    shutil.rmtree(world / "notes", ignore_errors=True)
    (world / "elsewhere").rename(world / "notes")
    assert (index.states() == index.known_states(), index.missing()) == (True, "")


def test_a_new_empty_folder_is_not_missing(world: Path) -> None:
    (world / "notes" / "x.md").unlink()
    index = kept()
    update(index)
    assert (index.missing(), ids_of(index.bundle)) == ("", ["a/docs/x.md#story:1", "b/docs/x.md#story:1"])


def test_other_descriptions_make_an_update(world: Path) -> None:
    described = kept(describe=["notes=Minutes"])
    update(kept())
    assert described.known_states() is None
    update(described)
    assert described.known_states() == described.states()
    assert kept().known_states() is None


def test_an_agent_searches_all_folders_and_reads_what_each_has(world: Path) -> None:
    describe = ("--describe", "notes=minutes of meetings.", "--describe", "a/docs=the manual")
    agent = Agent(*map(str, FOLDERS), *describe)
    assert eventually(lambda: "notes/x.md" in agent.search("goose"))
    (tool, *_) = agent.ask("tools/list")["tools"]
    assert tool["name"] == "search_a_docs_b_docs_notes"
    assert "folder (string: a/docs, b/docs, notes)" in tool["description"]
    described = " The folder a/docs has the manual. The folder notes has minutes of meetings."
    assert tool["description"].endswith(described)
    assert "folder_description (" not in tool["description"]
    found = {hit["path"]: hit.get("folder_description") for hit in json.loads(agent.search("goose"))["results"]}
    assert found == {"a/docs/x.md": "the manual", "b/docs/x.md": None, "notes/x.md": "minutes of meetings."}
    (world / "notes").rename(world / "elsewhere")
    assert agent.index().endswith("error of the last update: notes: missing or empty; the older texts are searched")
    assert "notes/x.md" in agent.search("goose")
    assert agent.end() == 0
    again = Agent("b/docs", "notes", "a/docs", *describe)  # without an update
    assert "notes/x.md" in again.search("goose")
    assert "notes: missing or empty" in again.index()
    assert again.end() == 0


def test_a_watched_index_follows_all_folders_and_says_which_is_missing(world: Path) -> None:
    index = kept()
    with closing(watching.IndexProcess(index, watch=True)) as process:
        assert process.error_of_first(60) == ""
        write_story(world / "b" / "docs" / "y.md", "An old sailor")
        assert eventually(lambda: "b/docs/y.md#story:1" in ids_of(index.bundle))
        (world / "notes").rename(world / "elsewhere")
        assert eventually(lambda: (process.updates.error or "").startswith("notes: missing or empty"))
        (world / "elsewhere").rename(world / "notes")
        assert eventually(lambda: not process.updates.error)


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (["notes", "{bundle}"], "{bundle}: found a bundle, expected a folder of documents; check the path"),
        (["a", "a/docs"], "in it, which is named too, expected folders of which none is in another; leave one out"),
        (["no", "nor"], "no, nor: expected a folder of documents, or a bundle; check the path"),
        ([], "mcp: expected a folder of documents, or a bundle; check the path"),
    ],
    ids=["bundle", "inside", "missing", "none"],
)
def test_an_agent_is_refused_for_other_places(world: Path, bundle: Path, places: list[str], expected: str) -> None:
    line = error_line(run("mcp", *(place.format(bundle=bundle) for place in places)))
    assert line.endswith(expected.format(bundle=bundle))


def test_a_server_has_the_index_of_all_folders(world: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[FolderIndex, bool]] = []

    class Process:
        def __init__(self, index: FolderIndex, *, watch: bool) -> None:
            made.append((index, watch))

        def error_of_first(self) -> str:
            return ""

        def close(self) -> None:
            pass

    monkeypatch.setattr(watching, "IndexProcess", Process)
    places = [*map(str, FOLDERS)]
    with bundle_of(places, watch=False, options=FolderOptions(["x"])) as (found, _):
        assert found == str(kept(exclude=["x"]).bundle)
    with bundle_of([str(bundle)], watch=True, documents=FOLDERS) as (found, _):
        assert found == str(bundle)
    folders = {name: world / name for name in NAMES}
    assert made == [(kept(exclude=["x"]), False), (FolderIndex(folders, bundle), True)]
    refused: list[tuple[list[str], list[Path], type[Exception]]] = [
        (["notes", str(bundle)], [], PlaceError),
        ([str(bundle)], [Path("notes"), bundle], PlaceError),
        ([str(bundle)], [Path("a"), Path("a/docs")], CorpusError),
    ]
    for wrong, documents, error in refused:
        with pytest.raises(error, match="expected"), bundle_of(wrong, watch=True, documents=documents):
            pass


def test_the_agent_of_several_folders_has_an_entry_of_its_own(world: Path) -> None:
    def install(*words: str) -> dict[str, Any]:
        assert run("install-mcp", "claude-code", *words, "--write").code == 0
        found: dict[str, Any] = json.loads((world / ".mcp.json").read_text())["mcpServers"]
        return found

    install("notes")
    install("notes", "a/docs", "--watch", "--describe", "notes=my minutes")
    found = install("a/docs", "notes", "--exclude", "x y")
    assert list(found) == ["notes", "docs-notes"]
    paths = [str(world / "a" / "docs"), str(world / "notes")]
    assert found["docs-notes"]["args"][-3:] == [*paths, "--exclude=x y"]
    assert found["notes"]["args"][-1] == paths[1]
    assert list(install("b/docs", "notes")) == ["notes", "docs-notes", "docs-notes-2"]
    assert list(install("notes", "--watch")) == ["notes", "docs-notes", "docs-notes-2"]
    (world / ".mcp.json").unlink()
    install("notes", "a/docs")
    assert list(install("notes")) == ["docs-notes", "notes"]
    done = run("install-mcp", "other", "a/docs", "notes", "--watch", "--describe", "notes=my minutes")
    (words,) = [each["args"] for each in json.loads(done.out)["mcpServers"].values()]
    assert words[-4:] == [*paths, "--describe=notes=my minutes", "--watch"]
