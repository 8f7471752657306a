"""Embed headlines one by one and save the embeddings: what `accuracy` runs under another CPU."""

import argparse
from pathlib import Path

import numpy as np

from bench.data import add_data_argument, read_headlines
from bench.models import open_embedder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("model", type=Path, help="a model's file, its tokenizer.json beside it")
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--out", type=Path, required=True, help="the .npy file to write")


def run(options: argparse.Namespace) -> int:
    """Embed and save."""
    embedder = open_embedder(options.model)
    tokens = embedder.tokenize(read_headlines(options.data, options.texts))
    np.save(options.out, np.concatenate([embedder.embed([one]) for one in tokens]))
    return 0
