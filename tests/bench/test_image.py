"""What is measured of an image, without a Docker engine."""

import io
import json
import re
import tarfile
from pathlib import Path

import pytest

from bench import candidates
from bench.candidates import EMPTY, OURS, make_candidates
from bench.cold_start import table
from bench.footprint import last_numbers
from bench.image import base_image
from bench.layers import megabytes_of_layers
from bench.starts import Starts


def tar(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def test_layers_are_measured_unpacked_and_from_the_lowest_up() -> None:
    layers = {"a.tar": tar({"x": b"1" * 2_000_000, "y": b"2" * 500_000}), "b.tar": tar({"z": b"3" * 1_000})}
    manifest = json.dumps([{"Layers": ["a.tar", "b.tar"]}]).encode()
    saved = tar({"b.tar": layers["b.tar"], "manifest.json": manifest, "a.tar": layers["a.tar"]})
    assert megabytes_of_layers(io.BytesIO(saved)) == [2.5, 0.001]


def test_the_base_is_the_dockerfiles() -> None:
    assert re.fullmatch(r"\S+/lambda/python:3\.13(@sha256:[0-9a-f]{64})?", base_image())


def test_a_footprint_is_read_among_the_lines_that_a_function_logs() -> None:
    numbers = {"modules": 3, "files_opened": 1, "megabytes_read": 0.5, "megabytes_mapped": 2.0}
    assert last_numbers(f'{{"level": "INFO"}}\n{json.dumps(numbers)}\n{{"later": 1}}\n') == numbers


def test_without_docker_the_functions_run_on_this_python_and_the_reason_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("function_package", "function_python", "emulator"):
        monkeypatch.setattr(candidates, name, lambda work: work)
    made = make_candidates(tmp_path, tmp_path / "bundle")
    assert [*made] == [EMPTY, OURS]
    assert {candidate.place.partition(",")[0] for candidate in made.values()} == {"no image"}
    assert capsys.readouterr().out.startswith("docker is not installed on this machine: measuring with Python 3.")


def test_rows_of_cold_starts_say_where_each_function_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("function_package", "function_python", "emulator"):
        monkeypatch.setattr(candidates, name, lambda work: work)
    made = make_candidates(tmp_path, tmp_path / "bundle")
    seen = {
        EMPTY: Starts([50, 40], [60, 50], [14, 14], [{}, {}]),
        OURS: Starts([200, 250], [210, 260], [130, 131], [{"app": 4.0}, {"app": 6.0}]),
    }
    numbers = {"modules": 3, "files_opened": 1, "megabytes_read": 0.5, "megabytes_mapped": 2.0}
    columns, rows = table(made, {"warm": seen}, {EMPTY: numbers, OURS: numbers})
    ours = dict(zip(columns, rows[1], strict=True))
    assert ours["runs in"] == made[OURS].place
    assert (ours[""], ours["page cache"], ours["INIT ms"]) == (OURS, "warm", "225 (200 to 250)")
    assert (ours["x empty"], ours["phases ms"]) == ("5.0", "app 5")
