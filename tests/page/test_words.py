"""Which words of a text are marked; the page's own script, run by node."""

import json
import shutil
import subprocess

import pytest

from tests.project import ROOT

SCRIPT = ROOT / "function" / "page" / "words.js"
LONGEST = 65_536  # characters of a query
MARKED = """
const [query, texts] = JSON.parse(require("fs").readFileSync(0, "utf8"));
const words = queryWords(query);
const marked = (text) => findWords(text, words).map(([begin, end]) => text.slice(begin, end));
console.log(JSON.stringify(texts.map(marked)));
"""


def mark(query: str, texts: list[str]) -> list[list[str]]:
    """Return the parts of each text that are marked."""
    if (node := shutil.which("node")) is None:
        pytest.skip("node is not installed")
    done = subprocess.run(
        [node, "-e", SCRIPT.read_text(encoding="utf-8") + MARKED],
        input=json.dumps([query, texts]),
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    found: list[list[str]] = json.loads(done.stdout)
    return found


def test_words_are_marked_that_differ_in_nothing_but_their_endings() -> None:
    text = "Search, searching, searched; research. A sea, the SEARCHES - 東京タワー and e\u0301tudes"
    marked = ["Search", "searching", "searched", "SEARCHES", "東京", "e\u0301tudes"]
    assert mark("the search in 東京: étude", [text]) == [marked]
    assert mark("searching", [text]) == [["Search", "searching"]]


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        (" ".join(f"w{number}" for number in range(11_000)), "t0 w777 " * 4_000, "w777"),
        (" ".join(chr(0x4E00 + number) for number in range(20_000)), "乁 龍 " * 5_000, "乁"),
        ("a" + "\u0301\u0316" * 32_000, "a" + "\u0301\u0316" * 10_000, None),
    ],
    ids=["words", "Chinese characters", "combining marks"],
)
def test_the_longest_query_marks_a_hundred_long_texts_in_time(query: str, text: str, marked: str | None) -> None:
    found = mark(query[:LONGEST], [text] * 100)
    assert len(found) == 100
    assert all(set(parts) == {marked or text[:20_000]} for parts in found)
