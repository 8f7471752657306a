"""What measurements make in their work folder and keep between runs: bundles, models and environments of Python."""

import csv
import hashlib
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.emulator import copy_function
from bench.report import PEERS, PROJECT, Missing, console
from bench.texts import Texts
from semsearch.engine.bundle import MODEL, TOKENIZER, ModelInfo
from semsearch.engine.embedder import Embedder, open_session
from semsearch.engine.tokenizer import read_tokenizer

# Libraries of linear algebra and of OpenMP would otherwise use all cores for one query.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
RUNTIME = "awslambdaric==4.2.2"  # the runtime interface client that Lambda's Python images run
EMULATOR = "aws-sam-cli==1.170.0"  # includes the runtime interface emulator
EXACT, NAIVE, BLOCKS, SHIPPED = "float32", "naive dynamic int8", "MatMulNBits 8 bit, block 32", "w8a14 (shipped)"
FILES = {EXACT: "float32.onnx", NAIVE: "naive.onnx", BLOCKS: "blocks.onnx", SHIPPED: MODEL}
INFO = "model.json"  # beside the models; one ModelInfo for all of them


def made_from() -> str:
    """Return a digest of the code that makes models and indexes; what other code made is made again."""
    digest = hashlib.sha256()
    for path in sorted((PROJECT / "semsearch").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_current(mark: Path) -> bool:
    """Return whether today's code made the files that this mark belongs to."""
    return mark.exists() and mark.read_text(encoding="utf-8") == made_from()


def make_bundle(work: Path, texts: Texts, lots: int = 0) -> Path:
    """Return the bundle of these texts in `work`, made unless today's code made it before.

    With `lots`, it has a column `lot` for filters, whose values are the numbers below `lots` in turn.
    """
    bundle = work / (f"{texts.file_name}-{len(texts.texts)}" + (f"-{lots}-lots" if lots else ""))
    mark = work / f"{bundle.name}.made-from.txt"
    if not is_current(mark):
        from semsearch.indexing.make import index

        shutil.rmtree(bundle, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        corpus = bundle.with_name(f"{bundle.name}.csv")
        with corpus.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "lot"] if lots else ["text"])
            writer.writerows([text, row % lots] if lots else [text] for row, text in enumerate(texts.texts))
        index(corpus, bundle, column={"lot": "number"} if lots else None, mode="replace")
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
    from semsearch.indexing.corpus.python_documentation import python_documentation
    from semsearch.indexing.models.calibration import split_documentation
    from semsearch.indexing.models.source import find_model, read_source, write_tokenizer

    logging.getLogger().setLevel(logging.ERROR)
    source = read_source(*find_model(None, None))
    console.print(f"making the models of {source.name} ...")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        graph = export_graph(source, Path(scratch))
    onnx.save(graph, paths[EXACT])
    info = export_model(source, split_documentation(python_documentation()), folder)
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


def _make_environment(folder: Path, marker: str, installs: Sequence[Sequence[str]]) -> Path:
    """Return the interpreter of a virtual environment, made by these pip installs unless it is there already.

    marker describes how it is made; an environment with another marker is replaced.
    """
    python = folder.absolute() / "bin" / "python"
    made = folder / "made-from.txt"
    marker = sys.version + marker
    if not made.exists() or made.read_text() != marker:
        console.print(f"making the environment {folder.name} ...")
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
