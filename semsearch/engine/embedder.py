"""Texts to unit embeddings: the tokenizer and the ONNX session, the same for a passage and for a query.

The graph includes pooling and normalization. `plan_batches` puts only texts with the same number of tokens into a
batch, so no text is padded, and its embedding is the same, to the last bit, alone and in any batch.

A query table embeds queries without the model.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # official builds since 1.29 have telemetry; they read this when imported

import numpy as np

from semsearch.engine.bundle import MODEL, TOKENIZER, BundleError, ModelInfo
from semsearch.engine.quantization import Codes, Embeddings
from semsearch.engine.tensors import DAMAGED, TensorsError, map_tensors
from semsearch.engine.tokenizer import read_tokenizer, split_word

if TYPE_CHECKING:
    import onnxruntime as ort
    from tokenizers import Encoding, Tokenizer

VECTORS = "vectors"  # name of the tensor in queries.safetensors
SHORT_TEXT = 4_000  # maximum characters of a text that is tokenized in about a millisecond
TOKENS_PER_BATCH = 128  # maximum tokens; the activations of a larger batch do not fit a core's cache
SESSION_OPTIONS = {
    "session.load_model_format": "ORT",
    "session.intra_op.allow_spinning": "0",  # a waiting thread must not use the vCPU that the function pays for
}
MAPPED_OPTIONS = {
    "session.use_memory_mapped_ort_model": "1",  # weights are mapped instead of copied, which loads faster
    "session.use_ort_model_bytes_directly": "1",
    "session.use_ort_model_bytes_for_initializers": "1",
}

Part = TypeVar("Part")
EmbedBatch = Callable[[list[int]], Embeddings]  # from the rows of a batch to their embeddings
RunBatches = Callable[[EmbedBatch, Sequence[list[int]]], Iterable[Embeddings]]  # maps over batches, as `map` does


@dataclass(frozen=True, slots=True)
class TokenIds:
    """The tokens of one text or pair, special tokens included, and whether the end of a text was cut off."""

    ids: list[int]
    is_truncated: bool
    types: Sequence[int] = ()  # token types of a pair: 0 in the first text, 1 in the second; empty for one text


class UnreadModel(FileIO):
    """The open file of a model that is not loaded yet. It stays readable after an update has deleted it."""

    def load(self, path: Path) -> "ort.InferenceSession":
        """Return the session of this file, which was opened at a path.

        It is mapped if it is still there, and otherwise read into memory. The session takes no open file, and not every
        system has a path for one.
        """
        if self._is_at(path):
            session = open_session(path)
            if self._is_at(path):  # otherwise another file may have taken its place meanwhile
                return session
        return open_session(self.readall())

    def _is_at(self, path: Path) -> bool:
        try:
            return os.path.samestat(os.fstat(self.fileno()), path.stat())
        except FileNotFoundError:
            return False

    def __del__(self) -> None:
        """Close the file, without a warning: many functions never need it."""
        self.close()


class Embedder:
    """An open model: `tokenize`, then `embed`."""

    def __init__(self, tokenizer: "Tokenizer", session: "ort.InferenceSession | UnreadModel", model: ModelInfo) -> None:
        """Take an open tokenizer and session, and let the tokenizer truncate at the model's max_tokens.

        The first text that is embedded opens the session of an UnreadModel.
        """
        tokenizer.no_padding()
        tokenizer.enable_truncation(model.max_tokens)
        self._tokenizer = tokenizer
        self._session = session
        self._opening = Lock()
        self.model = model

    @classmethod
    def open(cls, bundle: Path, model: ModelInfo, *, is_lazy: bool = False) -> "Embedder":
        """Open the model and the tokenizer of a bundle. The session runs in the thread that calls it.

        With is_lazy, the first text that is embedded opens the model; until then, not a byte of it is read.
        Raises BundleError if one of the files is damaged.
        """
        tokenizer = open_part(read_tokenizer, bundle / TOKENIZER)
        if is_lazy:
            return cls(tokenizer, open_part(UnreadModel, bundle / MODEL), model)
        return cls(tokenizer, open_part(open_session, bundle / MODEL), model)

    @property
    def vocabulary_size(self) -> int:
        """Return the number of tokens of the tokenizer, special ones included."""
        return int(self._tokenizer.get_vocab_size())

    @property
    def is_open(self) -> bool:
        """Return whether the session is open."""
        return not isinstance(self._session, UnreadModel)

    def open_session(self) -> "ort.InferenceSession":
        """Return the session; the first call opens it. Raises BundleError if the model is damaged."""
        with self._opening:
            if isinstance(self._session, UnreadModel):
                with self._session as file:
                    self._session = open_part(file.load, Path(file.name))
            return self._session

    def tokenize(self, texts: Sequence[str], role: str = "") -> list[TokenIds]:
        """Return the token ids of each text, at most max_tokens of them.

        role is "query" or "document". The model's prompt for that role, if it has one, is put before each text.
        """
        prompt = self.model.prompts.get(role, "")
        encodings = self._encode([prompt + text for text in texts])
        # `overflowing` takes time, and only a text that fills max_tokens can have been cut
        return [
            TokenIds(encoding.ids, len(encoding.ids) == self.model.max_tokens and bool(encoding.overflowing))
            for encoding in encodings
        ]

    def split_word(self, word: str) -> Sequence[str]:
        """Return what the function `split_word` returns for this model's tokenizer."""
        return split_word(self._tokenizer, word)

    def encode(self, text: str, role: str = "") -> "tuple[str, list[Encoding]]":
        """Return a text with its prompt, and the encoding of all of it, in pieces of at most max_tokens."""
        prompted = self.model.prompts.get(role, "") + text
        (encoding,) = self._encode([prompted])
        return prompted, [encoding, *encoding.overflowing]

    def _encode(self, texts: list[str]) -> "list[Encoding]":
        """Return the encodings of texts.

        One short text is encoded in this thread alone, since `encode_batch` starts a thread on each core. A long one
        takes up to a quarter of a second, in which `encode` would hold the GIL and `encode_batch` does not.
        """
        if len(texts) == 1 and len(texts[0]) <= SHORT_TEXT:
            return [self._tokenizer.encode(texts[0])]
        found: list[Encoding] = self._tokenizer.encode_batch(texts)
        return found

    def embed(self, tokens: Sequence[TokenIds], run: RunBatches = map) -> Embeddings:
        """Return the unit embeddings, (n, dim) float32, in the order of the texts.

        `run` maps over the batches of `plan_batches`: an executor's `map` spreads them over threads, since the session
        releases the GIL while it runs.
        """
        embeddings = np.empty((len(tokens), self.model.dim), np.float32)
        batches = plan_batches([len(text.ids) for text in tokens])
        found = run(lambda rows: self.embed_batch([tokens[row].ids for row in rows]), batches)
        for batch, result in zip(batches, found, strict=True):
            embeddings[batch] = result
        return embeddings

    def embed_batch(self, ids: list[list[int]]) -> Embeddings:
        """Return the unit embeddings of one batch, (n, dim) float32. Shorter texts are padded; `embed` passes none."""
        longest = max(map(len, ids))
        input_ids = np.zeros((len(ids), longest), np.int64)
        attention_mask = np.zeros((len(ids), longest), np.int64)
        for row, text in enumerate(ids):
            input_ids[row, : len(text)] = text
            attention_mask[row, : len(text)] = 1
        (result,) = self.open_session().run(None, {"input_ids": input_ids, "attention_mask": attention_mask})
        return np.asarray(result, np.float32)


class QueryTable:
    """Embeds a text as the sum of the vectors of its tokens, scaled to unit length.

    The vectors are learned from the corpus (indexing/vectors/query_table.py). They are integers, so each sum is
    exact: a text has the same embedding on every processor and in every browser. A scale of the integers is left out,
    because scaling to unit length cancels it. The file is memory-mapped, and a query reads the rows of its own tokens.
    """

    def __init__(self, vectors: Codes) -> None:
        """Take the vectors, (tokens, dim) int8; the row of a vector is the id of its token."""
        self._vectors = vectors

    @classmethod
    def open(cls, path: Path, dim: int | None = None) -> "QueryTable":
        """Memory-map a file queries.safetensors with vectors of `dim` values, None for any number.

        Raises TensorsError if it is not complete.
        """
        return cls(map_tensors(path, scattered=True).require(VECTORS, [None, dim], np.int8))

    def embed(self, tokens: Sequence[TokenIds]) -> Embeddings:
        """Return the unit embeddings, (n, dim) float32. An embedding is zeros if the sum of its vectors is zero.

        Raises TensorsError if a token has no vector.
        """
        most = max(max(text.ids) for text in tokens)
        if most >= len(self._vectors):
            found = f"{len(self._vectors)} vectors, expected one for each token and so for token {most}"
            raise TensorsError(f"query table: {found}; {DAMAGED}")
        sums = np.array([self._vectors[text.ids].sum(axis=0, dtype=np.int64) for text in tokens])
        lengths = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
        return np.asarray(sums / np.maximum(lengths, 1), np.float32)


def open_part(read: Callable[[Path], Part], path: Path) -> Part:
    """Return what `read` returns for a file of the bundle. Raises BundleError if the file is damaged."""
    try:
        return read(path)
    except Exception as error:  # neither library raises anything more specific
        raise BundleError(f"{path}: {error}; run `semsearch index` again") from error


def open_session(model: Path | bytes) -> "ort.InferenceSession":
    """Open a graph for one thread. An .onnx file is optimized now. Any other file is optimized already, and mapped.

    The bytes of an optimized file are copied: the session would not keep them alive.
    """
    import onnxruntime as ort  # a search with a query table does not need it

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    if isinstance(model, bytes) or model.suffix != ".onnx":
        entries = SESSION_OPTIONS
        if isinstance(model, Path):
            entries = SESSION_OPTIONS | MAPPED_OPTIONS
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        for name, value in entries.items():
            options.add_session_config_entry(name, value)
        # memory planning lengthens the load and saves nothing, because tensor shapes change with every text
        options.enable_mem_reuse = False
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def plan_batches(lengths: Sequence[int]) -> list[list[int]]:
    """Return the rows of each batch, longest texts first; a batch has at most TOKENS_PER_BATCH tokens, or one text.

    The texts of a batch have the same length. Padding would change the last bits of the shorter ones' embeddings, which
    would change the 8-bit codes of some rows.
    """
    batches: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        length = lengths[row]
        if batches and lengths[batches[-1][0]] == length and (len(batches[-1]) + 1) * length <= TOKENS_PER_BATCH:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def keep_dimensions(embeddings: Embeddings, dimensions: int | None) -> Embeddings:
    """Return unit embeddings of the first `dimensions` values of embeddings (n, dim) float32; None keeps them all."""
    if dimensions is None or dimensions == embeddings.shape[1]:
        return embeddings
    first = embeddings[:, :dimensions]
    norms = np.linalg.norm(first, axis=1, keepdims=True)
    return np.asarray(first / np.maximum(norms, np.finfo(np.float32).tiny), np.float32)  # zeros stay zeros
