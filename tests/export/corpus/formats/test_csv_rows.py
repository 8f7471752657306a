"""CSV and TSV: the names of columns, the separator that a file states, and lines that are refused."""

from pathlib import Path

import pytest

from tests.export.corpus.files import complaint, read_corpus, write

NO_NAME = (
    "expected a name for each; name it in the header, or leave the column out (pandas writes its index without a name: "
    "use to_csv(..., index=False))"
)
NO_BLANKS = "expected no blanks around a name; remove them from the header, and from the rows if they have them too"
QUOTES = "put quotes around a field that holds"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *(
            (f"{header}\n0,one,2\n", f"line 1: found no name for column {number}, {NO_NAME}")
            for header, number in ((",text,n", 1), ("id,text,", 3), ("id,text,  ", 3), ('"",text,n', 1))
        ),
        *(
            (f"{header}\n1,one\n", f"line 1: found the column {name!r}, {NO_BLANKS}")
            for header, name in (("id, text", " text"), ("id ,text", "id "), ('id," text\t"', " text\t"))
        ),
        ("text,a,a\nx,1,2\n", "line 1: found 2 columns 'a', expected each name once; rename columns in the header"),
        ("sep=;\nid;text;text\n", "line 2: found 2 columns 'text', expected each name once"),
        *(
            (
                f'id,text,n\n1,"a\nb",x\n{row}\n3,c,z\n',
                f"line 4: found {count} fields, expected 3 as in the header; {QUOTES} ',', or add what is missing",
            )
            for row, count in (("2,b", 2), ("2,b,c,d", 4))
        ),
        ("sep=;\nid;text\n1;one\n2\n", f"line 4: found 1 field, expected 2 as in the header; {QUOTES} ';', or add"),
        *(
            (
                f"id,text\n1,a\n{row}3,c\n",
                f"line 3: found a record that breaks off or has a stray quote ({reason}), expected fields as in RFC "
                '4180; close the quote that opens in this record, or write it as ""',
            )
            for row, reason in (
                ('2,"never closed\n', "unexpected end of data"),
                ('2,"closed" too early\n', "',' expected after '\"'"),
            )
        ),
        ("id,text\r1,one\r2,two\r", "line 1: found a carriage return alone, expected a line feed after it; save"),
    ],
)
def test_a_line_is_refused_with_its_number_and_a_remedy(tmp_path: Path, content: str, message: str) -> None:
    assert complaint(write(tmp_path, "a.csv", content)).startswith(f", {message}")


@pytest.mark.parametrize(
    ("name", "separator", "expected", "remedy"),
    [
        ("a.csv", ";", ",", "put sep=; on a line before the header"),
        ("a.csv", "\t", ",", "name the file .tsv"),
        ("a.tsv", ",", "\t", "put sep=, on a line before the header"),
    ],
)
def test_a_header_with_another_separator_is_refused(
    tmp_path: Path, name: str, separator: str, expected: str, remedy: str
) -> None:
    header = f"id{separator}text"
    assert complaint(write(tmp_path, name, f"{header}\n1{separator}one\n")) == (
        f", line 1: found the one column {header!r}, expected columns apart by {expected!r};"
        f" {remedy}, or write the file with {expected!r}"
    )


@pytest.mark.parametrize("separator", [";", ",", "|", "\t"])
@pytest.mark.parametrize("first", ["sep={}\r\n", "\ufeffsep={}\n", '"sep={}"\n', "SEP={}\n"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_the_separator_that_excel_states_in_the_first_line_is_used(
    tmp_path: Path, name: str, first: str, separator: str
) -> None:
    rows = [("id", "text", "n"), ("1", "one", ""), ("2", f'"two{separator} or\n""more"""', "3")]
    content = first.format(separator) + "".join(separator.join(row) + "\n" for row in rows)
    corpus = read_corpus(write(tmp_path, name, content))
    assert corpus.texts == ["one", f'two{separator} or\n"more"']
    assert (corpus.ids, corpus.metadata) == (["1", "2"], ["{}", '{"n":"3"}'])


def test_a_file_with_only_a_separator_line_has_no_rows(tmp_path: Path) -> None:
    assert complaint(write(tmp_path, "a.csv", "sep=;\n")).startswith(": found no rows")


@pytest.mark.parametrize("header", ["sep=", "sep=ab", "sep=x", "sep", '"text, or title"'])
def test_a_single_column_may_have_a_name_that_looks_like_separators(tmp_path: Path, header: str) -> None:
    assert read_corpus(write(tmp_path, "a.csv", f"{header}\none\n")).texts == ["one"]


def test_a_byte_order_mark_crlf_and_quoted_line_breaks_are_read(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbftext,note\r\n"a ""b"", c","x\r\ny"\r\n\r\n5" disk,caf\xc3\xa9\r\n'
    corpus = read_corpus(write(tmp_path, "a.csv", content))
    assert corpus.texts == ['a "b", c', '5" disk']
    assert corpus.metadata == ['{"note":"x\\r\\ny"}', '{"note":"café"}']
    assert corpus.ids == ["0", "1"]


def test_a_field_may_be_as_long_as_it_is(tmp_path: Path) -> None:
    text = "word " * 60_000
    assert read_corpus(write(tmp_path, "a.csv", f"id,text\n1,{text}\n2,short\n")).texts == [text, "short"]
