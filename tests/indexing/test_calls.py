"""`index` as a program calls it: from a thread, without a main guard, and interrupted."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import count, pairwise
from pathlib import Path
from threading import Thread

import pytest

from semsearch import index, remove
from semsearch.indexing import embedding, steps
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.vectors import query_table
from tests.project import needs_linux
from tests.server.running import WAIT, eventually
from tests.server.test_workers import is_running, workers_of


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder of documents, which processes of their own read."""
    (tmp_path / "docs").mkdir()
    for number in range(50):
        (tmp_path / "docs" / f"{number}.md").write_text(f"# Goose {number}\n\nAn angry goose.\n", encoding="utf-8")
    return tmp_path / "docs"


def test_it_runs_in_a_thread_and_leaves_the_handlers_of_signals(out: Path, documents: Path) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)
    before = [signal.getsignal(number) for number in numbers]
    rows: list[int] = []
    thread = Thread(target=lambda: rows.append(index(documents, out=out, progress=False).manifest.corpus.rows))
    thread.start()
    thread.join(WAIT)
    assert rows == [50]
    assert [signal.getsignal(number) for number in numbers] == before


def test_without_terminal_progress_goes_to_a_function_or_nobody(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []
    index(["a goose"], out=out, progress=lambda step, share, texts=0: told.append(step))
    assert {"read texts", "embed texts", "write the index"} <= set(told)
    for progress in (True, False):
        index(["a goose"], out=out, mode="replace", progress=progress)
    assert capsys.readouterr() == ("", "")


def test_each_step_reports_its_progress_from_0_to_1(out: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("STEPS", 4), ("TEXTS_PER_STEP", 64), ("EMBEDDED_AT_ONCE", 100), ("UNSEEN_SPANS", 10)):
        monkeypatch.setattr(query_table, name, value)
    told: list[tuple[str, float, int]] = []

    def on_progress(step: str, share: float, texts: int = 0) -> None:
        told.append((step, share, texts))

    rows = [{"id": f"r{number}", "text": text} for number, text in enumerate(corpus.texts[:40])]
    index(rows[:30], out=out, queries="table", progress=on_progress)
    of_step: dict[str, list[float]] = {}
    for step, share, _ in told:
        of_step.setdefault(step, []).append(share)
    assert list(of_step) == [
        "read texts",
        "embed texts",
        "write the index",
        "learn the queries",
        "embed a sample again",
    ]
    assert all(shares == sorted(shares) and (shares[0], shares[-1]) == (0, 1) for shares in of_step.values())
    learned = of_step["learn the queries"]
    before, fitting = learned[:-5], learned[-5:]
    assert all(0.05 < second - first <= 0.8 / 7 for first, second in pairwise(before))
    assert fitting == pytest.approx([0.8, 0.8475, 0.895, 0.9425, 1])
    assert ("embed texts", 1.0, 30) in told
    assert told[-1] == ("embed a sample again", 1, 16)
    told.clear()
    index(rows, out=out, learn=True, progress=on_progress)
    assert told[:2] == [("read the older bundle", 0, 0), ("read the older bundle", 1, 0)]
    assert ("embed texts", 0.75, 0) in told  # the share of all texts, and the number of embedded ones
    assert ("embed texts", 1.0, 10) in told


def test_the_summary_has_the_times_of_embedding_and_of_the_whole_call(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (steps, embedding):
        monkeypatch.setattr(module, "perf_counter", count(100).__next__)
    made = index(["a goose", "a ferry"], out=out, progress=False)
    assert (made.embedding_seconds, made.seconds) == (1, 3)  # `make_bundle` looks at the clock in between
    assert remove("0", out, progress=False).seconds == 1


def test_an_eighth_of_the_new_texts_is_embedded_again_to_check_them(
    out: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checked(texts: Sequence[str]) -> str:
        (_, cosine) = index(list(texts), out=out, mode="replace", progress=False).checks
        return cosine.name

    assert checked(corpus.texts[:3]) == "least cosine of 3 rows to their texts"
    assert checked(corpus.texts[3:150]) == "least cosine of 18 rows to their texts"
    assert checked(corpus.texts[100:]) == "least cosine of 16 rows to their texts"
    monkeypatch.setattr(steps, "VERIFIED_PASSAGES", 10)
    assert checked(corpus.texts[:100]) == "least cosine of 10 rows to their texts"


def test_a_notebook_displays_what_was_made_in_a_short_table(out: Path) -> None:
    made = index([{"text": "a <b> goose", "n": 1}, {"text": "a coat", "n": "x"}], out=out, progress=False)
    (warning,) = made.warnings
    head = f"IndexSummary(out={str(out)!r}, texts='2', embedded='2', model={made.manifest.model.name!r}, seconds='"
    assert repr(made).startswith(head)
    assert repr(made).endswith(f"', warnings={warning!r})")
    made = index([{"text": "a goose", "<n>": 1}], out=out, mode="replace", progress=False)
    assert "<tr><th>columns</th><td>&lt;n&gt; (number)</td></tr>" in made._repr_html_()
    assert made._repr_html_().count("<tr>") == 6
    assert "warnings" not in repr(made) + made._repr_html_()


@needs_linux("/proc")
def test_ctrl_c_ends_it_and_its_child_processes(out: Path, documents: Path) -> None:
    (documents / "slow.html").write_text("<div>" * 150_000, encoding="utf-8")  # takes seconds to read
    script = f"""import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from semsearch import index
index({str(documents)!r}, out={str(out)!r})"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd="/", stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert eventually(lambda: len(workers_of(process)) > 0)
        children = workers_of(process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WAIT)
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert eventually(lambda: not any(map(is_running, children)))
