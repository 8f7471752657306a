"""An index whose texts the float model has embedded, in processes of its own."""

import shutil
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from semsearch import index
from semsearch.conversion import device as worker
from semsearch.engine.bundle import BY_CORES, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.indexing.bundles import take_model
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.make import IndexSummary
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.vectors import device
from semsearch.indexing.vectors.device import plan_padded_batches
from semsearch.indexing.verification import verify
from tests.command_line import Run, error_line, run, summary, write_texts
from tests.export_fixtures import TINY_BERT, embed_with_transformers
from tests.indexing.vectors.test_given import stored

FLOAT = "cpu float32"


@pytest.fixture
def out(model_alone: tuple[Path, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle with the tiny BERT and no texts; the folder of that model, `tiny-bert`, is here."""
    monkeypatch.chdir(TINY_BERT.parent)
    (tmp_path / "b").mkdir()
    take_model(model_alone[0], tmp_path / "b")
    return tmp_path / "b"


class WorkerHere:
    """A worker without a process of its own, which takes seconds to import PyTorch."""

    def __init__(self, name: str) -> None:
        self.call = resolve_name(name)

    def end(self) -> None:
        """Do nothing."""


@pytest.fixture
def quick_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "Worker", WorkerHere)
    monkeypatch.setattr(worker, "_opened", {})


def rows_of(corpus: Corpus, begin: int = 0, end: int = 60) -> list[dict[str, Any]]:
    return [{"text": text} for text in corpus.texts[begin:end]]


def embed_by_float(rows: Any, out: Path, **options: Any) -> IndexSummary:
    return index(rows, out=out, device="cpu", dtype="float32", progress=False, **options)


@pytest.mark.slow  # a process imports PyTorch
def test_each_row_is_the_float_embedding_of_its_text(out: Path, corpus: Corpus) -> None:
    told: list[tuple[float, int]] = []
    rows = rows_of(corpus)
    made = index(
        *(rows, out), device="cpu", dtype="float32", progress=lambda step, share, texts=0: told.append((share, texts))
    )
    tokens = Embedder.open(out, made.manifest.model).tokenize([row["text"] for row in rows], role="document")
    expected = embed_with_transformers(TINY_BERT, [text.ids for text in tokens], "mean")
    assert (stored(out) * expected).sum(axis=1).min() > 0.9999
    assert made.manifest.corpus.embedded_by == [FLOAT]
    assert made.embedded_by == "cpu, float32"
    assert all(check.passed for check in verify(out))
    assert (1.0, len({row["text"] for row in rows})) in told
    assert index([*rows, *rows], out, device="cpu", dtype="float32", progress=False).embedded_by == ""  # nothing to do


@pytest.mark.usefixtures("quick_workers")
def test_an_update_by_something_else_says_so(out: Path, corpus: Corpus, tmp_path: Path) -> None:
    index(rows_of(corpus), out, progress=False)
    assert read_manifest(out).corpus.embedded_by == [BY_CORES]
    made = embed_by_float(rows_of(corpus, end=80), out)
    assert made.manifest.corpus.embedded_by == [FLOAT, BY_CORES]
    assert "the texts were embedded by cpu float32 and cpu int8" in made.warnings[-1]
    assert all(check.passed for check in verify(out))
    assert not [each for each in embed_by_float(rows_of(corpus, end=90), out).warnings if "embedded by" in each]
    again = index(rows_of(corpus, begin=60, end=80), out, mode="replace", progress=False)
    assert again.rows.updated == 20


@pytest.mark.usefixtures("quick_workers")
def test_auto_without_a_gpu_is_the_processor_with_the_own_model(out: Path, corpus: Corpus, tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts.csv", list(corpus.texts[:20]))
    assert summary(run("index", texts, "--out", out, "--device", "auto"), "embedded by").startswith("the processor")
    assert read_manifest(out).corpus.embedded_by == [BY_CORES]
    other = write_texts(tmp_path / "other.csv", list(corpus.texts[20:40]))
    options = ("--device", "auto", "--dtype", "float32", "--replace")
    assert summary(run("index", other, "--out", out, *options), "embedded by") == "cpu, float32"


@pytest.mark.usefixtures("quick_workers")
def test_errors_of_device_and_model(out: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = write_texts(tmp_path / "texts.csv", list(corpus.texts[:20]))
    assert "--device cuda:7: PyTorch" in error_line(run("index", texts, "--out", out, "--device", "cuda:7"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match="tiny-bert") as caught:
        embed_by_float(rows_of(corpus), out)
    assert "name its folder with model=" in caught.value.__notes__[0]
    other = Path(shutil.copytree(TINY_BERT, tmp_path / "tiny-bert"))
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    with pytest.raises(ModelError, match=r"the weights have the sha256 .*; expected the same; name its folder"):
        embed_by_float(rows_of(corpus), out)


def test_batches_have_room_for_their_padding() -> None:
    lengths = [3, 50, 7, 7, 20, 1, 90]
    assert plan_padded_batches(lengths, 60) == [[6], [1], [4, 2, 3], [0, 5]]


@pytest.mark.usefixtures("quick_workers")
def test_batches_keep_their_rows(out: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Path(shutil.copytree(out, tmp_path / "whole"))
    embed_by_float(rows_of(corpus), whole)
    monkeypatch.setattr("semsearch.indexing.vectors.device.TOKENS_PER_DEVICE_BATCH", {"cpu": 64})
    embed_by_float(rows_of(corpus), out)
    assert (stored(out) * stored(whole)).sum(axis=1).min() > 0.9999
