"""Texts become embeddings on all cores of this machine, and a corpus becomes the rows of its index."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from function.engine.arrays import Array
from function.engine.embedder import EmbedBatch, Embedder
from function.engine.quantization import Codes, Embeddings, Scales, quantize

TEXTS_PER_CHUNK = 4096  # texts of like length share a batch, so a chunk holds many; all its embeddings are in memory
CHARACTERS_PER_CHUNK = 4_000_000  # a chunk is tokenized at once, with several bytes a character, also those cut off


def embed_texts(embedder: Embedder, texts: list[str]) -> Embeddings:
    """Return the unit embeddings of the texts without a prompt, (n, dim) float32. All of them are tokenized at once."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return embedder.embed(embedder.tokenize(texts), pool.map)


def embed_documents(
    embedder: Embedder, texts: list[str], progress: Callable[[int], None] = lambda texts: None
) -> Iterator[tuple[Embeddings, Array[np.bool_]]]:
    """Embed the texts on all cores; yield chunks: unit embeddings (n, dim) float32, and which were truncated, (n,).

    `progress` gets the number of texts done since its last call, after each batch, because a chunk of long texts may
    take minutes.
    """

    def run(embed: EmbedBatch, batches: Sequence[list[int]]) -> Iterator[Embeddings]:
        for batch, embeddings in zip(batches, pool.map(embed, batches), strict=True):
            progress(len(batch))
            yield embeddings

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for chunk in _chunks(texts):
            tokens = embedder.tokenize(chunk, role="document")
            yield embedder.embed(tokens, run), np.array([text.is_truncated for text in tokens], bool)


def _chunks(texts: list[str]) -> Iterator[list[str]]:
    """Yield lists of at most TEXTS_PER_CHUNK texts and CHARACTERS_PER_CHUNK characters; a longer text is alone."""
    begin = characters = 0
    for end, text in enumerate(texts):
        if end > begin and (end - begin == TEXTS_PER_CHUNK or characters + len(text) > CHARACTERS_PER_CHUNK):
            yield texts[begin:end]
            begin, characters = end, 0
        characters += len(text)
    if begin < len(texts):
        yield texts[begin:]


def embed_corpus(
    embedder: Embedder, texts: list[str], progress: Callable[[int], None] = lambda texts: None
) -> tuple[Codes, Scales, int]:
    """Return the rows of the index, codes (n, dim) int8 and scales (n,) float32, and how many texts were truncated.

    Equal texts are embedded once, so that their rows are equal and a search returns them in the corpus's order. In
    different batches the last bits of their embeddings could differ.
    `progress` gets the number of texts done since its last call.
    """
    places: dict[str, int] = {}
    row_of_text = np.array([places.setdefault(text, len(places)) for text in texts], np.intp)
    copies = np.bincount(row_of_text, minlength=len(places))
    codes = np.empty((len(places), embedder.model.dim), np.int8)
    scales = np.empty(len(places), np.float32)
    truncated = row = 0
    if len(places) < len(texts):
        progress(len(texts) - len(places))
    for embeddings, is_truncated in embed_documents(embedder, list(places), progress):
        rows = slice(row, row + len(embeddings))
        codes[rows], scales[rows] = quantize(embeddings)
        truncated += int(copies[rows][is_truncated].sum())
        row += len(embeddings)
    if len(places) == len(texts):
        return codes, scales, truncated
    return codes[row_of_text], scales[row_of_text], truncated
