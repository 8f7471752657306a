"""An export that is killed at any moment goes on where it was, and ends with the same bytes.

KILLS=20 in the environment tries more moments.
"""

import os
import random
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from semsearch.engine.bundle import check_bundle
from semsearch.indexing.replacing import PARTIAL
from semsearch.indexing.vectors import embed
from semsearch.indexing.vectors.shards import save_shard
from tests.command_line import Run, contents, export_texts, run, summary, write_csv
from tests.indexing.killing import count_moments, run_until

KILLS = int(os.environ.get("KILLS", "3"))
TEXTS, TEXTS_PER_SHARD = 1_000, 125


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = ("baker", "goose", "ferry", "judge", "silver", "wooden", "kitchen", "river", "market", "prize")
    rows = [
        {"text": f"the {words[row % 10]} and {words[row // 10 % 10]} of {row % 700}", "number": str(row)}
        for row in range(TEXTS)  # 300 of them occur twice
    ]
    return write_csv(tmp_path_factory.mktemp("texts") / "texts.csv", rows)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "TEXTS_PER_SHARD", TEXTS_PER_SHARD)


def index_into(out: Path, texts: Path) -> tuple[object, ...]:
    return "index", texts, "--out", out, "--replace"


def embedded(out: Path, texts: Path) -> str:
    """Export the texts; return what the summary says of the embedded ones."""
    return summary(export_texts(texts, out), "embedded")


@pytest.mark.slow  # the others of this file interrupt an export in this process
def test_a_killed_export_ends_in_the_same_bytes(bundle: Path, texts: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "whole")
    moments = count_moments(tmp_path / "whole", partial(run, *index_into(tmp_path / "whole", texts)))
    expected = contents(tmp_path / "whole")
    old = check_bundle(bundle)
    taken_over = 0
    generator = random.Random(7)
    for part in range(KILLS):  # one moment in each part of the run
        moment = generator.randrange(moments * part // KILLS, moments * (part + 1) // KILLS)
        out = Path(shutil.copytree(bundle, tmp_path / f"killed-{moment}"))
        assert run_until(moment, out, partial(run, *index_into(out, texts))).returncode == -signal.SIGKILL
        if contents(out).keys() == contents(bundle).keys():
            assert check_bundle(out) in (old, check_bundle(tmp_path / "whole"))
        taken_over += "taken over" in embedded(out, texts)
        assert contents(out) == expected, moment
        assert [path.name for path in out.iterdir() if path.is_dir()] == []
    assert taken_over


def interrupt_after(shards: int, out: Path, texts: Path) -> Run:
    """Interrupt an export when this number of shards is finished."""
    left = [shards]

    def save_or_stop(*arguments: Any) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        save_shard(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embed, "save_shard", save_or_stop)
        return run(*index_into(out, texts))


def test_an_interruption_keeps_finished_shards_and_says_so(bundle_copy: Path, texts: Path) -> None:
    done = interrupt_after(2, bundle_copy, texts)
    assert done.code == 130
    assert done.err == f"interrupted: {bundle_copy}/{PARTIAL} keeps what is finished for the next try\n"
    assert embedded(bundle_copy, texts).startswith("450 texts, 500 rows taken over from a try that was")


def test_shards_of_changed_texts_are_left(bundle_copy: Path, texts: Path, tmp_path: Path) -> None:
    whole = Path(shutil.copytree(bundle_copy, tmp_path / "whole"))
    interrupt_after(2, bundle_copy, texts)
    lines = texts.read_text().splitlines()
    changed = tmp_path / "texts.csv"
    changed.write_text("\n".join([lines[0], "another goose,0", *lines[:0:-1]]) + "\n")  # in another order too
    export_texts(changed, bundle_copy)
    export_texts(changed, whole)
    assert contents(bundle_copy) == contents(whole)
