"""A query and a text to a score: a cross-encoder, which reads both together.

It is more accurate than the cosine of two embeddings, and it runs once for each text. So it scores only the best
candidates of a search. Opened by the first request that needs it.

The graph returns a logit: the higher, the better the text answers the query. A model with two labels has the logit of
the second label minus that of the first. The sigmoid of the logit is a probability.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort
from tokenizers import Encoding, Tokenizer

from function.engine.arrays import Array
from function.engine.bundle import RERANK, RERANK_TOKENIZER, TOKENIZER, BundleError, Manifest, RerankInfo
from function.engine.embedder import RunBatches, TokenIds, open_session, plan_batches
from function.engine.tokenizer import read_tokenizer

Logits = Array[np.float32]  # (n,)


class Reranker:
    """An open cross-encoder: `tokenize_pairs`, then `score`."""

    def __init__(self, tokenizer: Tokenizer, session: ort.InferenceSession, info: RerankInfo) -> None:
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
        try:
            tokenizer = read_tokenizer(bundle / name)
            name = RERANK
            session = open_session(bundle / name)
        except Exception as error:  # neither library raises anything more specific
            raise BundleError(f"{bundle / name}: {error}; run `python -m export` again with --rerank") from error
        return cls(tokenizer, session, manifest.rerank)

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

    def _token_ids(self, encoding: Encoding, is_truncated: bool = False) -> TokenIds:
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
