"""The texts that are longer than the model reads are listed in the bundle, and in no other place."""

import json
import shutil
from pathlib import Path

from function.engine.bundle import TRUNCATED, open_bundle
from tests.export.command_line import contents, error_line, export_texts, run, summary

LONG = "the angry goose " * 30
ROWS = [("short", "the goose"), ("a\nb", LONG), ("ü\u2028", f"{LONG} again"), ("twice", LONG)]


def write_rows(path: Path, rows: list[tuple[str, str]]) -> Path:
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in rows]
    path.write_text("".join(lines))
    return path


def listed(bundle: Path) -> list[tuple[int, str]]:
    lines = (bundle / TRUNCATED).read_bytes().decode().removesuffix("\n").split("\n")
    return [(line["index"], line["id"]) for line in map(json.loads, lines)]


def test_truncated_texts_are_listed_by_place_and_id_as_long_as_there_are_any(bundle_copy: Path, tmp_path: Path) -> None:
    done = export_texts(write_rows(tmp_path / "a.jsonl", ROWS), bundle_copy)
    assert listed(bundle_copy) == [(1, "a\nb"), (2, "ü\u2028"), (3, "twice")]
    assert summary(done, "truncated") == f"3 texts longer than 24 tokens, listed in {bundle_copy / TRUNCATED}"
    assert TRUNCATED in open_bundle(bundle_copy).files
    assert f"checksum of {TRUNCATED}" in run("verify", bundle_copy).out
    done = export_texts(write_rows(tmp_path / "a.jsonl", ROWS[:1]), bundle_copy)
    assert summary(done, "truncated") == "0 texts longer than 24 tokens"
    assert not (bundle_copy / TRUNCATED).exists()
    assert TRUNCATED not in open_bundle(bundle_copy).files


def test_an_update_lists_the_texts_that_it_takes_over_too(bundle_copy: Path, tmp_path: Path) -> None:
    other, full = tmp_path / "other", Path(shutil.copytree(bundle_copy, tmp_path / "full"))
    export_texts(write_rows(tmp_path / "a.jsonl", ROWS), bundle_copy)
    changed = write_rows(tmp_path / "b.jsonl", [("first", f"{LONG} new"), *ROWS[::-1][:2], ("same", LONG), ROWS[0]])
    export_texts(changed, full)
    assert listed(full) == [(0, "first"), (1, "twice"), (2, "ü\u2028"), (3, "same")]
    for out in (other, bundle_copy):
        done = run("--corpus", changed, "--update", bundle_copy, "--out", out)
        assert (done.code, done.err) == (0, "")
        assert summary(done, "truncated") == f"4 texts longer than 24 tokens, listed in {out / TRUNCATED}"
        assert contents(out) == contents(full)


def test_an_update_of_a_bundle_whose_list_is_damaged_is_refused(bundle_copy: Path, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", ROWS)
    export_texts(path, bundle_copy)
    content = (bundle_copy / TRUNCATED).read_bytes()
    (bundle_copy / TRUNCATED).write_bytes(content.replace(b"1", b"0"))
    line = error_line(run("--corpus", path, "--update", bundle_copy, "--out", tmp_path / "new"))
    assert f"{bundle_copy / TRUNCATED}: sha256 " in line
