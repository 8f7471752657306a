"""The same model in several precisions, to compare them with each other."""

import hashlib
import json
import logging
import tempfile
from dataclasses import asdict
from pathlib import Path

import onnx
from onnx import TensorProto

from bench.embed import INFO
from bench.folders import PROJECT
from bench.report import console
from export.corpus.python_documentation import python_documentation
from export.model.calibration_texts import split_documentation
from export.model.export_model import export_model
from export.model.graph import export_graph
from export.model.source.source import find_model, read_source
from export.model.source.tokenizer import write_tokenizer
from function.engine.bundle import MODEL, TOKENIZER

EXACT, NAIVE, BLOCKS, SHIPPED = "float32", "naive dynamic int8", "MatMulNBits 8 bit, block 32", "w8a14 (shipped)"
FILES = {EXACT: "float32.onnx", NAIVE: "naive.onnx", BLOCKS: "blocks.onnx", SHIPPED: MODEL}


def made_from() -> str:
    """Return a digest of the code that makes models and indexes: what other code made is not measured."""
    digest = hashlib.sha256()
    for path in sorted([*(PROJECT / "export").rglob("*.py"), *(PROJECT / "function" / "engine").glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_current(mark: Path) -> bool:
    """Return whether today's code made the files that this mark belongs to."""
    return mark.exists() and mark.read_text(encoding="utf-8") == made_from()


def make_models(work: Path) -> dict[str, Path]:
    """Return the file of each precision of the default model, made in `work` unless today's code made it before."""
    paths = {name: work / "models" / file for name, file in FILES.items()}
    mark = work / "models" / "made-from.txt"
    if is_current(mark):
        return paths
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

    logging.getLogger().setLevel(logging.ERROR)
    console.print("making the models ...")
    paths[EXACT].parent.mkdir(parents=True, exist_ok=True)
    folder, name, revision = find_model(None, None)
    source = read_source(folder, name, revision)
    with tempfile.TemporaryDirectory() as scratch:
        graph = export_graph(source, Path(scratch))
    onnx.save(graph, paths[EXACT])
    quantize_dynamic(
        paths[EXACT], paths[NAIVE], weight_type=QuantType.QInt8, extra_options={"DefaultTensorType": TensorProto.FLOAT}
    )
    config = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=True, accuracy_level=4, bits=8)
    blocks = MatMulNBitsQuantizer(graph, algo_config=config)
    blocks.process()
    blocks.model.save_model_to_file(str(paths[BLOCKS]), False)
    info = export_model(source, split_documentation(python_documentation()), paths[SHIPPED].parent)
    (paths[SHIPPED].parent / INFO).write_text(json.dumps(asdict(info)), encoding="utf-8")
    write_tokenizer(source, paths[SHIPPED].parent / TOKENIZER)
    mark.write_text(made_from(), encoding="utf-8")
    return paths
