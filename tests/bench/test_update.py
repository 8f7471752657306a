"""The whole measurement over tiny sources, and what it writes, edits and counts."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import update as module
from bench.costs import Cost, measure, measure_second
from bench.peers import stores
from bench.work import Texts
from semsearch.engine.bundle import MANIFEST
from semsearch.engine.loading import load_bundle
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.make import index

BURN = "import time\nwhile time.process_time() < 0.3: pass"  # a program that takes 0.3 processor seconds


@pytest.mark.slow  # runs a whole measurement with small sizes
def test_it_measures_every_update_of_every_source_and_writes_a_table(
    tmp_path: Path, bundle: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.tables.RESULTS", tmp_path)
    monkeypatch.setattr(module, "read_texts", lambda data, count: Texts("stories", list(corpus.texts[:40])))
    monkeypatch.setattr(module, "peer_python", lambda work, name: Path(sys.executable))
    monkeypatch.setattr(module, "STORES", ())

    def first_index(source: Path, out: Path) -> Cost:
        return measure(lambda: index(source, out, update=bundle, mode="replace", progress=False))

    monkeypatch.setattr(module, "first_index", first_index)
    module.update(documents="3", notes="2", rows="50,60", rounds=1, work=tmp_path, data=tmp_path)
    found = json.loads((tmp_path / "update.json").read_text())
    kinds = {
        "3 documents": {module.SAME, module.EDITED, module.EDITED_IN_PROGRAM, module.WATCHED},
        "2 notes": {module.SAME, module.EDITED, module.EDITED_IN_PROGRAM, module.WATCHED},
        "40 rows": {module.UPSERTED, module.REMOVED},
    }
    for name, expected in kinds.items():
        assert found[name].keys() == {module.FIRST, *expected, "bytes"}
        assert all(len(found[name][kind]) == 1 for kind in expected)
        assert all(cost["processor"] > 0 for kind in expected for cost in found[name][kind])
    assert "| processor, wall s | 3 documents | 2 notes | 40 rows |" in (tmp_path / "update.md").read_text()
    folder = tmp_path / "update" / "stories"
    edited = (folder / "documents-3" / "000" / "00001.md").read_text().splitlines()[-1]
    passages = load_bundle(folder / "documents-3-bundle").passages
    assert any(edited in passages.text(row) for row in range(len(passages)))
    kept, changed = (load_bundle(folder / f"rows-40-{name}").passages for name in ("bundle", "bundle-copy"))
    assert (len(kept), len(changed)) == (40, 38)


def test_smaller_folders_are_the_first_documents_and_an_edit_changes_the_last_line_of_one(
    tmp_path: Path, corpus: Corpus
) -> None:
    small, large = (module.write_documents(tmp_path / f"documents-{n}", corpus.texts, n) for n in (3, 102))
    texts = {path.relative_to(small): path.read_text() for path in sorted(small.rglob("*.md"))}
    assert texts == {path: (large / path).read_text() for path in texts}
    assert len(set(texts.values())) == len(texts) == 3
    assert all(1_000 < len(text) < 1_300 and text.count("#") == 3 for text in texts.values())
    assert (large / "001" / "00101.md").exists()
    seen = [texts[Path("000/00001.md")]]
    for _ in range(2):
        module.edit(small)
        seen.append((small / "000" / "00001.md").read_text())
    assert len(set(seen)) == 3
    assert len({text.rpartition("\n")[0].rpartition("\n")[0] for text in seen}) == 1
    assert module.write_documents(small, corpus.texts, 3) == small
    assert (small / "000" / "00001.md").read_text() == seen[-1]  # a folder is written once


def test_a_cost_is_the_processor_time_of_the_process_and_its_children() -> None:
    command = [sys.executable, "-c", BURN]
    assert measure(lambda: subprocess.run(command, check=True)).processor >= 0.3

    def act() -> None:
        begin = time.process_time()
        while time.process_time() < begin + 0.3:
            pass

    assert measure(act).processor >= 0.3


def test_only_the_second_call_counts() -> None:
    commands = iter([[sys.executable, "-c", BURN], [sys.executable, "-S", "-c", ""]])
    assert 0 < measure_second(lambda: subprocess.run(next(commands), check=True)).processor < 0.3


def test_files_that_the_manifest_lacks_are_those_that_no_search_needs(bundle_copy: Path) -> None:
    before = module.bytes_of(bundle_copy)
    (bundle_copy / "further.bin").write_bytes(bytes(1_000))
    after = module.bytes_of(bundle_copy)
    assert {name: after[name] - size for name, size in before.items()} == {"all": 1_000, "for updates": 1_000}
    assert 0 <= before["for updates"] < (bundle_copy / MANIFEST).stat().st_size


def test_a_cell_has_the_medians_and_is_empty_where_a_source_has_no_such_update() -> None:
    seen = {
        "3 documents": {"edited": [Cost(1, 30), Cost(3, 10), Cost(2, 20)]},
        "3 rows": {"removed": [Cost(0.125, 1_000)]},
    }
    sizes = {"3 documents": {"for updates": 100_000, "all": 2_000_000}, "3 rows": {"for updates": 0, "all": 10**9}}
    columns, rows = module.table(seen, sizes)
    assert columns == ["processor, wall s", "3 documents", "3 rows"]
    assert rows == [
        ["edited", "2.00, 20.00", ""],
        ["removed", "", "0.12, 1,000.00"],
        ["MB on disk that no search needs", "0.1 of 2.0", "0.0 of 1,000.0"],
    ]


def test_a_store_gets_all_rows_and_two_texts_for_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = module.write_rows(tmp_path / "rows.csv", ["One, two", "Three", "Four"])
    np.save(tmp_path / "rows.npy", np.eye(3, dtype=np.float32))
    upserted: list[stores.Row] = []

    def open_store(folder: Path, rows: list[stores.Row], embeddings: Any) -> stores.Upsert:
        assert rows[0] == {"id": "t-0", "text": "One, two", "initial": "o", "characters": 8}
        assert (len(rows), embeddings.shape) == (3, (3, 3))
        return lambda row, embedding: upserted.append(row)

    monkeypatch.setitem(stores.STORES, "List", open_store)
    stores.main("List", tmp_path / "store", table, tmp_path / "rows.npy")
    assert json.loads(capsys.readouterr().out).keys() == {"List, one row upserted"}
    assert [row["id"] for row in upserted] == ["t-1", "t-1"]
    assert len({row["text"] for row in upserted}) == 2
