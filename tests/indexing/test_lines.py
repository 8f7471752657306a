"""Lines of documents from the index to what is read of it: searches, passages, agents and terminals; and updates."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from semsearch import Search, index, remove
from semsearch.engine.bundle import PASSAGES
from semsearch.engine.loading import load, load_bundle
from semsearch.engine.passages import NO_LINES, SOURCE_LINES, Passages
from semsearch.engine.tensors import TensorsError
from semsearch.indexing.documents import recipe
from semsearch.indexing.verification import verify
from tests.app.mcp.test_messages import call, content_of, tools_of
from tests.app_fixtures import connect_app
from tests.command_line import run

FRONT_MATTER = "---\nlines: [1, 2]\ncells: many\n# a comment\n---\n"
GOOSE = "# Goose\n\nAn angry\ngoose.\n\n# Duck\n\nA calm duck.\n"
NOTEBOOK: dict[str, Any] = {"cells": [{"cell_type": "markdown", "source": "# Book\n\nA swan."}], "nbformat": 4}
ALL = {"goose.md": [[8, 9], [13, 13]], "page.html": [None], "swan.ipynb": [[3, 3]]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a format that has lines, a notebook and one that has none."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "goose.md").write_text(FRONT_MATTER + GOOSE)
    (tmp_path / "docs" / "page.html").write_text("<h1>Hen</h1><p>A hen.</p>")
    (tmp_path / "docs" / "swan.ipynb").write_text(json.dumps(NOTEBOOK))
    return tmp_path / "docs"


@pytest.fixture
def made(folder: Path, out: Path) -> Path:
    index(folder, out, progress=False)
    return out


@pytest.fixture
def client(made: Path) -> httpx.Client:
    return connect_app(load(made))


def lines_of(bundle: Path) -> dict[str, list[Any]]:
    """Return the first and the last line of each passage, by the path of its document."""
    found: dict[str, list[Any]] = {}
    passages = Passages(bundle / PASSAGES)
    for row in range(len(passages)):
        lines = passages.lines(row)
        found.setdefault(passages.metadata(row)["path"], []).append(lines and [lines.first, lines.last])
    return found


def test_an_index_has_lines_that_no_front_matter_overwrites_and_no_column_has(made: Path) -> None:
    assert lines_of(made) == ALL
    bundle = load_bundle(made)
    assert bundle.passages.metadata(0)["lines"] == ["1", "2"]
    assert set(bundle.manifest.corpus.columns) & {"lines", "cells"} == {"cells", "lines"}  # those of the front matter
    assert all(check.passed for check in verify(made))


def test_hits_passages_and_documents_state_lines_and_cells(made: Path, client: httpx.Client) -> None:
    def shown(text: Mapping[str, Any]) -> tuple[Any, Any]:
        return text.get("lines"), text.get("cells")

    found = client.post("/similar", json={"text": "angry goose", "num_results": 4}).json()["results"]
    expected: dict[str, tuple[Any, Any]] = {"goose.md#goose:1": ([8, 9], None), "goose.md#duck:1": ([13, 13], None)}
    expected |= {"page.html:1": (None, None), "swan.ipynb#book:1": ([3, 3], [1, 1])}
    assert {each["id"]: shown(each) for each in found} == expected
    small = client.post("/similar", json={"text": "angry goose", "include": ["text"]}).json()["results"]
    assert [shown(each) for each in small] == [(None, None)] * 4
    around = client.get("/passages/goose.md%23goose:1?after=1").json()
    assert (around["lines"], around["after"][0]["lines"]) == ([8, 9], [13, 13])
    assert [shown(each) for each in client.get("/documents/swan.ipynb").json()["passages"]] == [([3, 3], [1, 1])]
    hits = Search(made).search("angry goose", top_k=4)
    assert {hit.id: (hit.lines or None, hit.cells or None) for hit in hits} == expected


def test_agents_read_paths_and_lines(client: httpx.Client) -> None:
    results = content_of(call(client, "search", query="angry goose"))["results"]
    shown = {each["id"]: (each["path"], each.get("lines"), each.get("cells")) for each in results}
    assert shown == {
        "goose.md#goose": ("goose.md", [8, 9], None),
        "goose.md#duck": ("goose.md", [13, 13], None),
        "page.html": ("page.html", None, None),
        "swan.ipynb#book": ("swan.ipynb", [3, 3], [1, 1]),
    }
    for id, lines in (("goose.md#goose", [8, 9]), ("goose.md", [8, 13]), ("goose.md#duck:1", [8, 13])):
        assert content_of(call(client, "fetch", id=id))["lines"] == lines
    assert content_of(call(client, "fetch", id="swan.ipynb"))["cells"] == [1, 1]
    assert "lines" not in content_of(call(client, "fetch", id="page.html"))
    around = content_of(call(client, "fetch", id="goose.md#duck:1", before=1))
    assert (around["lines"], [each["lines"] for each in around["before"]]) == ([13, 13], [[8, 9]])
    own = tools_of(client)[0]
    assert own["description"].count("lines") == 1  # the column of the front matter


def test_a_query_prints_paths_and_lines_that_a_terminal_opens(
    folder: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("angry goose", "--num-results", "4", "--mode", "semantic")
    expected = {"goose.md:8", "goose.md:13", "page.html:1", "swan.ipynb cell 1:3"}  # a page has an id in their place
    assert {line[8:].split("  ")[0] for line in run("query", made, *words).out.splitlines()} == expected
    monkeypatch.setattr("semsearch.commands.query.bundle_at", lambda *_, **__: made)
    monkeypatch.chdir(folder.parent)
    for place, before in (("docs", "docs/"), ("docs/", "docs/"), ("docs/goose.md", "docs/"), (folder, f"{folder}/")):
        lines = run("query", place, "angry goose", "--num-results", "1", "--oneline").out.splitlines()
        assert [line[8:] for line in lines] == [f"{before}goose.md:8  An angry goose."]
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("semsearch.commands.query._is_terminal", lambda: True)
    card = run("query", "docs", "angry goose", "--num-results", "1").out.splitlines()
    assert card[1:] == ["        docs/goose.md:8", "        An angry goose.", "        · Duck"]
    (reply,) = map(json.loads, run("query", "docs", *words, "--json").out.splitlines())
    assert [each.get("lines") for each in reply["results"]].count(None) == 1


def test_lines_that_moved_are_updated_and_nothing_is_embedded_again(folder: Path, made: Path) -> None:
    (folder / "goose.md").write_text(FRONT_MATTER + "\n\n" + GOOSE)
    assert index(folder, made, progress=False).rows.embedded == 0
    assert lines_of(made) == ALL | {"goose.md": [[10, 11], [15, 15]]}


def test_lines_that_moved_at_the_same_characters_are_updated(folder: Path, made: Path) -> None:
    (folder / "goose.md").write_text(FRONT_MATTER.replace("a comment", "a\n#omment") + GOOSE)
    assert index(folder, made, progress=False).rows.embedded == 0
    assert lines_of(made) == ALL | {"goose.md": [[9, 10], [14, 14]]}


def test_an_older_index_gets_lines_at_its_next_update(folder: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        older.setattr(recipe, "READERS_VERSION", recipe.READERS_VERSION - 1)
        older.setattr("semsearch.indexing.documents.lines.FileLines.of", lambda *_: NO_LINES)
        older.setattr("semsearch.indexing.documents.lines.CellLines.of", lambda *_: NO_LINES)
        index(folder, out, progress=False)
    assert SOURCE_LINES not in load_file(out / PASSAGES)
    found = connect_app(load(out)).post("/similar", json={"text": "goose"}).json()["results"]
    assert [each for each in found if "lines" in each] == []
    assert index(folder, out, progress=False).rows.embedded == 0
    assert lines_of(out) == ALL


def test_texts_that_stay_after_a_removal_keep_their_lines(made: Path) -> None:
    remove(["goose.md#goose:1"], made)
    assert lines_of(made) == ALL | {"goose.md": [[13, 13]]}


def test_a_table_has_no_lines(out: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "a", "text": "a goose", "path": "a"}\n')
    index(tmp_path / "a.jsonl", out, progress=False)
    assert SOURCE_LINES not in load_file(out / PASSAGES)
    assert Passages(out / PASSAGES).lines(0) is None


def test_lines_of_another_shape_are_refused(made: Path) -> None:
    tensors = load_file(made / PASSAGES)
    tensors[SOURCE_LINES] = np.zeros((3, 4), np.uint32)
    save_file(tensors, made / PASSAGES)
    with pytest.raises(TensorsError, match=r"the tensor lines is uint32 of the shape \(3, 4\), expected .* \(4, 4\)"):
        Passages(made / PASSAGES)
