"""A folder of files is one corpus."""

import os
from pathlib import Path

import pytest

from export.corpus.corpus import Skipped
from export.corpus.folder import HIDDEN, REPEATED, SPECIAL
from tests.export.corpus.files import complaint, read_corpus, write, write_parquet


def test_the_files_of_a_folder_are_one_corpus_in_the_order_of_their_paths(tmp_path: Path) -> None:
    write(tmp_path, "b.jsonl", b'{"text": "three"}\n{"text": ""}\n{"text": "four"}\n')
    write(tmp_path, "a.csv", b"text,year\none,1999\ntwo,\n")
    (tmp_path / "c").mkdir()
    write_parquet(tmp_path / "c", {"text": ["five", "six"], "id": ["x", None]})
    corpus = read_corpus(tmp_path)
    assert corpus.texts == ["one", "two", "three", "four", "five", "six"]
    assert corpus.ids == ["0", "1", "2", "4", "x", "6"]  # row numbers go on from file to file
    assert (corpus.empty_texts, corpus.blank_ids) == (1, 1)
    assert corpus.metadata[0] == '{"year":"1999"}'


def test_hidden_files_and_those_of_other_programs_are_skipped_and_counted(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", b"text\none\n")
    (tmp_path / "_temporary").mkdir()
    for name in (".a.csv.crc", "_SUCCESS", "_temporary/b.csv"):
        write(tmp_path, name, b"x")
    corpus = read_corpus(tmp_path)
    assert (corpus.texts, corpus.files, corpus.skipped) == (["one"], 1, (Skipped(HIDDEN, 3, ".a.csv.crc"),))


def test_a_folder_in_which_everything_is_skipped_says_so(tmp_path: Path) -> None:
    write(tmp_path, "_a.csv", b"text\none\n")
    assert complaint(tmp_path).startswith(
        ": found a folder without files; 1 skipped: the name begins with a dot or an underscore, such as _a.csv,"
    )


def test_links_to_files_and_folders_are_followed(tmp_path: Path) -> None:
    (tmp_path / "data" / "in").mkdir(parents=True)
    (tmp_path / "corpus").mkdir()
    write(tmp_path / "data", "part-0", b"text\none\n")
    write(tmp_path / "data" / "in", "part.csv", b"text\ntwo\n")
    (tmp_path / "corpus" / "a.csv").symlink_to(tmp_path / "data" / "part-0")  # named as in the hub's cache
    (tmp_path / "corpus" / "b").symlink_to("../data/in")
    (tmp_path / "link").symlink_to("corpus")
    for path in (tmp_path / "corpus", tmp_path / "link"):
        corpus = read_corpus(path)
        assert (corpus.texts, corpus.files, corpus.skipped) == (["one", "two"], 2, ())


@pytest.mark.parametrize("target", [".", "..", "inner", "inner/deep"])
def test_a_folder_that_links_lead_to_again_is_read_once(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "corpus"
    (folder / "inner" / "deep").mkdir(parents=True)
    write(folder, "z.csv", b"text\nz\n")
    write(folder / "inner", "b.csv", b"text\nb\n")
    (folder / "inner" / "a").symlink_to(folder / target)
    (folder / "inner" / "c").symlink_to(folder / "inner" / "a")
    corpus = read_corpus(folder)
    assert corpus.texts == ["b", "z"]
    again = "inner/a/corpus" if target == ".." else "inner/a"
    assert [(each.reason, each.example) for each in corpus.skipped] == [(REPEATED, again)]


def test_a_file_that_several_paths_lead_to_is_read_once_under_its_own(tmp_path: Path) -> None:
    write(tmp_path, "b-2024-05.csv", b"text\none\n")
    (tmp_path / "a-latest.csv").symlink_to("b-2024-05.csv")
    corpus = read_corpus(tmp_path)
    assert (corpus.texts, corpus.skipped) == (["one"], (Skipped(REPEATED, 1, "a-latest.csv"),))
    write(tmp_path, "b-2024-05.csv", b'wrong\n"')
    assert complaint(tmp_path).startswith("/b-2024-05.csv, line 2: ")


@pytest.mark.parametrize("target", ["gone.csv", "b.csv", "z.csv/x"])
def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path, target: str) -> None:
    write(tmp_path, "z.csv", b"text\none\n")
    (tmp_path / "b.csv").symlink_to(target)
    assert complaint(tmp_path) == (
        f"/b.csv: found a link to '{target}', which leads nowhere, expected a link to a file or a folder;"
        " repair the link, or remove it"
    )


def test_what_is_neither_file_nor_folder_is_counted(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", b"text\none\n")
    os.mkfifo(tmp_path / "pipe.csv")
    assert read_corpus(tmp_path).skipped == (Skipped(SPECIAL, 1, "pipe.csv"),)


@pytest.mark.parametrize(
    ("first", "second", "place", "other"),
    [
        ("text\none\ntwo\n", "text,id\nthree,x\n4,4\nfour,1\n", "a.csv, line 3", "{here}/b.csv, line 4"),
        ("text,id\none,x\n", "text,id\ntwo,\nthree,1\n", "b.csv, line 2", "line 3"),
    ],
    ids=["of another file", "of the same file"],
)
def test_a_row_number_that_is_also_an_id_is_refused(
    tmp_path: Path, first: str, second: str, place: str, other: str
) -> None:
    write(tmp_path, "a.csv", first)
    write(tmp_path, "b.csv", second)
    assert complaint(tmp_path) == (
        f"/{place}: found no id, and the row number 1 that replaces it is the id of {other.format(here=tmp_path)}, "
        "expected a different id for each; write an id in each row, or name another column with --id-column"
    )


def test_an_id_that_is_the_row_number_of_a_later_file_is_refused(tmp_path: Path) -> None:
    write_parquet(tmp_path, {"text": ["one", "two"], "id": [7, 3]})
    write(tmp_path, "b.csv", "text,id\nthree,x\nfour,\n")
    assert complaint(tmp_path).startswith(
        "/b.csv, line 3: found no id, and the row number 3 that replaces it"
        f" is the id of {tmp_path}/a.parquet, row 1 (from 0), expected"
    )


def test_ids_that_repeat_in_other_files_are_kept_and_counted(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path, f"{name}.csv", b"text,id\none,x\n")
    corpus = read_corpus(tmp_path)
    assert (corpus.ids, corpus.repeated_ids) == (["x", "x"], 1)


def test_an_error_in_a_folder_names_the_file(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", b"text\none\n")
    write(tmp_path, "b.csv", b"text,year\none\n")
    assert complaint(tmp_path).startswith("/b.csv, line 2: found 1 field")


def test_the_share_of_a_folder_that_was_read_never_falls(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path, f"{name}.csv", b"text\n" + b"word\n" * 2_000)
    shares: list[float] = []
    read_corpus(tmp_path, on_progress=lambda step, share, texts=0: shares.append(share))
    assert shares == sorted(shares)
    assert shares[0] > 0
    assert shares[-1] <= 1
