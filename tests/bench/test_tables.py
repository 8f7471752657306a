"""Tables and figures in documents: what is written there, and what is said when nothing can be."""

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
    content = {"p50": {"whole handler": 4.336}, "init": [300.2, 290.0, 400.0]}
    (folder / "warm.json").write_text(json.dumps(content))
    (folder / "warm.avx2.json").write_text(json.dumps({"share": 0.125}))
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


def test_the_numbers_behind_the_beginning_of_a_line_are_what_was_measured(results: Path) -> None:
    text = "8 tokens take 7 ms.\n| naive int8 (recall@10) | 9 ms, 1,234.5 with 8-bit, 20% of 3 |\n"
    figures = {"| naive int8 (recall@10) |": ("warm/p50/whole handler .1f", "warm/init ,.0f", "warm.avx2/share .1%")}
    expected = "8 tokens take 7 ms.\n| naive int8 (recall@10) | 4.3 ms, 300 with 8-bit, 12.5% of 3 |\n"
    assert tables.fill_figures(text, figures, results) == expected
    assert tables.fill_figures(expected, figures, results) == expected


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("It takes 9 ms.\n", "cold/init .1f", "figure cold/init: found FileNotFoundError("),
        (
            "It takes 9 ms.\n",
            "warm/p99 .1f",
            "figure warm/p99: found KeyError('p99'), expected a value to format as '.1f'",
        ),
        ("It takes long.\n", "warm/init .1f", "found ' long.\\n' behind 'It takes', expected 1 numbers"),
        ("It took 9 ms.\n", "warm/init .1f", "found 0 lines that begin with 'It takes', expected one"),
        ("It takes 9.\nIt takes 9.\n", "warm/init .1f", "found 2 lines that begin with 'It takes', expected one"),
    ],
    ids=["no result", "no key", "no number", "no line", "two lines"],
)
def test_a_figure_that_cannot_be_filled_is_refused(results: Path, text: str, path: str, message: str) -> None:
    with pytest.raises(tables.DocumentError) as caught:
        tables.fill_figures(text, {"It takes": (path,)}, results)
    assert message in str(caught.value)


def test_a_marker_that_nothing_closes_is_refused(results: Path) -> None:
    with pytest.raises(tables.DocumentError, match="found '<!-- warm -->', expected a table's marker and the one that"):
        tables.fill("<!-- warm -->\n| 1 |\n", results)
