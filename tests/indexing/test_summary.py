"""What `semsearch index` says of the texts that it read."""

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from semsearch.engine.bundle import check_bundle
from semsearch.indexing.models.source import DEFAULT_MODEL_SHA256
from semsearch.indexing.summary import print_checks, print_rows, print_summary
from semsearch.indexing.verification import Check
from tests.command_line import Run, export_texts, run, summary
from tests.indexing.corpus.files import write

COLUMNS_AS_JSON = b"""\
{"text": "one", "year": 2019, "tags": ["a"], "told": "2024-05-31", "isbn": "12", "mixed": 1, "new": true}
{"text": "two", "year": 2020.5, "told": "2024-06-30", "isbn": "13", "mixed": "1"}
"""


def test_repeated_and_blank_ids_are_said(bundle_copy: Path, tmp_path: Path) -> None:
    corpus = write(tmp_path, "a.csv", b"id,text\nx,one\nx,two\n,three\ny,\n,four\n,five\n")
    done = run("index", corpus, "--out", bundle_copy, "--replace")
    assert summary(done, "texts") == "5 from a.csv, 1 empty ones skipped"
    assert summary(done, "ids") == "3 blank ones replaced by the row number"
    assert done.err.startswith("warning: 1 texts have the id of an earlier one")


def test_the_types_of_the_columns_are_said_and_written_and_can_be_chosen(bundle_copy: Path, tmp_path: Path) -> None:
    corpus = write(tmp_path, "a.jsonl", COLUMNS_AS_JSON)
    command = ("index", corpus, "--out", bundle_copy, "--replace", "--verbose")
    said = summary(run(*command), "filters")
    assert said == "isbn (string), mixed (none), new (boolean), tags (list), told (date), year (number)"
    columns = check_bundle(bundle_copy).corpus.columns
    assert columns == {"isbn": "string", "new": "boolean", "tags": "list", "told": "date", "year": "number"}
    types = ("--column", "isbn=number", "--column=told=string", "--column", "tags=none")
    said = summary(run(*command, *types), "filters")
    assert said == "isbn (number), mixed (none), new (boolean), tags (none), told (string), year (number)"


def numbers_in(done: Run) -> list[str]:
    return [line.removeprefix("numbers").strip() for line in done.out.splitlines() if line.startswith("numbers")]


def test_numbers_of_a_csv_are_numbers_unless_another_type_is_asked_for(bundle_copy: Path, tmp_path: Path) -> None:
    first = b"text,year,isbn,mixed,the fee,exact\none,2019,007,1,,9007199254740993\n"
    corpus = write(tmp_path, "a.csv", first + b"two,2020.5,12,MMXX,-3,0.5\n,,x,x,x,x\n")
    done = export_texts(corpus, bundle_copy)
    assert numbers_in(done) == [
        "the fee has only numbers, compared as numbers; add --column 'the fee=string' to compare strings",
        "year has only numbers, compared as numbers; add --column year=string to compare strings",
    ]
    types = "exact (string), isbn (string), mixed (string), the fee (number), year (number)"
    assert summary(done, "filters") == types
    json_lines = write(tmp_path, "a.jsonl", b'{"text": "one", "year": "2019"}\n')
    hint = "year has only numbers, compared as strings; add --column year=number to compare numbers"
    assert numbers_in(export_texts(json_lines, bundle_copy)) == [hint]
    asked = export_texts(corpus, bundle_copy, "--column", "year=number", "--column", "the fee=string")
    assert "\nnumbers" not in asked.out


def printed(*, is_verbose: bool) -> list[str]:
    """Return the lines of the summary of an index that has something to say of everything."""
    model = SimpleNamespace(
        name="tests/model",
        dim=48,
        full_dim=384,
        pooling="mean",
        max_tokens=32,
        source_sha256=DEFAULT_MODEL_SHA256,
        documents="0123",
        quantization="int8",
        accuracy={"cosine_mean": 0.9987, "recall_at_10": 0.95},
        unused_prompts=("passage", "title"),
        similarity="dot",
    )
    corpus = SimpleNamespace(
        rows=2_000,
        source="[b]texts.csv",
        recall={"queries": 50, "words": 0.98, "words_first": 1, "passages": 1.0, "passages_first": 1},
        stages=SimpleNamespace(candidates=1_500, rescored=200),
        keywords=SimpleNamespace(stemmers=("english", "", "german"), fusion_weight=0.6, terms=3_000, postings=40_000),
    )
    manifest = SimpleNamespace(
        model=model,
        has_model=True,
        corpus=corpus,
        rerank=SimpleNamespace(name="tests/reranker", max_tokens=64, weight=0.5, accuracy={"rank_agreement": 0.9}),
        queries=SimpleNamespace(spans=1_000, accuracy={"cosine_mean": 0.9, "recall_at_10": 0.876}, new_rows=1_001),
        files={"a.bin": SimpleNamespace(bytes=1_230_000), "b.bin": SimpleNamespace(bytes=10_000)},
    )
    report = SimpleNamespace(
        empty_texts=1_001,
        files=2,
        skipped=(),
        documents={"md": 1_200, "html": 3},
        of_site={"language": [*"abcdefghij"], "version": [f"v{number}" for number in range(12)]},
        split_texts=4,
        running_lines=5,
        unreadable=[f"{number}.md" for number in range(102)],
        incomplete=[f"{number}.pdf: page 2" for number in range(100)],
        blank_ids=6,
        non_finite=7,
    )
    made: dict[str, Any] = {
        "manifest": manifest,
        "corpus": SimpleNamespace(numeric_strings=("the fee",), is_csv=True, columns={"who": "string", "n": "number"}),
        "report": report,
        "out": Path("[b]bundle"),
        "prompts": {"query": "ü: "},
        "left_out": 8,
        "rows": SimpleNamespace(
            is_truncated=np.array([True, False, True]),
            embedded=100,
            resumed=20,
            updated=30,
            given=40,
            scales=np.zeros(195),
        ),
        "embedding_seconds": 0.5,
        "seconds": 61.4,
        "embedded_by": "2 workers",
        "model_from": Path("models/m"),
    }
    return lines_of(SimpleNamespace(**made), is_verbose=is_verbose)


def lines_of(made: Any, *, is_verbose: bool) -> list[str]:
    file = StringIO()
    print_summary(Console(file=file, width=200), made, is_verbose=is_verbose)
    return [re.sub(" {2,}", "  ", line.rstrip()) for line in file.getvalue().splitlines()]


def test_a_summary_prints_all_that_was_counted() -> None:
    texts = [
        "texts  2,000 from [b]texts.csv, 1,001 empty ones skipped",
        "files  2 read",
        "documents  3 html, 1,200 md; 2,000 passages",
        "languages  a, b, c, d, e, f, g, h, i, j",
        "versions  v0, v1, v2, v3, v4, v5, v6, v7, v8, v9 and 2 more",
        "split  4 texts into several passages",
        "left out  5 lines that repeat at the edges of pages",
        *(f"not read  {number}.md" for number in range(100)),
        "not read  and 2 more",
        *(f"in part  {number}.pdf: page 2" for number in range(100)),
        "ids  6 blank ones replaced by the row number",
        "metadata  7 NaN or infinite values left out",
        "left out  8 texts of the older index, which are not among the new ones",
        "numbers  the fee has only numbers, compared as numbers; add --column 'the fee=string' to compare strings",
        "truncated  2 texts longer than 32 tokens, listed in [b]bundle/truncated.jsonl",
    ]
    training = [
        'prompts  "ü: " for queries, none for passages; not used: passage, title',
        "similarity  cosine; the model was trained for dot, which orders texts differently",
    ]
    last = [
        "accuracy  cosine 0.9987 to float32, recall@10 0.98 for words, recall@10 1 for passages",
        "queries  a table learned from 1,000 spans: cosine to the model 0.9, 88% of its ten best; "
        "1,001 passages are newer",
        "size  1.2 MB",
        "took  61 s, 100 texts embedded, 200 a second",
        "embedded by  2 workers",
    ]
    assert printed(is_verbose=False) == [*texts, *training, *last]
    details = [
        "model  tests/model, 48 of 384 dimensions, mean pooling, 32 tokens, trained with English, another model "
        "for the passages",
        *training,
        "int8  against float32: cosine mean 0.9987, recall at 10 0.95",
        "reranker  tests/reranker, 64 tokens, weight 0.5; against float32: rank agreement 0.9",
        "model from  models/m",
        "filters  who (string), n (number)",
        "embedded  100 texts, 20 rows taken over from a try that was stopped, 30 rows taken over from the older index, "
        "40 rows from the embeddings that were handed in, 5 rows with the text of another",
        "index  a search looks at 1,500 rows by signs, 200 by codes; recall is measured with 50 queries of each kind",
        "keywords  3,000 terms with 40,000 postings, english, german stems; hybrid: weight 0.6",
        "sizes  a.bin 1.2 MB, b.bin 0.0 MB",
    ]
    assert printed(is_verbose=True) == [*texts, *details, *last]


def test_a_summary_leaves_out_what_is_not_there() -> None:
    made = SimpleNamespace(
        manifest=SimpleNamespace(
            model=SimpleNamespace(
                name="m",
                dim=48,
                full_dim=None,
                pooling="mean",
                max_tokens=32,
                source_sha256="",
                documents=None,
                quantization="int8",
                accuracy={},
                unused_prompts=("title",),
                similarity=None,
            ),
            has_model=True,
            corpus=SimpleNamespace(rows=1, source="a.csv", recall={"queries": 1}, stages=None, keywords=None),
            rerank=None,
            queries=None,
            files={},
        ),
        corpus=SimpleNamespace(numeric_strings=(), is_csv=False, columns={}),
        report=SimpleNamespace(
            empty_texts=0,
            files=1,
            skipped=(),
            documents={},
            of_site={},
            split_texts=0,
            running_lines=0,
            unreadable=(),
            incomplete=(),
            blank_ids=0,
            non_finite=0,
        ),
        out=Path("b"),
        prompts={},
        left_out=0,
        rows=SimpleNamespace(is_truncated=np.zeros(1), embedded=1, resumed=0, updated=0, given=0, scales=np.zeros(1)),
        embedding_seconds=1.0,
        seconds=1.0,
        embedded_by=None,
        model_from=None,
    )
    first, last = ["texts  1 from a.csv"], ["size  0.0 MB", "took  1 s, 1 texts embedded, 1 a second"]
    prompts = "prompts  none for queries, none for passages; not used: title"
    details = [
        "model  m, 48 dimensions, mean pooling, 32 tokens",
        prompts,
        "int8  against float32:",
        "filters  no columns",
        "embedded  1 texts",
        "index  a search looks at every row; recall is measured with 1 queries of each kind",
        "keywords  none: no keyword and no hybrid search",
        "sizes",
    ]
    assert lines_of(made, is_verbose=True) == [*first, *details, *last]
    assert lines_of(made, is_verbose=False) == [*first, prompts, *last]


def test_checks_are_a_table_even_after_an_error() -> None:
    def checks() -> Iterator[Check]:
        yield Check("one", "[b]", "2", passed=True)
        yield Check("two", "1", "3", passed=False)
        yield Check("three", "4", "4", passed=True)
        raise ValueError("odd")

    file = StringIO()
    with pytest.raises(ValueError, match="odd"):
        print_checks(Console(file=file, width=200), checks())
    assert [line.rstrip() for line in file.getvalue().splitlines()] == [
        "check  found  expected",
        "one    [b]    2         ok",
        "two    1      3         FAILED",
        "three  4      4         ok",
    ]
    assert not print_checks(Console(file=file), [Check("a", "", "", passed=False), Check("b", "", "", passed=True)])
    assert print_checks(Console(file=(empty := StringIO())), [])
    assert empty.getvalue() == ""


def test_the_names_of_a_summary_are_bold() -> None:
    print_rows(Console(file=(file := StringIO()), force_terminal=True, color_system="standard"), [("name", "value")])
    assert file.getvalue().startswith("\x1b[1mname\x1b[0m")
