"""The tiny BERT and what its export makes, once for all tests of the export."""

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto
from safetensors.numpy import load_file, save_file

from semsearch.conversion import convert as conversion
from semsearch.conversion import reranker
from semsearch.conversion.convert import export_model
from semsearch.conversion.graph import export_graph
from semsearch.conversion.tasks import convert
from semsearch.engine.bundle import ModelInfo, RerankInfo
from semsearch.engine.embedder import TokenIds
from semsearch.engine.quantization import Embeddings
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing import steps
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.documents import folder as documents
from semsearch.indexing.models import converting
from semsearch.indexing.models.calibration import CalibrationTexts, split_texts
from semsearch.indexing.models.source import Source, read_source, write_tokenizer
from semsearch.indexing.progress import OnProgress
from semsearch.indexing.verification import Check
from tests.command_line import STORY_COLUMNS, Run, run, write_csv, write_texts
from tests.project import folder_of_run
from tests.world import DIM

TINY_BERT = Path(__file__).parent / "data" / "tiny-bert"


@pytest.fixture(scope="session")
def quick_commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make commands in the process of the tests quick.

    Models are converted and documents are read in this process, because a process of its own would import torch or the
    parsers again, for seconds. The same model is converted once, by one of pytest's workers. The floor, which takes a
    second for each index, is not measured; tests/indexing/vectors/test_floor.py measures it. Tests that start a process
    have the real thing.
    """
    folder = folder_of_run(tmp_path_factory)

    def convert_once(
        name: str, task: str, source: Source, texts: CalibrationTexts, out: Path, on_progress: OnProgress
    ) -> Any:
        if task != "convert":
            return convert(task, source, texts, out, on_progress)
        key = repr((source, list(texts.calibration), list(texts.held_out)))
        kept = folder / f"converted-{hashlib.sha256(key.encode()).hexdigest()}"
        with kept.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            info = kept.with_suffix(".json")
            if not info.exists():
                result = convert(task, source, texts, out, on_progress)
                shutil.copytree(out, kept)
                info.write_text(json.dumps(asdict(result)))
        shutil.copytree(kept, out, dirs_exist_ok=True)
        return ModelInfo(**json.loads(info.read_text()))

    def in_this_process(
        workers: int, function: Callable[..., Any], common: Sequence[Any], calls: Sequence[Any]
    ) -> Generator[Any, None, None]:
        for arguments, _ in calls:
            try:
                yield function(*common, *arguments)
            except Exception as error:  # noqa: BLE001  as from a worker
                yield error

    with pytest.MonkeyPatch.context() as patch:
        for module in (conversion, reranker):
            patch.setattr(module, "in_own_process", lambda function, *arguments: function(*arguments))
        patch.setattr(documents, "in_workers", in_this_process)
        patch.setattr(converting, "in_own_process", convert_once)
        patch.setattr(steps, "measure_floor", lambda folder, manifest, on_progress: manifest)
        yield


def convert_here(
    name: str, task: str, source: Source, texts: CalibrationTexts, out: Path, on_progress: OnProgress
) -> ModelInfo | RerankInfo | Check:
    """Convert a model in the process of the tests."""
    return convert(task, source, texts, out, on_progress)


@pytest.fixture(scope="session")
def calibration(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_texts(tmp_path_factory.mktemp("calibration") / "calibration.csv", list(corpus.texts[:100]))


@pytest.fixture(scope="session")
def stories(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """150 stories under "title", among them 3 empty ones and 2 that the model cannot read to their end."""
    rows = [
        {"number": f"s{row}", "title": text, "teller": text.split()[1]} for row, text in enumerate(corpus.texts[:150])
    ]
    for row in (3, 70, 149):
        rows[row]["title"] = " "
    for row in (5, 71):
        rows[row]["title"] = " ".join(corpus.texts[row : row + 6])
    return write_csv(tmp_path_factory.mktemp("stories") / "stories.csv", rows)


@pytest.fixture(scope="session")
def whole(stories: Path, calibration: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """The bundle of one command that does everything, and what that printed."""
    out = tmp_path_factory.mktemp("whole") / "bundle"
    options = ("--model", TINY_BERT, "--calibration", calibration, "--out", out, "--verbose")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(converting, "in_own_process", convert_here)  # the real one, for its progress
        return out, run("index", stories, *STORY_COLUMNS, *options)


@pytest.fixture(scope="session")
def model_alone(calibration: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    out = tmp_path_factory.mktemp("model") / "bundle"
    return out, run("model", "convert", TINY_BERT, "--calibration", calibration, "--out", out)


@pytest.fixture
def story_bundle(whole: tuple[Path, Run], tmp_path: Path) -> Path:
    """A copy of the whole bundle, to be broken or replaced."""
    return Path(shutil.copytree(whole[0], tmp_path / "out" / "bundle"))


@pytest.fixture
def tiny_copy(tmp_path: Path) -> Path:
    """The tiny BERT, for a test that changes its files."""
    return Path(shutil.copytree(TINY_BERT, tmp_path / "tiny-bert"))


@pytest.fixture(scope="session")
def tiny_source() -> Source:
    return read_source(TINY_BERT, "tests/tiny-bert")


@pytest.fixture(scope="session")
def tiny_graph(tiny_source: Source, tmp_path_factory: pytest.TempPathFactory) -> ModelProto:
    """The float32 graph."""
    return export_graph(tiny_source, tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="session")
def tiny_tokens(tiny_source: Source, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> list[TokenIds]:
    """The corpus as the tiny BERT reads it."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.txt"
    write_tokenizer(tiny_source, path)
    tokenizer = read_tokenizer(path)
    tokenizer.enable_truncation(tiny_source.max_tokens)
    return [TokenIds(encoding.ids, bool(encoding.overflowing)) for encoding in tokenizer.encode_batch(corpus.texts)]


@pytest.fixture(scope="session")
def tiny_export(
    tiny_source: Source, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, ModelInfo]:
    """The folder that export_model fills from the tiny BERT and the corpus, and the ModelInfo that it returns."""
    folder = tmp_path_factory.mktemp("export")
    return folder, export_model(tiny_source, split_texts(corpus.texts), folder)


def edit_json(path: Path, **changes: object) -> None:
    """Change some keys of a JSON object on disk; None takes a key out."""
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def split_weights(folder: Path) -> tuple[Path, list[Path]]:
    """Replace a model's weights by two shards with an index; return the index and the shards."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    shards = [folder / f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    names = sorted(tensors)
    half = len(names) // 2
    for shard, part in zip(shards, (names[:half], names[half:]), strict=True):
        save_file({name: tensors[name] for name in part}, shard, metadata={"format": "pt"})
    weight_map = {name: shards[names.index(name) >= half].name for name in names}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return index, shards


def embed_with_transformers(folder: Path, ids: list[list[int]], pooling: str, batch: int = 16) -> Embeddings:
    """Return the unit embeddings of the original model, run by transformers in padded batches and pooled by torch."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    found = []
    for begin in range(0, len(ids), batch):
        part = ids[begin : begin + batch]
        longest = max(map(len, part))
        input_ids = torch.tensor([[*one, *[0] * (longest - len(one))] for one in part])
        mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in part])
        with torch.no_grad():
            tokens = model(input_ids=input_ids, attention_mask=mask).last_hidden_state
        seen = mask.unsqueeze(-1).bool()
        if pooling == "mean":
            pooled = (tokens * seen).sum(1) / seen.sum(1)
        elif pooling == "cls":
            pooled = tokens[:, 0]
        else:
            pooled = tokens.masked_fill(~seen, -torch.inf).amax(1)
        found.append(torch.nn.functional.normalize(pooled, dim=1).numpy())
    return np.concatenate(found)


def clustered_rows(rows: int, offset: float = 0.0, seed: int = 7) -> NDArray[np.float32]:
    """Return unit embeddings, (rows, DIM) float32, in twenty clusters.

    With an offset nearly every value is positive, as after max pooling, so that signs hardly differ.
    """
    random = np.random.default_rng(seed)
    centres = random.standard_normal((20, DIM))
    found = centres[random.integers(20, size=rows)] + 0.6 * random.standard_normal((rows, DIM))
    found = found / np.linalg.norm(found, axis=1, keepdims=True) + offset
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)
