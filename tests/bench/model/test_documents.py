"""The documents and texts that `bench documents` ranks, and the whole measurement with a tiny model."""

import argparse
import gzip
import json
from pathlib import Path

import pytest

from bench.model import documents
from bench.model.documents import join
from bench.texts import CISI, SCIFACT, Retrieval

ABSTRACTS = {"a": "A one two", "b": "B three four", "c": "C five six"}
TEST = Retrieval(ABSTRACTS, {"1": "one", "2": "six"}, {"1": {"a"}, "2": {"a", "c"}}, {"a": "A", "b": "B", "c": "C"})


def test_abstracts_become_sections_of_long_documents() -> None:
    test, (first, second) = join(TEST, 4)
    assert (list(test.documents), test.relevant) == (["0", "1"], {"1": {"0"}, "2": {"0", "1"}})
    (part,) = first.parts
    assert [part.text[block.start : block.end].strip() for block in part.blocks] == ["A", "one two", "B", "three four"]
    assert [part.text for part in second.parts] == ["C five six\n\n"]


def test_it_ranks_every_set_and_reads_every_format(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path / SCIFACT, tmp_path / CISI):
        folder.mkdir(parents=True)
        with gzip.open(folder / "corpus.jsonl.gz", "wt") as file:
            for id, text in ABSTRACTS.items():
                print(json.dumps({"_id": id, "title": text[0], "text": text[2:]}), file=file)
        (folder / "queries.jsonl").write_text('{"_id": "1", "text": "one two"}\n')
        (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\none two\n")
    (tmp_path / "docs" / "b.txt").write_text("three\n")
    monkeypatch.setattr("bench.report.RESULTS", tmp_path / "results")
    parser = argparse.ArgumentParser()
    documents.add_arguments(parser)
    options = ["--data", str(tmp_path), "--bundle", str(bundle), "--folder", str(tmp_path / "docs")]
    assert documents.run(argparse.Namespace(**vars(parser.parse_args(options)), work=tmp_path / "work")) == 0
    formats = json.loads((tmp_path / "results" / "formats.json").read_text())["results"]
    assert [row[:3] for row in formats] == [["Markdown", 1, 1], ["plain text", 1, 1]]
    rows = json.loads((tmp_path / "results" / "documents.json").read_text())["results"]
    names = [(name, documents) for name in ("scifact", "cisi") for documents in (3, 1)]
    assert [(row[0], row[1]) for row in rows] == [name for name in names for method in range(4)]
    assert [row[3] for row in rows[3::4]] == [3, 1, 3, 1]  # small sections of one document are one passage
    assert all(row[4] == row[5] == "1.0000" for row in rows if row[1] == 1)
