"""The peers: the two routes as they are usually written with FastAPI and Mangum, over one of three libraries.

All have the same model and the same texts. The environment variable PEER_LIBRARY names the library, PEER_MODEL is the
folder of the model, and PEER_CORPUS holds embeddings.npy and texts.json. With ONNX Runtime and tokenizers this is what
a good engineer writes in an afternoon; fastembed does the same with a library.
"""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI
from mangum import Mangum
from pydantic import BaseModel


def make_encoder(library: str, folder: Path) -> Callable[[list[str]], Any]:
    """Return what turns n texts into unit embeddings, (n, dim) float32."""
    if library == "sentence-transformers":
        from sentence_transformers import SentenceTransformer

        return partial(SentenceTransformer(str(folder), device="cpu").encode, normalize_embeddings=True)
    if library == "fastembed":
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource, PoolingType

        source = ModelSource(hf="unused/unused")  # the model is on disk
        TextEmbedding.add_custom_model("peer", PoolingType.DISABLED, False, source, 384, "model.onnx")
        model = TextEmbedding("peer", specific_model_path=str(folder))
        return lambda texts: np.stack(list(model.embed(texts)))
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    session = InferenceSession(folder / "model.onnx")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()

    def encode(texts: list[str]) -> Any:
        tokens = tokenizer.encode_batch(texts)
        ids, mask = [text.ids for text in tokens], [text.attention_mask for text in tokens]
        return session.run(None, {"input_ids": np.array(ids), "attention_mask": np.array(mask)})[0]

    return encode


encode = make_encoder(os.environ["PEER_LIBRARY"], Path(os.environ["PEER_MODEL"]))
corpus = Path(os.environ["PEER_CORPUS"])
embeddings = np.load(corpus / "embeddings.npy")
texts = json.loads((corpus / "texts.json").read_text(encoding="utf-8"))
app = FastAPI()


class SimilarRequest(BaseModel):
    """A search: the text and the number of results."""

    text: str
    num_results: int = 5


class PredictRequest(BaseModel):
    """One text or several."""

    text: str | list[str]


@app.post("/similar")
def similar(body: SimilarRequest) -> dict[str, object]:
    """Return the texts that are closest to the query."""
    scores = embeddings @ encode([body.text])[0]
    best = np.argsort(-scores)[: body.num_results]
    return {"results": [{"index": int(row), "score": float(scores[row]), "text": texts[row]} for row in best]}


@app.post("/predict")
def predict(body: PredictRequest) -> dict[str, object]:
    """Return the embeddings."""
    return {"embeddings": encode([body.text] if isinstance(body.text, str) else body.text).tolist()}


handler = Mangum(app, lifespan="off")
