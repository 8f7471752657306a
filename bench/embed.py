"""Embed headlines one by one and save the embeddings: what `accuracy` runs on an emulated CPU.

It imports little, because there every import takes twenty times as long.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from bench.data import add_data_argument, read_headlines
from function.engine.bundle import TOKENIZER, ModelInfo
from function.engine.embedder import Embedder, open_session
from function.engine.tokenizer import read_tokenizer

INFO = "model.json"  # beside the models that `make_models` makes


def open_embedder(path: Path) -> Embedder:
    """Open one precision of the default model."""
    model = ModelInfo(**json.loads((path.parent / INFO).read_bytes()))
    return Embedder(read_tokenizer(path.parent / TOKENIZER), open_session(path), model)


def main() -> int:
    """Embed and save."""
    parser = argparse.ArgumentParser("python -m bench.embed", description=__doc__)
    add_data_argument(parser)
    parser.add_argument("model", type=Path, help="a model's file, its tokenizer.txt and model.json beside it")
    parser.add_argument("--texts", type=int, default=64, help="headlines to embed")
    parser.add_argument("--out", type=Path, required=True, help="the .npy file to write")
    options = parser.parse_args()
    embedder = open_embedder(options.model)
    tokens = embedder.tokenize(read_headlines(options.data, options.texts))
    np.save(options.out, np.concatenate([embedder.embed([text]) for text in tokens]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
