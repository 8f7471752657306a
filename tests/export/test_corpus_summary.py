"""What `python -m export corpus` says of the texts that it read."""

from pathlib import Path

import polars as pl
import pytest

from export.cli import main
from tests.export.corpus_files import write


def summary(capsys: pytest.CaptureFixture[str], corpus: Path, bundle: Path) -> dict[str, str]:
    """Return the lines of the summary by their first word."""
    assert main(["corpus", "--corpus", str(corpus), "--out", str(bundle)]) == 0
    lines = (line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line)
    return {words[0]: words[-1].strip() for words in lines}


def test_repeated_and_blank_ids_are_said(bundle_copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = write(tmp_path, "a.csv", b"id,text\nx,one\nx,two\n,three\ny,\n,four\n,five\n")
    said = summary(capsys, corpus, bundle_copy)
    assert said["texts"] == "5 from a.csv, 1 empty ones skipped"
    assert said["ids"] == "1 the same as an earlier one, 3 blank ones replaced by the row number"


def test_values_that_json_cannot_hold_are_said(
    bundle_copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "a.parquet"
    pl.DataFrame({"text": ["one", "two"], "score": [float("nan"), 1.0]}).write_parquet(corpus)
    assert summary(capsys, corpus, bundle_copy)["metadata"] == "1 NaN or infinite values left out"
