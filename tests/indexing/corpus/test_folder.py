"""A folder of files is one corpus."""

from pathlib import Path

import pytest

from semsearch.indexing.corpus import Table
from semsearch.indexing.corpus.report import Skipped
from semsearch.indexing.corpus.rows import ROWS_PER_READ
from semsearch.indexing.walking import DOTTED, LINKED_OUT, REPEATED, UNDERSCORED
from tests.indexing.corpus.files import complaint, read_corpus, read_table, write, write_parquet


def test_the_files_of_a_folder_are_one_corpus_in_the_order_of_their_paths(tmp_path: Path) -> None:
    write(tmp_path, "b.jsonl", b'{"text": "three"}\n{"text": ""}\n{"text": "four"}\n')
    write(tmp_path, "a.csv", b"text,year\none,1999\ntwo,\n")
    (tmp_path / "c").mkdir()
    write_parquet(tmp_path / "c", {"text": ["five", "six"], "id": ["x", None]})
    corpus, report = read_table(tmp_path)
    assert corpus.texts == ["one", "two", "three", "four", "five", "six"]
    assert corpus.ids == ["0", "1", "2", "4", "x", "6"]  # row numbers go on from file to file
    assert (report.empty_texts, report.blank_ids) == (1, 1)
    assert corpus.metadata[0] == '{"year":"1999"}'


def test_the_files_of_a_folder_have_equal_shares_of_the_progress(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        write(tmp_path, name, '{"text": "a goose"}\n' * 1_001)
    write_parquet(tmp_path, {"text": ["a"] * (ROWS_PER_READ + 1)}).rename(tmp_path / "c.parquet")
    told: list[float] = []
    passages = Table(tmp_path).passages(lambda step, share, texts=0: told.append(share))
    assert len(list(passages)) == 2_002 + ROWS_PER_READ + 1
    first, whole, second, *others = told  # a file is read ahead of its lines
    assert 0 < first < whole < 1 / 3 < second < 2 / 3
    assert [whole, *others] == pytest.approx([0.99 / 3, 1.99 / 3, 2 / 3, 2.99 / 3])


def test_hidden_files_and_those_of_other_programs_are_skipped_and_counted(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", b"text\none\n")
    (tmp_path / "_temporary").mkdir()
    for name in (".a.csv.crc", "_SUCCESS", "_temporary/b.csv"):
        write(tmp_path, name, b"x")
    corpus, report = read_table(tmp_path)
    assert (corpus.texts, report.files, report.skipped) == (
        ["one"],
        1,
        (Skipped(DOTTED, 1, ".a.csv.crc"), Skipped(UNDERSCORED, 2, "_SUCCESS")),
    )


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder with links to a file and to a folder outside of it, in one whose name begins with its own."""
    (tmp_path / "corpus-private" / "in").mkdir(parents=True)
    (tmp_path / "corpus").mkdir()
    write(tmp_path / "corpus-private", "part-0", b"text\none\n")
    write(tmp_path / "corpus-private" / "in", "part.csv", b"text\ntwo\n")
    (tmp_path / "corpus" / "a.csv").symlink_to(tmp_path / "corpus-private" / "part-0")  # named as in the hub's cache
    (tmp_path / "corpus" / "b").symlink_to("../corpus-private/in")
    (tmp_path / "link").symlink_to("corpus")
    return tmp_path / "corpus"


def test_links_that_lead_out_of_the_folder_are_followed_if_that_is_wanted(linked: Path) -> None:
    for path in (linked, linked.parent / "link"):
        corpus, report = read_table(path, follow_symlinks=True)
        assert (corpus.texts, report.files, report.skipped) == (["one", "two"], 2, ())


def test_links_that_lead_out_of_the_folder_are_counted_and_not_followed(linked: Path) -> None:
    for path in (linked, linked.parent / "link"):
        message = complaint(path)
        assert message.startswith(": found a folder without files; 2 skipped: a link that leads out of the folder")
        assert message.endswith("; check the path, or follow such links with --follow-symlinks")
    write(linked, "c.csv", b"text\nthree\n")
    (linked / "gone.csv").symlink_to("../corpus-private/gone.csv")
    (linked / "folder").mkdir()
    (linked / "folder" / "out.csv").symlink_to("../../corpus-private/part-0")
    (linked / "out").symlink_to("folder")  # leads out in two steps
    corpus, report = read_table(linked)
    assert (corpus.texts, report.skipped) == (["three"], (Skipped(REPEATED, 1, "out"), Skipped(LINKED_OUT, 4, "a.csv")))


@pytest.mark.parametrize("target", [".", ".."])
def test_a_folder_that_links_lead_to_again_is_read_once(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "corpus"
    (folder / "inner" / "deep").mkdir(parents=True)
    write(folder, "z.csv", b"text\nz\n")
    write(folder / "inner", "b.csv", b"text\nb\n")
    (folder / "inner" / "a").symlink_to(folder / target)
    (folder / "inner" / "c").symlink_to(folder / "inner" / "a")
    corpus, report = read_table(folder, follow_symlinks=True)
    assert corpus.texts == ["b", "z"]
    again = "inner/a/corpus" if target == ".." else "inner/a"
    assert [(each.reason, each.example) for each in report.skipped] == [(REPEATED, again)]


def test_a_file_that_several_paths_lead_to_is_read_once_under_its_own(tmp_path: Path) -> None:
    write(tmp_path, "b-2024-05.csv", b"text\none\n")
    (tmp_path / "a-latest.csv").symlink_to("b-2024-05.csv")
    corpus, report = read_table(tmp_path)
    assert (corpus.texts, report.skipped) == (["one"], (Skipped(REPEATED, 1, "a-latest.csv"),))


@pytest.mark.parametrize("target", ["gone.csv", "b.csv"])
def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "b.csv").symlink_to(target)
    with pytest.raises(OSError, match=target):
        read_corpus(tmp_path)


def test_a_row_number_that_is_an_id_in_another_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", "text\none\ntwo\n")
    write(tmp_path, "b.csv", "text,id\nthree,x\nfour,1\n")
    assert complaint(tmp_path).startswith(": found a row without an id whose number, 1, is the id of another row")
