"""Who gets the progress of a call, and which lines are printed of it."""

import io
import re
import sys
from contextlib import redirect_stderr
from types import SimpleNamespace

import pytest
from rich.console import Console

from semsearch.indexing.progress import ProgressLines, chosen_progress, no_progress, showing_progress


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_a_line_says_the_speed_if_texts_were_embedded_and_the_time_once_at_the_end() -> None:
    out = io.StringIO()
    now = 100.0
    lines = ProgressLines(Console(file=out, highlight=False, width=200), interval=10, clock=lambda: now)
    lines("read [texts]", 0)
    lines("read [texts]", 1)  # no time has passed
    lines("read [texts]", 1)
    lines("embed texts", 0)
    now = 109.9
    lines("embed texts", 0.999, 50)
    now = 110.0
    lines("embed texts", 0.999, 50)
    now = 119.9
    lines("embed texts", 0.999, 60)
    now = 5_000.4
    lines("embed texts", 1, 49_004)
    lines("write", 0.5)
    lines("send", 0)
    now = 5_000.9
    lines("send", 1, 8)
    assert out.getvalue().splitlines() == [
        "read [texts]: 100%, took 0:00:00",
        "embed texts: 99%, 5 texts/s",
        "embed texts: 100%, 10 texts/s, took 1:21:40",
        "send: 100%, 16 texts/s, took 0:00:00",
    ]


def test_bars_are_shown_in_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with redirect_stderr(Terminal()) as terminal:
        with chosen_progress(True) as on_progress:
            on_progress("embed texts", 0)
            on_progress("embed texts", 0.5, 60)
            on_progress("write", 1)
        printed = terminal.getvalue()
        assert "embed texts" in printed
        assert "50%" in printed
        assert printed.rindex("write") > printed.rindex("embed texts")
        with chosen_progress(False) as silent:
            assert silent is no_progress
        assert terminal.getvalue() == printed
    with redirect_stderr(io.StringIO()), chosen_progress(True) as silent:
        assert silent is no_progress

    def own(step: str, share: float, texts: int = 0) -> None:
        """Do nothing."""

    with chosen_progress(own) as chosen:
        assert chosen is own


def test_there_is_a_bar_for_each_step_with_its_share_and_its_speed() -> None:
    terminal = Terminal()
    console = Console(file=terminal, force_terminal=True, width=120, color_system=None, _environ={"TERM": "xterm"})
    with showing_progress(console) as on_progress:
        on_progress("read texts", 0)
        on_progress("read texts", 1)
        on_progress("embed texts", 0)
        on_progress("embed texts", 0.5, 60)
    read, embed = terminal.getvalue().rpartition("\x1b[2K")[2].splitlines()[:2]
    assert re.fullmatch(r"read texts {12} \u2501{40} 100% 0:00:0\d\s*", read)
    assert re.match(r"embed texts {11} \u2501{20}\s+50% .* [\d,]+ texts/s", embed)


def test_a_notebook_keeps_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython alone is a stand-in: it records what each output displays."""
    displayed: list[list[str]] = []

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> SimpleNamespace:
        assert raw
        assert display_id
        output = [data["text/plain"]]
        displayed.append(output)
        return SimpleNamespace(update=lambda data, raw: output.append(data["text/plain"]))

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    console = Console(file=io.StringIO(), force_jupyter=True)
    with showing_progress(console) as on_progress:
        on_progress("read texts", 0)
        on_progress("read texts", 1)
        on_progress("embed texts", 1, 60)
    with pytest.raises(ValueError, match="no texts"), showing_progress(console) as on_progress:
        raise ValueError("no texts")
    assert displayed[0][:4] == ["starting", "read texts: 0%", "read texts: 100%", "embed texts: 100%"]
    assert re.fullmatch(r"took 0:00:0\d", displayed[0][4])
    assert [output[0] for output in displayed] == ["starting", "starting"]
    assert displayed[1][1].startswith("took ")
