"""Results as cards, character by character."""

from typing import Any

import pytest

from semsearch.commands.cards import _wrap, cut, print_cards, snippet_line


def test_a_card_has_the_heading_the_way_copies_a_snippet_and_other_passages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = "The angry goose\x07 chased a duck into the river, and then everyone else went home again"
    metadata = {"path": "a.md", "headings": ["Guide", "f(x, y)", "A heading that is much too long"], "version": "2"}
    first: dict[str, Any] = {
        "id": "a.md:1",
        "score": 0.126,
        "metadata": metadata,
        "text": text,
        "snippet": {"text": text[4:], "start": 4, "end": len(text), "highlights": [[0, 5]]},
        "also_in": [
            {"path": "b.md", "version": "1", "language": "de"},
            {"path": "c.md", "version": "2"},
            {"path": "d.md", "version": "1", "language": "de"},
        ],
        "other_passages": [{"id": "other passage with a long name.md", "metadata": {}}],
    }
    two_lines = "(one two three four five six seven"
    listed: dict[str, Any] = {"id": "x", "score": None, "metadata": {}, "text": two_lines}
    listed["snippet"] = {"text": two_lines[1:], "start": 1, "end": len(two_lines), "highlights": []}
    print_cards([first, listed], 38)
    assert capsys.readouterr().out.splitlines() == [
        "  0.13  \x1b[1mA heading that is mu… too long\x1b[0m",
        "        \x1b[2mGuide > f > a.md:1\x1b[0m",
        "        \x1b[2malso in 1 de, c.md\x1b[0m",
        "        …\x1b[1mangry\x1b[0m goose\\x07 chased a duck",
        "        into the river, and then…",
        "        · other passage with…g name.md",
        "",
        "        \x1b[1mx\x1b[0m",
        "        …one two three four five six",
        "        seven",
    ]


def test_a_line_of_a_card_has_at_most_100_characters_and_its_highlights(capsys: pytest.CaptureFixture[str]) -> None:
    text = "x" * 300
    result: dict[str, Any] = {"id": "a", "score": 1, "metadata": {}, "text": text}
    result["snippet"] = {"text": text, "start": 0, "end": 300, "highlights": [[0, 90]]}
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NO_COLOR", raising=False)
        print_cards([result], 200)
        bold = capsys.readouterr().out.splitlines()
        patch.setenv("NO_COLOR", "1")
        print_cards([result], 200)
    lines = [f"        {'x' * 90}", f"        {'x' * 90}…"]
    assert bold[1:] == [f"        \x1b[1m{'x' * 90}\x1b[0m", lines[1]]
    assert capsys.readouterr().out.splitlines() == ["  1.00  a", *lines]


@pytest.mark.parametrize(
    ("text", "room", "expected"),
    [
        ("abcdefghij", 10, "abcdefghij"),
        ("abcdefghijk", 10, "abcdef…ijk"),
        (" a \n b ", 3, "a b"),
        ("abcdef", 4, "ab…f"),
        ("abcdef", -1, "ab…f"),
    ],
)
def test_a_line_that_is_too_long_is_cut_in_the_middle(text: str, room: int, expected: str) -> None:
    assert cut(text, room) == expected


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("one two  three abcdefghijklm x", 9, ["one two", "three", "abcdefghi", "jklm x"]),
        ("abcdefghi abc", 3, ["abc", "def", "ghi", "abc"]),
        ("abcd ef gh", 5, ["abcd", "ef gh"]),
        (" ab", 5, [" ab"]),
        ("", 9, []),
    ],
)
def test_lines_break_between_words_and_inside_of_longer_words(text: str, room: int, lines: list[str]) -> None:
    assert [text[start:end] for start, end in _wrap(text, room)] == lines


@pytest.mark.parametrize(
    ("start", "end", "room", "expected"),
    [
        (0, 11, 11, "one \x1b[1mtwo\x1b[0m 345"),
        (0, 11, 10, "one \x1b[1mtwo\x1b[0m 3…"),
        (0, 7, 7, "one \x1b[1mtw\x1b[0m…"),
        (1, 11, 11, "…ne t\x1b[1mwo \x1b[0m345"),
        (1, 11, 10, "…ne t\x1b[1mwo \x1b[0m3…"),
    ],
)
def test_the_line_of_a_result_says_which_ends_are_cut(
    monkeypatch: pytest.MonkeyPatch, start: int, end: int, room: int, expected: str
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = "one two 345"
    snippet = {"text": text[start:end], "start": start, "end": end, "highlights": [[4, 7]]}
    assert snippet_line({"text": text, "snippet": snippet}, room) == expected
