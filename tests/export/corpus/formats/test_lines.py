"""Files of text that are not whole, not UTF-8 or not text."""

import gzip
import io
import random
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from export.corpus import CorpusError
from tests.export.corpus.files import complaint, read_corpus, write

DAMAGED = ": found damaged gzip data, expected a whole gzip file; fetch or write the file again"
CUT_OFF = ": found gzip data that breaks off, expected a whole gzip file; fetch or write the file again"


# gzip


def csv_content(rows: int) -> bytes:
    words = random.Random(7)
    lines = (f"{row},text {words.random()},{words.randrange(9)}\n" for row in range(rows))
    return b"id,text,n\n" + "".join(lines).encode()


def test_a_damaged_byte_is_blamed_on_gzip_whatever_it_does_to_the_rows(tmp_path: Path) -> None:
    whole = gzip.compress(csv_content(2_000))
    for position in range(10, len(whole) - 4, len(whole) // 60):  # behind the header, before the length
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        assert complaint(write(tmp_path, "a.csv.gz", bytes(damaged))) in (DAMAGED, CUT_OFF), position
    for length in (5, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        assert complaint(write(tmp_path, "a.csv.gz", whole[:length])) == CUT_OFF


@pytest.mark.parametrize(
    ("name", "content", "old", "new"),
    [
        *(
            (name, b"id,text\n1,one\n2,two\n", old, new)
            for name in ("a.csv.gz", "a.tsv.gz")
            for old, new in ((b"1,one", b"1;one"), (b"1,one", b'1,"ne'), (b"id,text", b"id,next"), (b"two", b"tw\xff"))
        ),
        ("a.jsonl.gz", b'{"text": "one"}\n{"text": "two"}\n', b'"two"', b'"two,'),
    ],
)
def test_a_damaged_stored_block_is_blamed_on_gzip(
    tmp_path: Path, name: str, content: bytes, old: bytes, new: bytes
) -> None:
    if name == "a.tsv.gz":
        content, old, new = (each.replace(b",", b"\t") for each in (content, old, new))
    whole = gzip.compress(content, compresslevel=0)
    assert whole.count(old) == 1
    assert complaint(write(tmp_path, name, whole.replace(old, new))) == DAMAGED


def test_several_gzip_members_read_as_one_file(tmp_path: Path) -> None:
    members = gzip.compress(b"id,text\n1,one\n") + gzip.compress(b"2,two\n")
    assert read_corpus(write(tmp_path, "a.csv.gz", members)).texts == ["one", "two"]
    assert complaint(write(tmp_path, "a.csv.gz", members + b"more")) == DAMAGED


def test_plain_text_called_gz_says_what_to_do(tmp_path: Path) -> None:
    assert complaint(write(tmp_path, "a.csv.gz", b"text\nplain\n")) == (
        ": found data that is not gzip, expected a gzip file; drop .gz from its name if it is not compressed"
    )


# Encodings


TABLE = "id,text\r\n1,one\r\n2,Привет\r\n"
LINES = '{"id": 1, "text": "标题"}\n{"id": 2, "text": "two"}\n'


@pytest.mark.parametrize("encoding", ["UTF-16LE", "UTF-16BE"])
@pytest.mark.parametrize("mark", ["\ufeff", ""])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", TABLE),
        ("a.csv", "一号,内容\n" + "Ā一,搜索\n" * 3_000),  # 一 is U+4E00: a zero byte on the other side
        ("a.tsv", TABLE.replace(",", "\t")),
        ("a.jsonl", LINES),
        ("a.json", '{"text": "a single line without an end"}'),
        ("a.json", f"[{LINES}]"),
    ],
)
def test_utf_16_is_recognized(tmp_path: Path, name: str, text: str, mark: str, encoding: str) -> None:
    content = (mark + text).encode(encoding)
    for path in (write(tmp_path, name, content), write(tmp_path, f"{name}.gz", gzip.compress(content))):
        assert complaint(path) == (
            f": found UTF-16, expected UTF-8; save the file as UTF-8, or convert it with iconv -f {encoding} -t UTF-8"
        )


@pytest.mark.parametrize("encoding", ["UTF-32LE", "UTF-32BE"])
def test_utf_32_is_recognized_by_its_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    message = complaint(write(tmp_path, "a.csv", f"\ufeff{TABLE}".encode(encoding)))
    assert message.startswith(": found UTF-32, expected UTF-8; save the file as UTF-8")


@pytest.mark.parametrize(
    ("name", "before"), [("a.csv", b"id,text\n1,caf\xc3\xa9\n2,"), ("a.jsonl", b'{"text":"a"}\n\n{"text":"')]
)
def test_bytes_that_are_not_utf_8_are_named_by_line_and_offset(tmp_path: Path, name: str, before: bytes) -> None:
    expected = (
        f", line 3: found the byte 0xe9 at byte offset {len(before)}, expected UTF-8;"
        " save the file as UTF-8, or correct that line"
    )
    content = before + b'\xe9 t\xe9"}\n'
    assert complaint(write(tmp_path, name, content)) == expected
    assert complaint(write(tmp_path, f"{name}.gz", gzip.compress(content))) == expected


@pytest.mark.parametrize("nulls", [b"\0", b"\0" * 8, b"\0" * 5_000])
@pytest.mark.parametrize(("name", "before"), [("a.csv", b"id,text\n1,caf\xc3\xa9\n"), ("a.jsonl", b'{"text":"a"}\n\n')])
def test_nul_bytes_are_named_by_line_and_offset(tmp_path: Path, name: str, before: bytes, nulls: bytes) -> None:
    assert complaint(write(tmp_path, name, before + b"2,two" + nulls + b"x\n")) == (
        f", line 3: found a NUL byte at byte offset {len(before) + 5}, expected UTF-8 text;"
        " fetch or write the file again, or remove the byte"
    )


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.csv", "\ufeffid,text\n1,one\n\ufeffid,text\n2,two\n", 3),
        ("a.csv", "\ufeff\ufeffid,text\n1,one\n", 1),
        ("a.jsonl", '{"text": "a"}\n\ufeff{"text": "b"}\n', 2),
    ],
)
def test_a_byte_order_mark_between_lines_is_refused(tmp_path: Path, name: str, content: str, line: int) -> None:
    assert complaint(write(tmp_path, name, content.encode())) == (
        f", line {line}: found a byte order mark (U+FEFF), expected it at most once, at the start of the file;"
        " remove it, and if files were joined here, also the second one's header"
    )


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [("a.csv", "id,text\n1,zero\ufeffwidth\n", "zero\ufeffwidth"), ("a.jsonl", r'{"text":"a\u0000b"}', "a\0b")],
)
def test_a_byte_order_mark_within_a_text_and_a_nul_that_json_escapes_are_kept(
    tmp_path: Path, name: str, content: str, text: str
) -> None:
    assert read_corpus(write(tmp_path, name, content)).texts == [text]


# Files of another kind


def workbook() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl"])
def test_other_kinds_of_files_are_recognized_by_their_first_bytes(tmp_path: Path, name: str) -> None:
    kinds = [
        (gzip.compress(b"text\none\n"), "gzip data", "decompress it, or add .gz to its name"),
        (workbook(), "a zip file or an Excel workbook", "unpack it, or save the sheet as CSV UTF-8"),
        (b"PAR1" + b"\x15\x00" * 20, "Parquet data", "name the file .parquet"),
    ]
    for content, found, remedy in kinds:
        path = write(tmp_path, name, gzip.compress(content) if name.endswith(".gz") else content)
        assert complaint(path) == f": found {found}, expected text in UTF-8; {remedy}"


def test_any_damage_to_a_small_file_raises_a_corpus_error(tmp_path: Path) -> None:
    for content in (TABLE.encode(), LINES.encode(), TABLE.encode("utf-16"), gzip.compress(TABLE.encode())):
        for position in range(len(content)):
            damaged = bytearray(content)
            damaged[position] ^= 0x84
            for name in ("a.csv", "a.jsonl", "a.csv.gz"):
                with suppress(CorpusError):
                    read_corpus(write(tmp_path, name, bytes(damaged)))
