"""The peer of `throughput`, run in its own environment: sentence-transformers' encode, once for each line it is sent.

Arguments: the model's folder and a file with a JSON list of texts. Prints "ready", then the seconds of each run.
"""

import json
import sys
import time
from pathlib import Path

from sentence_transformers import SentenceTransformer

model = SentenceTransformer(sys.argv[1], device="cpu")
texts = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
model.encode(texts[:64])
print("ready", flush=True)
for _ in sys.stdin:
    begin = time.perf_counter()
    model.encode(texts)
    print(time.perf_counter() - begin, flush=True)
