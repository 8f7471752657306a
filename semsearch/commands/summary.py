"""Print the end of an export: its checks, its figures and the next command."""

from collections.abc import Callable, Iterable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from semsearch.commands.console import python_module
from semsearch.engine.bundle import CONVEX, TRUNCATED, IndexInfo, KeywordsInfo, Manifest
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.models.source import DEFAULT_MODEL_SHA256
from semsearch.indexing.progress import OnProgress, showing_progress

if TYPE_CHECKING:
    from semsearch.indexing.vectors.embed import EmbeddedCorpus
    from semsearch.indexing.verification import Check

UNREADABLE_SHOWN = 100  # maximum number of unreadable documents that are listed

SummaryRows = list[tuple[str, str]]  # name and value


def print_checks(console: Console, checks: Callable[[OnProgress], "Iterable[Check]"]) -> bool:
    """Run the checks and show their progress, print a table of the results, return whether all passed."""
    table = Table("check", "found", "expected", "", box=None, pad_edge=False)
    passed = True
    try:
        with showing_progress(console) as on_progress:
            for check in checks(on_progress):
                passed &= check.passed
                state = "[green]ok[/]" if check.passed else "[red]FAILED[/]"
                table.add_row(*map(escape, (check.name, check.found, check.expected)), state)
    finally:  # also after an error, so that the table shows the checks before it
        if table.row_count:
            console.print(table)
    return passed


def print_summary(
    console: Console, out: Path, manifest: Manifest, corpus_rows: SummaryRows | None = None, seconds: float = 0
) -> None:
    """Print the summary of a bundle, and the command that serves it or, if it has no texts, adds texts to it.

    corpus_rows are None for a bundle without texts; seconds is how long it took to make another bundle.
    """
    model = manifest.model
    language = ", trained with English" if model.source_sha256 == DEFAULT_MODEL_SHA256 else ""
    full = f" of {model.full_dim}" if model.full_dim else ""
    language += ", another model for the passages" if model.documents else ""
    shape = f"{model.dim}{full} dimensions, {model.pooling} pooling, {model.max_tokens} tokens{language}"
    accuracy = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in model.accuracy.items())
    sizes = ", ".join(f"{name} {info.bytes / 1e6:.1f} MB" for name, info in manifest.files.items())
    rows = [
        ("model", f"{model.name}, {shape}"),
        (model.quantization, f"against float32: {accuracy}"),
        *_reranker_rows(manifest),
        *(corpus_rows or []),
        ("size", sizes),
        *([("took", f"{seconds:.0f} s")] if corpus_rows else []),
    ]
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in rows:
        table.add_row(name, escape(value))
    console.print(table)
    if corpus_rows:
        end = f"{out}/ is ready. Try it: {python_module('function', '--bundle', out)}"
    else:
        end = f"Next: {python_module('export', 'corpus', '--corpus', 'FILE', '--out', out)}"
    console.print(end, markup=False)


def _reranker_rows(manifest: Manifest) -> SummaryRows:
    if (info := manifest.rerank) is None:
        return []
    accuracy = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in info.accuracy.items())
    return [("reranker", f"{info.name}, {info.max_tokens} tokens, weight {info.weight:g}; against float32: {accuracy}")]


def corpus_rows(out: Path, manifest: Manifest, corpus: Corpus, rows: "EmbeddedCorpus", seconds: float) -> SummaryRows:
    """Return the rows of the summary about the corpus, which was embedded in this number of seconds."""
    skipped = f"{corpus.empty_texts:,} empty ones skipped"
    truncated = f"{rows.is_truncated.sum():,} texts longer than {manifest.model.max_tokens} tokens"
    if TRUNCATED in manifest.files:
        truncated += f", listed in {out / TRUNCATED}"
    replaced = f"{corpus.blank_ids:,} blank ones replaced by the row number"
    files = [("files", "; ".join([f"{corpus.files:,} read", *map(str, corpus.skipped)]))]
    return [
        ("texts", f"{manifest.corpus.rows:,} from {manifest.corpus.corpus}, {skipped}"),
        *(files if corpus.files > 1 or corpus.skipped else []),
        *_document_rows(corpus),
        ("ids", f"{corpus.repeated_ids:,} the same as an earlier one, {replaced}"),
        ("metadata", f"{corpus.non_finite:,} NaN or infinite values left out"),
        ("filters", ", ".join(f"{name} ({kind})" for name, kind in corpus.columns.items()) or "no columns"),
        *(("numbers", _describe_numeric_strings(name, corpus.is_csv)) for name in corpus.numeric_strings),
        ("embedded", _describe_rows(rows)),
        ("truncated", truncated),
        ("speed", f"{rows.embedded / seconds:,.0f} texts/s"),
        ("index", _describe_search(manifest.corpus)),
        ("keywords", _describe_keywords(manifest.corpus.keywords)),
        *_queries_rows(manifest),
    ]


def _describe_numeric_strings(name: str, is_csv: bool) -> str:
    kinds = ("numbers", "string") if is_csv else ("strings", "number")
    other = f"add --column {quote(f'{name}={kinds[1]}')} to compare {kinds[1]}s"
    return f"{name} has only numbers, compared as {kinds[0]}; {other}"


def _document_rows(corpus: Corpus) -> SummaryRows:
    rows = [("split", f"{corpus.split_texts:,} texts into several passages")] if corpus.split_texts else []
    if corpus.documents:
        formats = ", ".join(f"{count:,} {name}" for name, count in sorted(corpus.documents.items()))
        rows.append(("documents", f"{formats}; {len(corpus.texts):,} passages"))
    if corpus.running_lines:
        rows.append(("left out", f"{corpus.running_lines:,} lines that repeat at the edges of pages"))
    for label, reasons in (("not read", corpus.unreadable), ("in part", corpus.incomplete)):
        rows += [(label, reason) for reason in reasons[:UNREADABLE_SHOWN]]
        if (more := len(reasons) - UNREADABLE_SHOWN) > 0:
            rows.append((label, f"and {more:,} more"))
    return rows


def _describe_search(index: IndexInfo) -> str:
    stages = index.stages
    looks = "every row"
    if stages is not None:
        looks = f"{stages.candidates:,} rows by signs, {stages.rescored:,} by codes"
    kinds = [kind for kind in index.recall if f"{kind}_first" in index.recall]
    shares = ", ".join(f"{index.recall[kind]:g} for {index.recall['queries']} {kind}" for kind in kinds)
    return f"a search looks at {looks}; recall@10 {shares}"


def _queries_rows(manifest: Manifest) -> SummaryRows:
    if (info := manifest.queries) is None:
        return []
    cosine, recall = info.accuracy["cosine_mean"], info.accuracy["recall_at_10"]
    found = f"cosine to the model {cosine:g}, {recall:.0%} of its ten best found, on spans that it did not see"
    newer = f"; {info.new_rows:,} passages are newer" if info.new_rows else ""
    return [("queries", f"by a table learned from {info.spans:,} spans: {found}{newer}")]


def _describe_rows(rows: "EmbeddedCorpus") -> str:
    parts = [f"{rows.embedded:,} texts"]
    equal = len(rows.scales) - rows.embedded - rows.resumed - rows.updated
    if rows.resumed:
        parts.append(f"{rows.resumed:,} rows taken over from an export that was stopped")
    if rows.updated:
        parts.append(f"{rows.updated:,} rows taken over from the bundle of --update")
    return ", ".join([*parts, *([f"{equal:,} rows with the text of another"] if equal else [])])


def _describe_keywords(keywords: KeywordsInfo | None) -> str:
    if keywords is None:
        return "none: no keyword and no hybrid search"
    stemmers = [name for name in keywords.stemmers if name]
    stems = f"{', '.join(stemmers)} stems" if stemmers else "no stems"
    fusion = f"convex, weight {keywords.fusion_weight:g}" if keywords.fusion == CONVEX else keywords.fusion
    return f"{keywords.terms:,} terms with {keywords.postings:,} postings, {stems}; hybrid: {fusion}"
