"""Other libraries' indexes over the same rows: made once, and searched as far as a wanted recall takes."""

import json
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path

from bench.answering import Effort
from bench.child import run_measured
from bench.contest import Searcher
from bench.exact import Exact
from bench.folders import PEERS, PROJECT
from bench.report import console

STARTS = 5  # of the interpreter, to time an import
SCRIPT = "bench.peers.nearest"
PROBES = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512]
EXPANSIONS = [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512]

# each peer's name and the settings that it can be searched with, in groups within which recall grows
EFFORTS: dict[str, list[list[Effort]]] = {
    "numpy": [[()]],
    "faiss-flat": [[()]],
    "faiss-ivf-sq8": [[(probes,) for probes in PROBES]],
    "faiss-ivf-pq": [[*product(PROBES, [factor])] for factor in (5, 10, 20, 40)],  # rescored: 10 hits times this
    "faiss-ivf-rabitq": [[*product(PROBES, [factor])] for factor in (5, 10, 20, 40)],
    "faiss-hnsw": [[(expansion,) for expansion in EXPANSIONS]],
    "usearch-hnsw": [[(expansion,) for expansion in EXPANSIONS]],
    "rabitqlib-ivf": [[(probes,) for probes in PROBES]],
}
LIBRARIES = ("numpy", "faiss", "usearch", "rabitqlib")  # how the names begin; --peers chooses among them


@dataclass(frozen=True, slots=True)
class Took:
    """What making an index of another library took, its file, and what importing the library takes."""

    build_seconds: float
    build_megabytes: float  # the peak of the memory while it was made
    file_megabytes: float
    import_milliseconds: float


@dataclass(frozen=True, slots=True)
class Built:
    """An index of another library: its file, and what it took."""

    path: Path
    took: Took


def chosen_peers(libraries: Sequence[str]) -> list[str]:
    """Return the peers whose library is one of these."""
    return [name for name in EFFORTS if name.startswith(tuple(libraries))] if libraries else []


def build(python: Path, folder: Path, name: str, embeddings: Path, count: int) -> Built:
    """Return the index of the first `count` rows of a .npy file, made unless it was made before from the same.

    It is made again if the code that makes it or the rows change.
    """
    path, described = folder / f"{name}-{count}.index", folder / f"{name}-{count}.json"
    made_of = {
        path.name: sha256(path.read_bytes()).hexdigest() for path in (PEERS / "nearest.py", PEERS / "nearest.txt")
    }
    made_of["rows"] = str(embeddings.stat().st_mtime_ns)
    kept = json.loads(described.read_text(encoding="utf-8")) if described.exists() else {}
    if kept.get("made_of") != made_of:
        console.print(f"building {name} of {count:,} rows ...")
        path.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        spent = run_measured([python, "-m", SCRIPT, "build", name, path, embeddings, str(count)])
        kept = {"made_of": made_of, "seconds": spent.seconds, "peak_megabytes": spent.peak_megabytes}
        described.write_text(json.dumps(kept), encoding="utf-8")
    imported = import_milliseconds(python, name)
    return Built(path, Took(kept["seconds"], kept["peak_megabytes"], path.stat().st_size / 1e6, imported))


def import_milliseconds(python: Path, name: str) -> float:
    """Return how long importing a peer's library takes when NumPy is there already: the median of several starts."""
    command = [str(python), "-m", SCRIPT, "import", name]
    taken = [subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True) for _ in range(STARTS)]
    return statistics.median(float(done.stdout) for done in taken)


def fastest(name: str, searcher: Searcher, exact: Exact, queries: int, targets: Sequence[float]) -> dict[float, Effort]:
    """Return the settings with which a peer is fastest at each recall, the most thorough ones if none reaches it."""
    seen: list[tuple[float, float, Effort]] = []  # recall, seconds, effort
    for group in EFFORTS[name]:
        for effort in group:
            answer = searcher.search(range(queries), effort)
            seen.append((exact.recall(answer.rows), answer.seconds, effort))
            if seen[-1][0] >= max(targets):
                break  # whatever goes further is slower
    chosen = {}
    for target in targets:
        enough = [one for one in seen if one[0] >= target]
        chosen[target] = min(enough, key=lambda one: one[1])[2] if enough else max(seen)[2]
    return chosen
