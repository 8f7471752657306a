"""Markers in documents: what is put between them, and what is said when nothing can be."""

import json
from pathlib import Path

import pytest

from bench import tables


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """One measured table, and its values."""
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "warm.md").write_text("| ms |\n| --- |\n| 4.3 |\n")
    content = {"p50": {"whole handler": 4.336}, "init": [300.2, 290.0, 400.0], "machine": "two cores", "none": []}
    (folder / "warm.json").write_text(json.dumps(content))
    (folder / "warm.avx2.json").write_text(json.dumps({"p50": {"whole handler": 8.2}}))
    return folder


def test_a_table_replaces_what_stood_between_its_markers(results: Path) -> None:
    text = "before\n<!-- warm -->\n| old |\n<!-- /warm -->\nafter\n"
    expected = "before\n<!-- warm -->\n| ms |\n| --- |\n| 4.3 |\n<!-- /warm -->\nafter\n"
    assert tables.fill(text, results) == expected
    assert tables.fill(expected, results) == expected


def test_a_document_shows_ten_rows_of_a_table_and_a_link_to_all(results: Path) -> None:
    rows = [f"| {number} | {number % 2} |\n" for number in range(25)]
    (results / "long.md").write_text("".join(["| n | odd |\n| --- | --- |\n", *rows, "\n<sub>commit</sub>\n"]))
    filled = tables.fill("<!-- long -->\n<!-- /long -->\n", results, "../").splitlines(keepends=True)
    assert filled[3:13] == rows[:10]
    assert "".join(filled[13:]) == "\n[All 25 rows](../bench/results/long.md)\n\n<sub>commit</sub>\n<!-- /long -->\n"
    odd = tables.fill("<!-- long odd=1 -->\n<!-- /long -->\n", results)
    assert odd.splitlines(keepends=True)[3:13] == rows[1:20:2]
    assert "[All 25 rows](bench/results/long.md)" in odd
    one = tables.fill("<!-- long odd=1 n=7 -->\n<!-- /long -->\n", results)
    assert one.splitlines(keepends=True)[3:5] == [rows[7], "\n"]
    with pytest.raises(tables.DocumentError, match=r"long: no row has \{'odd': '2'\}"):
        tables.fill("<!-- long odd=2 -->\n<!-- /long -->", results)


@pytest.mark.parametrize(
    ("path", "layout", "expected"),
    [
        ("warm/p50/whole handler", ".1f", "4.3"),
        ("warm/init", ".0f", "300"),
        ("warm.avx2/p50/whole handler", ".1f", "8.2"),
        ("warm.arm/p50/whole handler", ".1f", "not measured"),
    ],
    ids=["a number", "the median of a list", "another class", "a class without a result"],
)
def test_a_figure_is_read_from_the_result_and_formatted(results: Path, path: str, layout: str, expected: str) -> None:
    opening = f"It takes <!-- figure {path} {layout} -->"
    assert tables.fill(f"{opening}9<!-- /figure --> ms.", results) == f"{opening}{expected}<!-- /figure --> ms."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- figure cold/init .1f -->9<!-- /figure -->", "figure cold/init: there is no cold.json, expected one in "),
        (
            "<!-- figure warm/p99 .1f -->9<!-- /figure -->",
            "figure warm/p99: found KeyError('p99'), expected a value to",
        ),
        ("<!-- warm -->\n| 1 |\n", "found '<!-- warm -->', expected a table's or a figure's marker and the one that"),
    ],
    ids=["no result", "no key", "open table"],
)
def test_a_marker_that_cannot_be_filled_is_refused(results: Path, text: str, message: str) -> None:
    with pytest.raises(tables.DocumentError) as caught:
        tables.fill(text, results)
    assert message in str(caught.value)
