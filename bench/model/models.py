"""A model in several precisions, to compare them with each other.

`python -m bench.model.models` embeds headlines one by one: `accuracy` runs it on an emulated CPU, where every import
takes twenty times as long. So the imports that only the making of models needs are inside `make_models`.
"""

import argparse
import json
import logging
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.bundles import is_current, made_from
from bench.report import console
from bench.texts import add_data_argument, read_headlines
from function.engine.bundle import MODEL, TOKENIZER, ModelInfo
from function.engine.embedder import Embedder, open_session
from function.engine.tokenizer import read_tokenizer

if TYPE_CHECKING:
    from export.model.source.source import Source

EXACT, NAIVE, BLOCKS, SHIPPED = "float32", "naive dynamic int8", "MatMulNBits 8 bit, block 32", "w8a14 (shipped)"
FILES = {EXACT: "float32.onnx", NAIVE: "naive.onnx", BLOCKS: "blocks.onnx", SHIPPED: MODEL}
INFO = "model.json"  # beside the models; one ModelInfo for all of them


def make_models(work: Path) -> dict[str, Path]:
    """Return the file of each precision of the default model, made in `work` unless today's code made it before."""
    paths = {name: work / "models" / file for name, file in FILES.items()}
    mark = work / "models" / "made-from.txt"
    if is_current(mark):
        return paths
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

    from export.model.source.source import find_model, read_source

    make_exact_and_shipped(read_source(*find_model(None, None)), mark.parent)
    graph = onnx.load(paths[EXACT])
    extra = {"DefaultTensorType": onnx.TensorProto.FLOAT}
    quantize_dynamic(paths[EXACT], paths[NAIVE], weight_type=QuantType.QInt8, extra_options=extra)
    config = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=True, accuracy_level=4, bits=8)
    blocks = MatMulNBitsQuantizer(graph, algo_config=config)
    blocks.process()
    blocks.model.save_model_to_file(str(paths[BLOCKS]), False)
    mark.write_text(made_from(), encoding="utf-8")
    return paths


def make_exact_and_shipped(source: "Source", folder: Path) -> dict[str, Path]:
    """Return the float32 and the shipped file of a model, made in the folder unless today's code made them before."""
    paths = {name: folder / FILES[name] for name in (EXACT, SHIPPED)}
    mark = folder / "exact-made-from.txt"
    if is_current(mark):
        return paths
    import onnx

    from export.corpus.python_documentation import python_documentation
    from export.model.calibration_texts import split_documentation
    from export.model.export_model import export_model
    from export.model.graph import export_graph
    from export.model.source.tokenizer import write_tokenizer

    logging.getLogger().setLevel(logging.ERROR)
    console.print(f"making the models of {source.name} ...")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        onnx.save(export_graph(source, Path(scratch)), paths[EXACT])
    info = export_model(source, split_documentation(python_documentation()), folder)
    (folder / INFO).write_text(json.dumps(asdict(info)), encoding="utf-8")
    write_tokenizer(source, folder / TOKENIZER)
    mark.write_text(made_from(), encoding="utf-8")
    return paths


def open_embedder(path: Path) -> Embedder:
    """Open one precision of the default model; its tokenizer and INFO are beside it."""
    model = ModelInfo(**json.loads((path.parent / INFO).read_bytes()))
    return Embedder(read_tokenizer(path.parent / TOKENIZER), open_session(path), model)


def main() -> int:
    """Embed headlines and save the embeddings, (texts, dim) float32."""
    parser = argparse.ArgumentParser("python -m bench.model.models", description=main.__doc__)
    add_data_argument(parser)
    parser.add_argument("model", type=Path, help="a model's file, its tokenizer.txt and model.json beside it")
    parser.add_argument("--texts", type=int, default=64, help="headlines to embed")
    parser.add_argument("--out", type=Path, required=True, help="the .npy file to write")
    options = parser.parse_args()
    embedder = open_embedder(options.model)
    tokens = embedder.tokenize(read_headlines(options.data, options.texts))
    np.save(options.out, np.concatenate([embedder.embed([text]) for text in tokens]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
