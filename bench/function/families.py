"""What a model costs by family and size: export, bundle, cold start, a query, and memory.

The models have random weights, which take the time and the memory of trained ones. So have their vocabularies where
none can be installed: ModernBERT's is trained on the texts, XLM-R's has the words of the texts and random ones.
"""

import argparse
import os
import random
import shutil
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.bundles import write_corpus
from bench.function.candidates import Candidate, make_functions
from bench.function.cold_start import WARM, measure, spread
from bench.function.emulator import sample_event
from bench.function.image import MADE_WITH
from bench.report import console, make_provenance, report
from bench.texts import SEED, add_data_argument, read_texts, short_queries

WRITES: tuple[str, ...] = ("models",)
MEASURES: tuple[str, ...] = ("function.handler", "export.model.export_model", *MADE_WITH)
MAX_TOKENS = 256
VOCABULARY_TEXTS = 30_000  # texts that vocabularies are made from
WARM_UP = 20  # first requests, which are not counted
PIECES = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}  # special tokens of vocabularies that are made here


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model, as config.json has them, and the kind of its tokenizer."""

    family: str
    layers: int
    dim: int
    vocabulary: int
    tokenizer: str = "WordPiece"


SHAPES = {
    "BERT (all-MiniLM-L6-v2)": Shape("bert", 6, 384, 30_522),
    "BERT (bge-small, e5-small)": Shape("bert", 12, 384, 30_522),
    "MPNet (all-mpnet-base-v2)": Shape("mpnet", 12, 768, 30_527),
    "XLM-R (multilingual-e5-small)": Shape("xlm-roberta", 12, 384, 250_037, "Unigram"),
    "ModernBERT (granite-embedding-small-r2)": Shape("modernbert", 12, 384, 50_368, "BPE"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=1_000, help="texts in the index")
    parser.add_argument("--starts", type=int, default=5, help="cold starts of each model")
    parser.add_argument("--requests", type=int, default=200, help="warm requests to each model")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    work = options.work.absolute() / "families"
    shutil.rmtree(work, ignore_errors=True)
    texts, vocabulary = read_texts(options.data, options.rows), read_texts(options.data, VOCABULARY_TEXTS).texts
    seconds, bundles = {}, {}
    corpus = write_corpus(work / "corpus.csv", texts.texts)
    for name, shape in SHAPES.items():
        bundles[name] = work / f"bundle-{shape.family}-{shape.layers}"
        source = make_random_model(work / f"model-{shape.family}-{shape.layers}", shape, vocabulary)
        seconds[name] = export(source, corpus, bundles[name])
    functions = make_functions(options.work.absolute(), bundles)
    starts = measure(functions, options.starts, WARM)
    warm = time_requests(functions, short_queries(options.data, 4, 1_000), options.requests)
    rows, details = [], {}
    for name, shape in SHAPES.items():
        files = {path.name: path.stat().st_size / 1e6 for path in bundles[name].iterdir()}
        found = details[name] = {
            "layers": shape.layers,
            "dim": shape.dim,
            "vocabulary": shape.vocabulary,
            "export_seconds": seconds[name],
            "bundle_megabytes": sum(files.values()),
            "tokenizer_megabytes": files["tokenizer.txt"],
            "init": starts[name].init,
            "query": warm[name],
            "peak_megabytes": statistics.median(starts[name].peak_megabytes),
        }
        cells = [name, shape.layers, shape.dim, f"{shape.vocabulary:,}", f"{seconds[name]:.0f}"]
        cells += [f"{found[f'{part}_megabytes']:.1f}" for part in ("bundle", "tokenizer")]
        rows.append((*cells, spread(starts[name].init), spread(warm[name]), f"{found['peak_megabytes']:.0f}"))
    columns = ["shape of", "layers", "dimensions", "vocabulary", "export CPU s", "bundle MB", "tokenizer MB"]
    columns += ["INIT ms", "query ms", "peak MB"]
    source_of = make_provenance(texts.description(), next(iter(functions.values())).python)
    report("models", columns, rows, {"models": details}, source_of)
    return 0


def export(model: Path, corpus: Path, out: Path) -> float:
    """Export a model and a corpus; return the seconds of processor time, of all processes of the export."""
    from export.cli import main

    before = sum(os.times()[:4])
    if main([str(model), "--corpus", str(corpus), "--out", str(out)]) != 0:
        raise SystemExit(f"{model}: the export failed")
    return sum(os.times()[:4]) - before


def time_requests(functions: Mapping[str, Candidate], queries: Sequence[str], requests: int) -> dict[str, list[float]]:
    """Return the milliseconds of warm requests; the functions take turns."""
    with ExitStack() as stack:
        running = {name: stack.enter_context(function.start()) for name, function in functions.items()}
        for number in range(1 + WARM_UP + requests):
            for function in running.values():
                function.invoke(sample_event("/similar", {"text": queries[number % len(queries)]}))
        return {name: function.request_milliseconds()[1 + WARM_UP :] for name, function in running.items()}


def make_random_model(folder: Path, shape: Shape, texts: Sequence[str]) -> Path:
    """Write a model with this shape and random weights, and a tokenizer for these texts; return the folder."""
    import torch
    from transformers import AutoConfig, AutoModel

    console.print(f"making {folder.name} ...")
    heads = {"num_hidden_layers": shape.layers, "num_attention_heads": 12, "max_position_embeddings": 514}
    sizes: dict[str, Any] = {"hidden_size": shape.dim, "intermediate_size": 4 * shape.dim, **heads}
    if shape.tokenizer != "WordPiece":
        sizes |= {"pad_token_id": 0, "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3}
    torch.manual_seed(SEED)
    config = AutoConfig.for_model(shape.family, vocab_size=shape.vocabulary, **sizes)
    AutoModel.from_config(config).save_pretrained(folder)
    (folder / "sentence_bert_config.json").write_text(f'{{"max_seq_length": {MAX_TOKENS}}}', encoding="utf-8")
    write_tokenizer(folder, shape, texts)
    return folder


def write_tokenizer(folder: Path, shape: Shape, texts: Sequence[str]) -> None:
    """Write a tokenizer with this many tokens; WordPiece's is the default model's."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    if shape.tokenizer == "WordPiece":
        from export.model.source.source import find_model

        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(find_model(None, None)[0] / name, folder / name)
        return
    if shape.tokenizer == "BPE":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=shape.vocabulary, special_tokens=[*PIECES], initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator(texts, trainer)
    else:
        words = [*PIECES, "▁", *sorted({letter for text in texts for letter in text if letter.strip()})]
        words += sorted({f"▁{word}" for text in texts for word in text.split()} - set(words))
        letters, known, drawn = "abcdefghijklmnopqrstuvwxyz", set(words), random.Random(SEED)
        while len(words) < shape.vocabulary:
            word = drawn.choice(("▁", "")) + "".join(drawn.choices(letters, k=drawn.randint(3, 9)))
            if word not in known:
                known.add(word)
                words.append(word)
        tokenizer = Tokenizer(models.Unigram([(word, -len(word) / 10 - 10) for word in words], unk_id=1))
        tokenizer.normalizer = normalizers.NFKC()
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    pair = [("[CLS]", PIECES["[CLS]"]), ("[SEP]", PIECES["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=pair)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
