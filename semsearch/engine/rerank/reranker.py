"""A query and a text to a score: a cross-encoder, which reads both together.

It is more accurate than the cosine of two embeddings, and slower, because it runs for each text of each query. So it
scores only the best candidates of a search. The first request that needs it opens it.

The graph returns a logit: the higher, the better the text answers the query. A model with two labels has the logit of
the second label minus that of the first. The sigmoid of the logit is a probability.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from semsearch.engine.bundle import RERANK, RERANK_TOKENIZER, TOKENIZER, Manifest, RerankInfo
from semsearch.engine.embedder import RunBatches, TokenIds, open_part, open_session, plan_batches
from semsearch.engine.hits import DECIMALS, Find, Hit, Mask
from semsearch.engine.tensors import Array
from semsearch.engine.tokenizer import read_tokenizer

if TYPE_CHECKING:
    import onnxruntime as ort
    from tokenizers import Encoding, Tokenizer

Logits = Array[np.float32]  # (n,)


class Reranker:
    """An open cross-encoder: `tokenize_pairs`, then `score`."""

    def __init__(self, tokenizer: "Tokenizer", session: "ort.InferenceSession", info: RerankInfo) -> None:
        """Take an open tokenizer and session, and let the tokenizer truncate pairs at the model's max_tokens."""
        tokenizer.no_padding()
        tokenizer.enable_truncation(info.max_tokens, strategy="longest_first")
        self._tokenizer = tokenizer
        self._session = session
        self._has_types = "token_type_ids" in [value.name for value in session.get_inputs()]
        self.info = info

    @classmethod
    def open(cls, bundle: Path, manifest: Manifest) -> "Reranker":
        """Open the reranker of a bundle. The session runs in the thread that calls it.

        Raises BundleError if a file is damaged.
        """
        assert manifest.rerank is not None
        name = RERANK_TOKENIZER if RERANK_TOKENIZER in manifest.files else TOKENIZER
        tokenizer = open_part(read_tokenizer, bundle / name)
        return cls(tokenizer, open_part(open_session, bundle / RERANK), manifest.rerank)

    def tokenize_pairs(self, query: str, texts: Sequence[str], most_tokens: int | None = None) -> list[TokenIds]:
        """Return the tokens of the query with each text, at most max_tokens: the longer of the two is truncated.

        `most_tokens` limits the tokens of each text before that.
        """
        if most_tokens is None or most_tokens >= self.info.max_tokens:
            encodings = self._tokenizer.encode_batch([(query, text) for text in texts])
            return [self._token_ids(encoding) for encoding in encodings]
        first, *others = self._tokenizer.encode_batch([query, *texts], add_special_tokens=False)
        pairs = []
        for other in others:
            is_truncated = len(other.ids) > most_tokens
            other.truncate(most_tokens)
            pairs.append(self._token_ids(self._tokenizer.post_process(first, other), is_truncated))
        return pairs

    def _token_ids(self, encoding: "Encoding", is_truncated: bool = False) -> TokenIds:
        is_full = len(encoding.ids) == self.info.max_tokens
        return TokenIds(encoding.ids, is_truncated or (is_full and bool(encoding.overflowing)), encoding.type_ids)

    def score(self, pairs: Sequence[TokenIds], run: RunBatches = map) -> Logits:
        """Return the logit of each pair, (n,) float32. `run` maps over the batches, as in `Embedder.embed`.

        The pairs of a batch have the same number of tokens. So the logit of a pair is the same, to the last bit, alone
        and with any other pairs. Padding to multiples of 4, 8 or 16 tokens, for fewer batches, takes more time.
        """
        logits = np.empty(len(pairs), np.float32)
        batches = plan_batches([len(pair.ids) for pair in pairs])
        found = run(lambda places: self.score_batch([pairs[place] for place in places]), batches)
        for batch, result in zip(batches, found, strict=True):
            logits[batch] = result
        return logits

    def score_batch(self, pairs: Sequence[TokenIds]) -> Logits:
        """Return the logits of pairs with the same number of tokens, (n,) float32."""
        ids = np.array([pair.ids for pair in pairs], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        if self._has_types:
            feed["token_type_ids"] = np.array([pair.types for pair in pairs], np.int64)
        (logits,) = self._session.run(None, feed)
        return np.asarray(logits, np.float32)


def probabilities(logits: Logits) -> Array[np.float64]:
    """Return the sigmoid of logits, (n,) float64, 0 to 1."""
    values: Array[np.float64] = 0.5 * (1 + np.tanh(0.5 * logits.astype(np.float64)))
    return values


def blended(find: Find, candidates: Sequence[Hit], logits: Logits, weight: float, mode: str) -> Find:
    """Return a function like `find` that ranks the candidates by both scores, and other hits behind them.

    candidates are the first hits of `find`, at least one. logits, (n,) float32, are those of their texts. mode is the
    key in the `scores` of a hit for the score that `find` returned.
    """
    first, second = np.array([hit.score for hit in candidates]), logits.astype(np.float64)
    scores = np.round(weight * _stretch(second) + (1 - weight) * _stretch(first), DECIMALS)
    own = np.round(probabilities(logits), DECIMALS)
    best = []
    for place in np.argsort(-scores, kind="stable").tolist():
        hit = candidates[place]
        best.append(Hit(hit.row, float(scores[place]), _scores(hit, mode) | {"rerank": float(own[place])}))
    rows, low = {hit.row for hit in candidates}, float(first.min())
    spread = float(first.max()) - low or 1.0

    def find_blended(count: int, mask: Mask | None) -> list[Hit]:
        allowed = [hit for hit in best if mask is None or mask[hit.row]]
        if len(allowed) >= count:
            return allowed[:count]
        behind = [
            replace(hit, score=min(0.0, round((hit.score - low) / spread, DECIMALS)), scores=_scores(hit, mode))
            for hit in find(count, mask)
            if hit.row not in rows
        ]
        return (allowed + behind)[:count]

    return find_blended


def _scores(hit: Hit, mode: str) -> dict[str, float]:
    return (hit.scores or {}) | {mode: hit.score}


def _stretch(scores: Array[np.float64]) -> Array[np.float64]:
    """Return scores from 0 for the lowest to 1 for the highest, all 1 if they are equal."""
    low, high = scores.min(), scores.max()
    if high == low:
        return np.ones_like(scores)
    stretched: Array[np.float64] = (scores - low) / (high - low)
    return stretched
