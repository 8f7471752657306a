"""Files of suffixes that only the option `include` names: programs, settings and notes are read as plain text."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from semsearch import index, remove
from semsearch.engine.bundle import PASSAGES, read_manifest
from semsearch.engine.passages import Lines, Passage, Passages
from semsearch.indexing.corpus import CorpusError
from semsearch.indexing.documents.document import UnreadableError
from semsearch.indexing.documents.folder import is_documents
from semsearch.indexing.documents.passages import Splitter, divide
from semsearch.indexing.documents.plain_text import read_other
from semsearch.indexing.file_choice import listed_suffixes, suffix_of
from semsearch.indexing.steps import IndexSummary

PROGRAM = b"""\
# a b
import c

def d(e):
    f

    return g

class h:
    i = 1

    j = 2
"""


@pytest.fixture
def make(tmp_path: Path, bundle_copy: Path) -> Callable[..., IndexSummary]:
    """Return what indexes the folder `src`, and writes these files into it first."""

    def run(files: dict[str, bytes] | None = None, **options: Any) -> IndexSummary:
        for name, content in (files or {}).items():
            (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "src" / name).write_bytes(content)
        made: IndexSummary = index(tmp_path / "src", bundle_copy, mode="replace", progress=False, **options)
        return made

    return run


@pytest.fixture
def found(bundle_copy: Path) -> Callable[[], list[Passage]]:
    """Return what reads the passages of the index."""

    def read() -> list[Passage]:
        passages = Passages(bundle_copy / PASSAGES)
        return [passages[row] for row in range(len(passages))]

    return read


def paths(passages: list[Passage]) -> list[object]:
    return [each.metadata["path"] for each in passages]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
def test_a_text_is_divided_where_code_is_and_states_its_lines(
    newline: bytes, mark: bytes, tmp_path: Path, make_splitter: Callable[..., Splitter]
) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(mark + PROGRAM.replace(b"\n", newline))
    whole, divided = (list(divide(read_other(file), make_splitter(tokens))) for tokens in (400, 12))
    assert [each.lines for each in whole] == [Lines(1, 12)]
    assert [(each.text.split()[0], each.lines) for each in divided] == [
        ("#", Lines(1, 2)),
        ("def", Lines(4, 7)),
        ("class", Lines(9, 12)),
    ]
    lines = PROGRAM.decode().split("\n")
    for each in divided:
        first, last, *_ = each.lines
        assert each.text.split() == " ".join(lines[first - 1 : last]).split()
    assert read_other(file).title == "config.toml"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"caf\xe9", "not UTF-8: unexpected end of data at byte 3"),
        (b"\x7fELF\0", "not text: it has NUL bytes"),
        (b"\0", "not text: it has NUL bytes"),
        (b"text\0", "not text: it has NUL bytes"),
    ],
    ids=["latin", "program", "one byte", "end"],
)
def test_a_file_that_is_no_text_is_not_read(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "a.out").write_bytes(content)
    with pytest.raises(UnreadableError, match=f"^{re.escape(reason)}$"):
        read_other(tmp_path / "a.out")


def test_a_text_of_utf_16_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.ini").write_bytes("caf\u00e9".encode("utf-16"))
    (part,) = read_other(tmp_path / "a.ini").parts
    assert part.text == "caf\u00e9"


FILES = {
    "a.md": b"# One\n\nwords\n\n# Two\n\nmore",
    "b.py": b"import c\n",
    "c.csv": b"text\nwords\n",
    "d.bin": b"\x7fELF\0",
    "e.out": b"caf\xe9",
    "empty.py": b"",
    "lib/f.py": b"print(1)\n",
    "lib/g.py": b"print(2)\n",
    "lib/h.PY": b"print(3)\n",
    "ignored.py": b"secret",
    "Makefile": b"all:\n",
    ".ignore": b"ignored.*",
}


def test_included_files_are_documents_whose_formats_are_counted(
    make: Callable[..., IndexSummary], found: Callable[[], list[Passage]]
) -> None:
    made = make(FILES, include=["*.py", "*.bin", "e.*", "Makefile", "a.md"], exclude=["lib/g.py"])
    assert paths(found()) == ["Makefile", "a.md", "a.md", "b.py", "lib/f.py"]
    assert [each.metadata["headings"] for each in found()] == [[], ["One"], ["Two"], [], []]
    assert made.report.documents == {"Markdown": 1, "other text": 3}
    assert made.report.empty_texts == 0
    assert made.report.unreadable == (
        "d.bin: not text: it has NUL bytes",
        "e.out: not UTF-8: unexpected end of data at byte 3",
        "empty.py: empty",
    )
    assert made.report.other_suffixes == made.manifest.corpus.other_suffixes == {".csv": 1, ".py": 1}
    assert [(each.reason, each.example) for each in made.report.skipped] == [
        ("a rule of .gitignore or .ignore", "ignored.py"),
        ("the name begins with a dot", ".ignore"),
        ("an excluded path", "lib/g.py"),
        ("the suffix '.csv'", "c.csv"),
        ("the suffix '.py'", "lib/h.PY"),
    ]
    passage = found()[3]
    assert (passage.id, passage.metadata["url"], passage.metadata["title"]) == ("b.py:1", "b.py", "b.py")


@pytest.mark.parametrize(
    ("names", "listed"),
    [
        (["a"], {"": 1}),
        (["a.b", "b.B", "c.c"], {".b": 2, ".c": 1}),
        ([f"a.{'x' * 10}", f"a.{'x' * 11}"], {f".{'x' * 10}": 1, "others": 1}),
        (["a.read me", "a.é", "a.x-y", "a.x\ny", "a.b"], {".b": 1, "others": 4}),
        ([f"a.{number}" for number in range(8)], {f".{number}": 1 for number in range(8)}),
        ([f"a.{number}" for number in range(9)], {f".{number}": 1 for number in range(8)} | {"others": 1}),
        (["a.é", "b.é", "c.b"], {".b": 1, "others": 2}),
    ],
    ids=lambda value: "",
)
def test_a_manifest_lists_the_most_frequent_suffixes_that_are_no_sentences(
    names: list[str], listed: dict[str, int]
) -> None:
    assert list(listed_suffixes(Counter(map(suffix_of, names))).items()) == list(listed.items())


def test_an_update_lists_the_suffixes_again_and_a_removal_keeps_them(
    make: Callable[..., IndexSummary], tmp_path: Path, bundle_copy: Path
) -> None:
    made = make({"a.md": b"# One", "b.md": b"# Two", "c.py": b"1", "d": b"2"})
    assert made.manifest.corpus.other_suffixes == {".py": 1, "": 1}
    (tmp_path / "src" / "d").unlink()
    assert make().manifest.corpus.other_suffixes == {".py": 1}
    remove(["b.md#two:1"], bundle_copy, progress=False)
    assert read_manifest(bundle_copy).corpus.other_suffixes == {".py": 1}
    assert make(include=["*.py"]).manifest.corpus.other_suffixes == {}


def test_an_update_has_the_files_of_its_patterns_and_keeps_them_without_new_ones(
    make: Callable[..., IndexSummary], found: Callable[[], list[Passage]]
) -> None:
    files = {name: FILES[name] for name in ("a.md", "b.py", "lib/f.py")}
    assert make(files).report.other_suffixes == {".py": 2}
    assert paths(found()) == ["a.md", "a.md"]
    made = make(include=["*.py"])
    assert (made.rows.embedded, paths(found())) == (2, ["a.md", "a.md", "b.py", "lib/f.py"])
    assert made.manifest.corpus.options["include"] == ["*.py"]
    made = make({"lib/g.py": FILES["lib/g.py"]})
    assert (made.rows.embedded, paths(found())) == (1, ["a.md", "a.md", "b.py", "lib/f.py", "lib/g.py"])
    made = make(include=["lib/*"])
    assert (made.rows.embedded, made.left_out) == (0, 1)
    assert paths(found()) == ["a.md", "a.md", "lib/f.py", "lib/g.py"]
    assert make(include=[]).left_out == 2
    assert paths(found()) == ["a.md", "a.md"]


def test_a_folder_or_a_file_that_only_a_pattern_names_is_documents(
    make: Callable[..., IndexSummary], found: Callable[[], list[Passage]], tmp_path: Path
) -> None:
    make({"b.py": FILES["b.py"], "c.csv": b"text\nwords\n"}, include=["*.py"])
    assert paths(found()) == ["b.py"]
    make(include=["*.csv"])
    assert [each.text for each in found()] == ["text\nwords"]

    def are_documents(path: Path, *include: str) -> bool:
        return is_documents(path, ignore=True, follow_symlinks=False, include=include)

    assert are_documents(tmp_path / "src" / "b.py", "b.py")
    assert not are_documents(tmp_path / "src", "src/b.py")  # a pattern is of the path in the folder
    with pytest.raises(CorpusError, match=r"found the suffix '\.py'"):
        are_documents(tmp_path / "src" / "b.py", "*.toml")
