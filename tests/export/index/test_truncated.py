"""The texts that are longer than the model reads are listed in the bundle, and in no other place."""

import json
import shutil
from pathlib import Path

import pytest

from function.engine.bundle import MANIFEST, TRUNCATED, open_bundle
from tests.export.test_cli import contents, error_line, run

LONG = "the angry goose " * 30
ROWS = [("short", "the goose"), ("a\nb", LONG), ("ü\u2028", f"{LONG} again"), ("twice", LONG)]


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")


def write_rows(path: Path, rows: list[tuple[str, str]]) -> Path:
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in rows]
    path.write_text("".join(lines))
    return path


def listed(bundle: Path) -> list[tuple[int, str]]:
    lines = (bundle / TRUNCATED).read_bytes().decode().removesuffix("\n").split("\n")
    return [(line["index"], line["id"]) for line in map(json.loads, lines)]


def test_truncated_texts_are_listed_by_place_and_id_and_the_summary_names_the_file(
    bundle_copy: Path, tmp_path: Path
) -> None:
    done = run("corpus", "--corpus", write_rows(tmp_path / "a.jsonl", ROWS), "--out", bundle_copy)
    assert (done.code, done.err) == (0, "")
    assert listed(bundle_copy) == [(1, "a\nb"), (2, "ü\u2028"), (3, "twice")]
    assert f"3 texts longer than 24 tokens, listed in {bundle_copy / TRUNCATED}" in done.out
    assert TRUNCATED in open_bundle(bundle_copy).files
    assert f"checksum of {TRUNCATED}" in run("verify", bundle_copy).out


def test_a_bundle_without_truncated_texts_has_no_list_even_if_the_one_before_had(
    bundle_copy: Path, tmp_path: Path
) -> None:
    assert run("corpus", "--corpus", write_rows(tmp_path / "a.jsonl", ROWS), "--out", bundle_copy).code == 0
    assert (bundle_copy / TRUNCATED).exists()
    done = run("corpus", "--corpus", write_rows(tmp_path / "a.jsonl", ROWS[:1]), "--out", bundle_copy)
    assert "0 texts longer than 24 tokens  " in done.out
    assert not (bundle_copy / TRUNCATED).exists()
    assert TRUNCATED not in open_bundle(bundle_copy).files


def test_an_update_lists_the_texts_that_it_takes_over_too(bundle_copy: Path, tmp_path: Path) -> None:
    other, full = tmp_path / "other", Path(shutil.copytree(bundle_copy, tmp_path / "full"))
    assert run("corpus", "--corpus", write_rows(tmp_path / "a.jsonl", ROWS), "--out", bundle_copy).code == 0
    changed = write_rows(tmp_path / "b.jsonl", [("first", f"{LONG} new"), *ROWS[::-1][:2], ("same", LONG), ROWS[0]])
    assert run("corpus", "--corpus", changed, "--out", full).code == 0
    assert listed(full) == [(0, "first"), (1, "twice"), (2, "ü\u2028"), (3, "same")]
    for out in (other, bundle_copy):
        done = run("--corpus", changed, "--update", bundle_copy, "--out", out)
        assert (done.code, done.err) == (0, "")
        assert f"4 texts longer than 24 tokens, listed in {out / TRUNCATED}" in done.out
        assert contents(out) == contents(full)


def test_an_update_of_a_bundle_whose_list_is_damaged_is_refused(bundle_copy: Path, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", ROWS)
    assert run("corpus", "--corpus", path, "--out", bundle_copy).code == 0
    content = (bundle_copy / TRUNCATED).read_bytes()
    (bundle_copy / TRUNCATED).write_bytes(content.replace(b"1", b"0"))
    line = error_line(run("--corpus", path, "--update", bundle_copy, "--out", tmp_path / "new"))
    assert f"{bundle_copy / TRUNCATED}: sha256 " in line
    assert json.loads((bundle_copy / MANIFEST).read_text())["files"][TRUNCATED]["bytes"] == len(content)
