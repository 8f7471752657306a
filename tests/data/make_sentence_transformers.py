"""Write the models in tests/data/sentence-transformers, and the embeddings that sentence-transformers has for them.

    pip install sentence-transformers
    python -m tests.data.make_sentence_transformers

The transformers are the tiny BERT and its first layer, which the tests add with `add_transformer`.
"""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

DATA = Path(__file__).parent
TINY_BERT = DATA / "tiny-bert"
TEXTS = ("the lion", "The Wolf and the Crane", "A raven stole a piece of meat. " * 9, "12 hares!", "x")
DIMENSIONS = 16  # values of the embeddings `first`
OF_TRANSFORMERS = (
    *("README.md", "*config.json", "special_tokens_map.json", "model.safetensors", "tokenizer*", "vocab.txt"),
)


def make(out: Path) -> None:
    """Write both models and their embeddings into a folder."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import (
        Dense,
        LayerNorm,
        Normalize,
        Pooling,
        Router,
        Transformer,
    )
    from torch import nn

    torch.manual_seed(7)
    norm = LayerNorm(48)
    nn.init.uniform_(norm.norm.weight, 0.2, 2.0)
    nn.init.uniform_(norm.norm.bias, -1.0, 1.0)

    with TemporaryDirectory() as scratch:
        first_layer = add_transformer(Path(scratch) / "first-layer", layers=1)
        modules = [Normalize(), Dense(32, 48), norm, Dense(48, 40, bias=False, activation_function=nn.GELU())]
        steps = SentenceTransformer(
            modules=[Transformer(str(TINY_BERT)), Pooling(32), *modules, Normalize()], device="cpu"
        )
        router = Router.for_query_document(
            query_modules=[Transformer(str(TINY_BERT)), Pooling(32), Dense(32, 24, activation_function=nn.Identity())],
            document_modules=[
                Transformer(str(first_layer)),
                Pooling(32, pooling_mode="cls"),
                Dense(32, 24, activation_function=nn.ReLU()),
            ],
        )
        prompts = {"query": "query: ", "document": "passage: "}
        both = SentenceTransformer(modules=[router, Normalize()], prompts=prompts, device="cpu")
        for transformer in (steps[0], *(router.sub_modules[route][0] for route in ("query", "document"))):
            transformer.max_seq_length = 32
        plain = steps.encode(list(TEXTS))
        short = steps.encode(list(TEXTS), truncate_dim=DIMENSIONS, normalize_embeddings=True)
        save(steps, out / "steps", all=plain, first=short)
        save(both, out / "router", query=both.encode_query(list(TEXTS)), document=both.encode_document(list(TEXTS)))
    make_cross_encoder(out / "cross-encoder")


def make_cross_encoder(folder: Path) -> None:
    """Write a cross-encoder that is laid out as ettin-reranker is, and its scores of each text with each other one."""
    import torch
    from sentence_transformers import CrossEncoder
    from sentence_transformers.sentence_transformer.modules import Dense, LayerNorm, Pooling, Transformer
    from torch import nn

    torch.manual_seed(7)
    norm = LayerNorm(24)
    nn.init.uniform_(norm.norm.weight, 0.2, 2.0)
    nn.init.uniform_(norm.norm.bias, -1.0, 1.0)
    score = Dense(24, 1, activation_function=nn.Identity(), module_output_name="scores")
    nn.init.uniform_(score.linear.weight, -1.0, 1.0)
    first = Dense(32, 24, bias=False, activation_function=nn.GELU())
    modules = [Transformer(str(TINY_BERT)), Pooling(32, pooling_mode="cls"), first, norm, score]
    model = CrossEncoder(modules=modules, activation_fn=nn.Identity(), device="cpu")
    model[0].max_seq_length = 32
    pairs = [(query, text) for query in TEXTS for text in TEXTS]
    save(model, folder, scores=[model.predict(pairs)])


def add_transformer(folder: Path, layers: int = 2) -> Path:
    """Copy the tiny BERT's transformer into a folder, with its first layers alone."""
    from safetensors.numpy import load_file, save_file

    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "sentence_bert_config.json"):
        shutil.copyfile(TINY_BERT / name, folder / name)
    config = json.loads((TINY_BERT / "config.json").read_bytes()) | {"num_hidden_layers": layers}
    (folder / "config.json").write_text(json.dumps(config))
    tensors = load_file(TINY_BERT / "model.safetensors")
    left_out = tuple(f"encoder.layer.{layer}." for layer in range(layers, 2))
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith(left_out)}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def save(model: Any, folder: Path, **embeddings: Any) -> None:
    """Write the model without its transformers, and embeddings of TEXTS by name."""
    model.save_pretrained(str(folder))
    for transformer in (folder, *folder.glob("*_Transformer")):
        for pattern in OF_TRANSFORMERS:
            for path in transformer.glob(pattern):
                if path.name not in ("router_config.json", "config_sentence_transformers.json"):
                    path.unlink()
    rounded = {name: [[round(float(x), 6) for x in row] for row in rows] for name, rows in embeddings.items()}
    (folder / "embeddings.json").write_text(json.dumps(rounded) + "\n")


if __name__ == "__main__":
    shutil.rmtree(DATA / "sentence-transformers", ignore_errors=True)
    make(DATA / "sentence-transformers")
