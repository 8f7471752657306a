"""The peer of `cold-start`: the two routes as they are usually written with FastAPI and sentence-transformers.

The same model and the same texts; PEER_MODEL is the model's folder, PEER_CORPUS holds embeddings.npy and texts.json.
"""

import json
import os
from pathlib import Path

import numpy as np
from fastapi import FastAPI
from mangum import Mangum
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(os.environ["PEER_MODEL"], device="cpu")
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
    query = model.encode([body.text], normalize_embeddings=True)[0]
    scores = embeddings @ query
    best = np.argsort(-scores)[: body.num_results]
    return {"results": [{"index": int(row), "score": float(scores[row]), "text": texts[row]} for row in best]}


@app.post("/predict")
def predict(body: PredictRequest) -> dict[str, object]:
    """Return the embeddings."""
    wanted = [body.text] if isinstance(body.text, str) else body.text
    return {"embeddings": model.encode(wanted, normalize_embeddings=True).tolist()}


handler = Mangum(app, lifespan="off")
