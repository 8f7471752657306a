"""What measurements read, make and keep: texts, bundles, models, and environments of Python.

The texts are headlines, test sets and abstracts, or without them Python's own documentation. docs/benchmarks.md says
where each file of the data folder comes from.
"""

import csv
import gzip
import hashlib
import json
import logging
import random
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bench import PEERS, PROJECT, Missing
from bench.emulator import copy_function
from bench.python_documentation import python_documentation, write_documentation
from semsearch.engine.bundle import MODEL, TOKENIZER, ModelInfo
from semsearch.engine.embedder import Embedder, open_session
from semsearch.engine.quantization import Embeddings
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.evaluation.measures import measure
from semsearch.indexing.vectors.embed import embed_texts

HEADLINES, SCIFACT, CISI = "headlines.csv.gz", "eval/scifact", "eval/cisi"
ARXIV = ("arxiv.jsonl.gz", "arxiv-extra-70k.jsonl.gz")
TOP_K = 10  # documents that nDCG counts for a query
SEED = 7
QUERY_WORDS = 4  # words of a short query
HELD_OUT = 1_000  # last texts, which are in no measured index

# Libraries of linear algebra and of OpenMP would otherwise use all cores for one query.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
RUNTIME = "awslambdaric==4.2.2"  # the runtime interface client that Lambda's Python images run
EMULATOR = "aws-sam-cli==1.170.0"  # includes the runtime interface emulator
EXACT, NAIVE, BLOCKS, SHIPPED = "float32", "naive dynamic int8", "MatMulNBits 8 bit, block 32", "w8a14 (shipped)"
FILES = {EXACT: "float32.onnx", NAIVE: "naive.onnx", BLOCKS: "blocks.onnx", SHIPPED: MODEL}
INFO = "model.json"  # beside the models; one ModelInfo for all of them


def _open(path: Path) -> Any:
    if not path.is_file():
        raise Missing(
            f"{path}: there is no such file; docs/benchmarks.md says where it comes from: "
            "name the folder that holds it with --data or BENCH_DATA"
        )
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def read_headlines(data: Path, count: int | None = None) -> list[str]:
    """Return the first `count` headlines; the file is shuffled, so they are a fair sample."""
    with _open(data / HEADLINES) as file:
        return [row["text"] for _, row in zip(range(count or 10**9), csv.DictReader(file), strict=False)]


def read_papers(data: Path) -> Iterator[dict[str, str]]:
    """Yield arXiv's papers, with their "title" and "abstract"."""
    for name in ARXIV:
        with _open(data / name) as file:
            yield from map(json.loads, file)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A retrieval test: documents and queries by id, and the ids of the relevant documents of each query."""

    documents: dict[str, str]
    queries: dict[str, str]
    relevant: dict[str, set[str]]
    titles: dict[str, str] = field(default_factory=dict)  # title of each document, which begins with it


def read_scifact(data: Path, name: str = SCIFACT) -> Retrieval:
    """Return SciFact's test set as BEIR has it, or another set in its format; a document is its title and its text."""
    folder = data / name
    with _open(folder / "corpus.jsonl.gz") as file:
        entries = [json.loads(line) for line in file]
    titles = {entry["_id"]: entry["title"] for entry in entries}
    documents = {entry["_id"]: f"{entry['title']} {entry['text']}".strip() for entry in entries}
    with _open(folder / "queries.jsonl") as file:
        queries = {entry["_id"]: entry["text"] for entry in map(json.loads, file)}
    relevant: dict[str, set[str]] = {}
    with _open(folder / "qrels.tsv") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["score"]) > 0:
                relevant.setdefault(row["query-id"], set()).add(row["corpus-id"])
    return Retrieval(documents, queries, relevant, titles)


def ndcg(best: Sequence[Sequence[int]], test: Retrieval) -> float:
    """Return the mean nDCG@10 over the queries, relevance being yes or no.

    best has, for each query of the test, the rows of the documents that were found, best first.
    """
    ids = list(test.documents)
    relevant = (dict.fromkeys(test.relevant[query_id], 1) for query_id in test.queries)
    found = zip(best, relevant, strict=True)
    return float(np.mean([measure([ids[row] for row in rows], grades)[0] for rows, grades in found]))


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts, and their kind as a sentence names it."""

    kind: str
    texts: list[str]

    def description(self) -> str:
        """Return the number of texts and their kind, such as "30,000 headlines"."""
        return f"{len(self.texts):,} {self.kind}"


def read_texts(data: Path, count: int) -> Texts:
    """Return the first `count` headlines, or texts of the documentation; the last HELD_OUT of all are left out."""
    found = _all_texts(data)
    return Texts(found.kind, found.texts[:-HELD_OUT][:count])


def short_queries(data: Path) -> list[str]:
    """Return the first words of the texts that `read_texts` leaves out."""
    return [" ".join(text.split()[:QUERY_WORDS]) for text in _all_texts(data).texts[-HELD_OUT:]]


@cache
def _all_texts(data: Path) -> Texts:
    """Return all headlines, or without them all texts of Python's own documentation, shuffled."""
    if (data / HEADLINES).is_file():
        return Texts("headlines", read_headlines(data))
    print(f"{data} has no {HEADLINES}: measuring on Python's own documentation; docs/benchmarks.md says how to get it")
    texts = [row["text"] for row in python_documentation()]
    random.Random(SEED).shuffle(texts)
    return Texts("texts of Python's own documentation", texts)


def made_from() -> str:
    """Return a digest of the code that makes models and indexes; what other code made is made again."""
    digest = hashlib.sha256()
    for path in sorted((PROJECT / "semsearch").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_current(mark: Path) -> bool:
    """Return whether today's code made the files that this mark belongs to."""
    return mark.exists() and mark.read_text(encoding="utf-8") == made_from()


def make_bundle(work: Path, texts: "Texts | None", queries: Literal["model", "table"] = "model") -> Path:
    """Return the bundle of these texts or of Python's own documentation in `work`, made unless today's code did."""
    from semsearch.indexing.make import index

    def make(bundle: Path) -> None:
        data: Any = work / "python-documentation.jsonl"
        if texts is None:
            write_documentation(data)
        else:
            data = [{"text": text} for text in texts.texts]
        index(data, bundle, mode="replace", queries=queries)

    name = "python" if texts is None else f"{texts.kind.split()[0]}-{len(texts.texts)}"
    suffix = "-table" if queries == "table" else ""
    return make_once(work / f"{name}{suffix}", make)


def make_once(bundle: Path, make: Callable[[Path], object], *, is_kept: bool = False) -> Path:
    """Return a bundle, which `make` makes in this folder unless today's code made it before.

    is_kept leaves a bundle of older code there, whose model and embeddings `make` then uses again.
    """
    mark = bundle.with_name(f"{bundle.name}.made-from.txt")
    if not is_current(mark):
        print(f"making the bundle {bundle.name} ...", flush=True)
        bundle.parent.mkdir(parents=True, exist_ok=True)
        if not is_kept:
            shutil.rmtree(bundle, ignore_errors=True)
        make(bundle)
        mark.write_text(made_from(), encoding="utf-8")
    return bundle


def make_models(work: Path) -> dict[str, Path]:
    """Return the file of each precision of the default model, made in `work` unless today's code made it before."""
    folder = work / "models"
    paths = {name: folder / file for name, file in FILES.items()}
    mark = folder / "made-from.txt"
    if is_current(mark):
        return paths
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

    from semsearch.conversion.convert import export_model
    from semsearch.conversion.graph import export_graph
    from semsearch.indexing.models.calibration import documentation_texts
    from semsearch.indexing.models.source import find_model, read_source, write_tokenizer

    logging.getLogger().setLevel(logging.ERROR)
    source = read_source(*find_model(None, None))
    print(f"making the models of {source.name} ...")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        graph = export_graph(source, Path(scratch))
    onnx.save(graph, paths[EXACT])
    info = export_model(source, documentation_texts(), folder)
    (folder / INFO).write_text(json.dumps(asdict(info)), encoding="utf-8")
    write_tokenizer(source, folder / TOKENIZER)
    extra = {"DefaultTensorType": onnx.TensorProto.FLOAT}
    quantize_dynamic(paths[EXACT], paths[NAIVE], weight_type=QuantType.QInt8, extra_options=extra)
    config = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=True, accuracy_level=4, bits=8)
    blocks = MatMulNBitsQuantizer(onnx.load(paths[EXACT]), algo_config=config)
    blocks.process()
    blocks.model.save_model_to_file(str(paths[BLOCKS]), False)
    mark.write_text(made_from(), encoding="utf-8")
    return paths


def open_embedder(path: Path) -> Embedder:
    """Open one precision of the default model; its tokenizer and INFO are beside it."""
    model = ModelInfo(**json.loads((path.parent / INFO).read_bytes()))
    return Embedder(read_tokenizer(path.parent / TOKENIZER), open_session(path), model)


def embed_once(work: Path, model: Path, texts: Sequence[str]) -> Embeddings:
    """Return the embeddings of texts by the model of this file, (n, dim) float32, kept until the code changes."""
    content = [made_from().encode(), model.read_bytes(), "\0".join(texts).encode()]
    digest = hashlib.sha256(b"\0".join(content)).hexdigest()[:16]
    path = work / "embeddings" / f"{digest}.npy"
    if not path.exists():
        print(f"embedding {len(texts):,} texts by {model.name} ...", flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, embed_texts(open_embedder(model), list(texts)))
    embeddings: Embeddings = np.load(path)
    return embeddings


def _make_environment(folder: Path, marker: str, installs: Sequence[Sequence[str]]) -> Path:
    """Return the interpreter of a virtual environment, made by these pip installs unless it is there already.

    marker describes how it is made; an environment with another marker is replaced.
    """
    python = folder.absolute() / "bin" / "python"
    made = folder / "made-from.txt"
    marker = sys.version + marker
    if not made.exists() or made.read_text() != marker:
        print(f"making the environment {folder.name} ...")
        venv.create(folder, with_pip=True, clear=True)
        for words in installs:
            command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
            subprocess.run(command, check=True)
        subprocess.run([python, "-m", "compileall", "-q", folder / "lib"], check=False)
        made.write_text(marker)
    return python


def peer_python(work: Path, name: str) -> Path:
    """Return the interpreter that has the packages of bench/peers/NAME.txt and Lambda's runtime client.

    The first package is installed before the others: torch, on which they depend.
    """
    wanted = (PEERS / f"{name}.txt").read_text()
    first, *others = wanted.split()
    return _make_environment(work / f"{name}-environment", wanted + RUNTIME, [[first], [first, *others, RUNTIME]])


def function_python(work: Path) -> Path:
    """Return the interpreter that has the function's locked packages and Lambda's runtime client, and nothing else."""
    lock = PROJECT / "requirements.txt"
    locked = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(lock)]
    return _make_environment(work / "function-environment", lock.read_text() + RUNTIME, [locked, [RUNTIME]])


def function_package(work: Path, without: str = "") -> Path:
    """Return a folder with the function as an image has it: a fresh copy, compiled, with the archive of its imports.

    `without` is a kind of replacement that the archive lacks, or "archive" for no archive.
    """
    python = function_python(work)
    package = work / (f"function-package-without-{without}" if without else "function-package")
    shutil.rmtree(package, ignore_errors=True)
    copy_function(package)
    subprocess.run([python, "-m", "compileall", "-q", "function", "semsearch"], cwd=package, check=True)
    if without != "archive":
        build = [python, "-m", "function.image.build_archive", *(("--without", without) if without else ())]
        subprocess.run(build, cwd=package, check=True, capture_output=True)
    return package


def find_emulator(work: Path) -> Path:
    """Return the program of Lambda's runtime interface emulator. Raises Missing if there is none for this machine."""
    python = _make_environment(work / "emulator-environment", EMULATOR, [[EMULATOR]])
    found = sorted(python.parents[1].glob("lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-x86_64"))
    if not found:
        raise Missing(f"{EMULATOR} has no emulator for this machine; run this on x86_64 Linux")
    found[0].chmod(0o755)
    return found[0]
