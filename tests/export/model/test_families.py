"""Each family that the export accepts gives the embeddings of transformers, and is refused without its tensors."""

import shutil
from pathlib import Path
from typing import Any

import onnx
import pytest
from safetensors.numpy import load_file, save_file

from export.model.graph import export_graph
from export.model.load_model import load_model
from export.model.reference import check_agreement, run_original
from export.model.source.model_files import ModelError
from export.model.source.source import FAMILIES, read_source
from export.model.source.tokenizer import write_tokenizer
from function.engine.bundle import TOKENIZER, ModelInfo
from function.engine.embedder import Embedder, open_session
from function.engine.tokenizer import read_tokenizer
from tests.export.conftest import TINY_BERT

# the code of DeBERTa and of ModernBERT
pytestmark = pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script(_method)?` is deprecated:DeprecationWarning")

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
DISTILBERT_SIZES = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}
# the defaults of its special tokens are beyond the vocabulary; the longest text is longer than the window of attention
MODERNBERT_TOKENS = {"pad_token_id": 0, "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3}
MODERNBERT_SIZES = SIZES | MODERNBERT_TOKENS | {"local_attention": 8}


@pytest.fixture(params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A tiny model of the family, with random weights and the tiny BERT's tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModel

    sizes: dict[str, Any] = {"distilbert": DISTILBERT_SIZES, "modernbert": MODERNBERT_SIZES}.get(request.param, SIZES)
    config = AutoConfig.for_model(
        request.param, vocab_size=591, max_position_embeddings=26, initializer_range=0.5, **sizes
    )
    torch.manual_seed(7)
    AutoModel.from_config(config).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(TINY_BERT / name, tmp_path / name)
    return tmp_path


def test_a_model_of_the_family_is_exported_and_agrees_with_transformers(folder: Path) -> None:
    workdir = folder / "work"
    source = read_source(folder, folder.name)
    onnx.save(export_graph(source, workdir), workdir / "exact.onnx")
    write_tokenizer(source, workdir / TOKENIZER)
    model = ModelInfo("tiny", None, "0" * 64, source.pooling, 32, source.max_tokens, {}, "none")
    exact = Embedder(read_tokenizer(workdir / TOKENIZER), open_session(workdir / "exact.onnx"), model)
    check_agreement(source, run_original(source), exact)


def test_a_model_of_the_family_without_one_of_its_tensors_is_refused(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    source = read_source(folder, folder.name)
    names = [name for name in tensors if not name.startswith("pooler.")]
    for name in (names[0], names[len(names) // 2], names[-1]):
        rest = {other: tensor for other, tensor in tensors.items() if other != name}
        save_file(rest, folder / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(ModelError, match=f"the weights lack 1 tensors, such as {name}"):
            load_model(source)
