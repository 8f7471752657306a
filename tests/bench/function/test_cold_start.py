"""The table of cold starts, the candidates without Docker, and the table of the ablation."""

import re
from pathlib import Path

import pytest

from bench.function import ablation, candidates
from bench.function.candidates import (
    EMPTY,
    FASTEMBED,
    OURS,
    RUNTIME,
    make_candidates,
    make_context,
    requirements_of,
)
from bench.function.cold_start import Starts, table
from bench.function.image import base_image
from tests.project import ROOT


def test_the_base_is_the_dockerfiles() -> None:
    assert re.fullmatch(r"\S+/lambda/python:3\.13(@sha256:[0-9a-f]{64})?", base_image())


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


def test_the_context_of_a_peers_image_holds_the_handler_and_the_folders_that_it_reads(tmp_path: Path) -> None:
    model = tmp_path / "somewhere"
    model.mkdir()
    (model / "model.onnx").write_text("graph")
    environment = {"PEER_MODEL": str(model), "PEER_LIBRARY": RUNTIME}
    context = make_context(tmp_path / "context", "fastapi_peer.py", environment)
    assert {path.name for path in context.iterdir()} == {"fastapi_peer.py", "requirements.txt", "PEER_MODEL"}
    assert (context / "PEER_MODEL" / "model.onnx").read_text() == "graph"
    assert (context / "requirements.txt").read_text() == ""


@pytest.mark.parametrize("library", [RUNTIME, FASTEMBED])
def test_a_peer_has_the_tokenizer_and_the_runtime_that_the_function_has(library: str) -> None:
    own = (ROOT / "requirements.txt").read_text()
    packages = requirements_of(library).read_text().split()
    pinned = [package for package in packages if package.split("=")[0] in ("onnxruntime", "tokenizers", "numpy")]
    assert len(pinned) == 3
    assert all(f"{package} " in own for package in pinned)


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
