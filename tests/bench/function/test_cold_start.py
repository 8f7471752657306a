"""The table of cold starts, the candidates without Docker, and the table of the ablation."""

from pathlib import Path

import pytest

from bench.function import ablation, candidates
from bench.function.candidates import (
    EMPTY,
    OURS,
    make_candidates,
)
from bench.function.cold_start import Starts, table


def test_without_docker_the_functions_run_on_this_python_and_the_reason_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("function_package", "function_python", "emulator"):
        monkeypatch.setattr(candidates, name, lambda work: work)
    made = make_candidates(tmp_path, tmp_path / "bundle")
    assert [*made] == [EMPTY, OURS]
    assert {candidate.place.partition(",")[0] for candidate in made.values()} == {"no image"}
    assert capsys.readouterr().out.startswith("docker is not installed on this machine: measuring with Python 3.")


def test_a_row_of_cold_starts_has_the_place_the_medians_and_the_ratio_to_the_empty_handler() -> None:
    seen = {
        EMPTY: Starts([50, 40], [60, 50], [30, 30], [14, 14], [{}, {}], [2, 2]),
        OURS: Starts([200, 250], [210, 260], [180, 180], [130, 131], [{"app": 4.0}, {"app": 6.0}], [190, 210]),
        "peer": Starts([400, 1000], [500, 1100], [360, 450], [130, 131], [{}, {}], [5, 6]),
    }
    columns, rows = table({EMPTY: "image", OURS: "no image", "peer": "image"}, {"warm": seen})
    ours = dict(zip(columns, rows[1], strict=True))
    assert (ours[""], ours["runs in"], ours["page cache"]) == (OURS, "no image", "warm")
    assert (ours["INIT ms"], ours["x empty"], ours["phases ms"]) == ("225 (200 to 250)", "5.0", "app 5")
    assert ours["first GET /info ms"] == "200 (190 to 210)"
    peer = dict(zip(columns, rows[2], strict=True))
    assert (peer["CPU ms"], peer["this function's share of INIT, CPU"]) == (
        "405",
        "0.38, 0.45",
    )  # medians of the rounds


def test_the_variants_of_the_ablation_are_sorted_by_their_worth_and_compared_round_by_round() -> None:
    seen = {
        ablation.WHOLE: [100.0, 200.0, 300.0],
        ablation.COPY: [102.0, 202.0, 302.0],
        "thread": [101.0, 201.0, 301.0],
        "archive": [151.0, 251.0, 351.0],
    }
    columns, rows = ablation.table(dict.fromkeys(seen, "why"), {"warm": seen})
    assert columns == ["without", "which means", "INIT ms, page cache warm", "more ms, page cache warm"]
    assert [row[0] for row in rows] == [ablation.WHOLE, ablation.COPY, "archive", "thread"]
    assert rows[2] == ("archive", "why", "251", "+50 (+50 to +50)")
