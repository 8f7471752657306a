"""Print what `semsearch index` has made: its checks, its figures, and what it left out."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from semsearch.engine.bundle import TRUNCATED, KeywordsInfo, Manifest
from semsearch.indexing.make import IndexSummary
from semsearch.indexing.models.source import DEFAULT_MODEL_SHA256
from semsearch.indexing.verification import Check

VALUES_SHOWN = 10  # languages and versions that are listed
UNREADABLE_SHOWN = 100  # maximum number of unreadable documents that are listed

SummaryRows = Iterator[tuple[str, str]]  # name and value


def print_checks(console: Console, checks: Iterable[Check]) -> bool:
    """Print a table of checks, and return whether all passed."""
    table = Table("check", "found", "expected", "", box=None, pad_edge=False)
    passed = True
    try:
        for check in checks:
            passed &= check.passed
            state = "[red]FAILED[/]"
            if check.passed:
                state = "[green]ok[/]"
            table.add_row(*map(escape, (check.name, check.found, check.expected)), state)
    finally:  # also after an error, so that the table shows the checks before it
        if table.row_count:
            console.print(table)
    return passed


def print_summary(console: Console, made: IndexSummary, *, is_verbose: bool) -> None:
    """Print what somebody wants to know of a new index, or with is_verbose everything.

    Each number of something that was left out, replaced, truncated or compared as text is printed unless it is 0.
    """
    rows = [*_texts(made), *_counts(made)]
    if is_verbose:
        rows += _details(made)
    elif not made.manifest.has_model:
        rows += model_rows(made.manifest, made.prompts)
    else:
        rows += _training(made.manifest, made.prompts)
    rows += [*_accuracy(made), *_costs(made)]
    print_rows(console, rows)


def print_rows(console: Console, rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    for name, value in rows:
        table.add_row(name, escape(value))
    console.print(table)


def _texts(made: IndexSummary) -> SummaryRows:
    report, info = made.report, made.manifest.corpus
    texts = f"{info.rows:,} from {info.source}"
    if report.empty_texts:
        texts += f", {report.empty_texts:,} empty ones skipped"
    yield "texts", texts
    if report.files > 1 or report.skipped:
        yield "files", "; ".join([f"{report.files:,} read", *map(str, report.skipped)])
    if report.documents:
        formats = ", ".join(f"{count:,} {name}" for name, count in sorted(report.documents.items()))
        yield "documents", f"{formats}; {info.rows:,} passages"
    for column, values in report.of_site.items():
        shown = ", ".join(values[:VALUES_SHOWN])
        if len(values) > VALUES_SHOWN:
            shown += f" and {len(values) - VALUES_SHOWN:,} more"
        yield f"{column}s", shown


def _counts(made: IndexSummary) -> SummaryRows:
    """Yield what was left out, replaced, truncated or compared as something else."""
    corpus, report = made.corpus, made.report
    if report.split_texts:
        yield "split", f"{report.split_texts:,} texts into several passages"
    if report.running_lines:
        yield "left out", f"{report.running_lines:,} lines that repeat at the edges of pages"
    for label, reasons in (("not read", report.unreadable), ("in part", report.incomplete)):
        yield from ((label, reason) for reason in reasons[:UNREADABLE_SHOWN])
        if len(reasons) > UNREADABLE_SHOWN:
            yield label, f"and {len(reasons) - UNREADABLE_SHOWN:,} more"
    if report.blank_ids:
        yield "ids", f"{report.blank_ids:,} blank ones replaced by the row number"
    if report.non_finite:
        yield "metadata", f"{report.non_finite:,} NaN or infinite values left out"
    if made.left_out:
        yield "left out", f"{made.left_out:,} texts of the older index, which are not among the new ones"
    for name in corpus.numeric_strings:
        yield "numbers", _describe_numeric_strings(name, corpus.is_csv)
    truncated = int(made.rows.is_truncated.sum())
    if truncated:
        tokens = made.manifest.model.max_tokens
        yield "truncated", f"{truncated:,} texts longer than {tokens} tokens, listed in {made.out / TRUNCATED}"


def _describe_numeric_strings(name: str, is_csv: bool) -> str:
    if is_csv:
        compared, other, kind = "numbers", "strings", "string"
    else:
        compared, other, kind = "strings", "numbers", "number"
    option = quote(f"{name}={kind}")
    return f"{name} has only numbers, compared as {compared}; add --column {option} to compare {other}"


def _accuracy(made: IndexSummary) -> SummaryRows:
    model, recall = made.manifest.model, made.manifest.corpus.recall
    shares = [f"recall@10 {recall[kind]:g} for {kind}" for kind in recall if f"{kind}_first" in recall]
    if "cosine_mean" in model.accuracy:
        shares.insert(0, f"cosine {model.accuracy['cosine_mean']:g} to float32")
    if shares:
        yield "accuracy", ", ".join(shares)
    if (info := made.manifest.queries) is not None:
        cosine, found = info.accuracy["cosine_mean"], info.accuracy["recall_at_10"]
        table = (
            f"a table learned from {info.spans:,} spans: cosine to the model {cosine:g}, {found:.0%} of its ten best"
        )
        newer = ""
        if info.new_rows:
            newer = f"; {info.new_rows:,} passages are newer"
        yield "queries", f"{table}{newer}"


def _costs(made: IndexSummary) -> SummaryRows:
    total = sum(info.bytes for info in made.manifest.files.values())
    yield "size", f"{total / 1e6:.1f} MB"
    if not made.manifest.has_model:
        yield "took", f"{made.seconds:.0f} s"
        return
    speed = made.rows.embedded / made.embedding_seconds
    yield "took", f"{made.seconds:.0f} s, {made.rows.embedded:,} texts embedded, {speed:,.0f} a second"
    if made.embedded_by:
        yield "embedded by", made.embedded_by


def _details(made: IndexSummary) -> SummaryRows:
    """Yield what the manifest has too."""
    corpus, info = made.corpus, made.manifest.corpus
    yield from model_rows(made.manifest, made.prompts)
    if made.model_from is not None:
        yield "model from", str(made.model_from)
    yield "filters", ", ".join(f"{name} ({kind})" for name, kind in corpus.columns.items()) or "no columns"
    yield "embedded", _describe_rows(made)
    looks = "every row"
    if info.stages is not None:
        looks = f"{info.stages.candidates:,} rows by signs, {info.stages.rescored:,} by codes"
    measured = "recall is not measured"
    if info.recall:
        measured = f"recall is measured with {info.recall['queries']} queries of each kind"
    yield "index", f"a search looks at {looks}; {measured}"
    yield "keywords", _describe_keywords(info.keywords)
    yield "sizes", ", ".join(f"{name} {file.bytes / 1e6:.1f} MB" for name, file in made.manifest.files.items())


def model_rows(manifest: Manifest, prompts: Mapping[str, str]) -> SummaryRows:
    """Yield the rows of the summary about the model and the reranker; prompts are those of the roles."""
    model = manifest.model
    if not manifest.has_model:
        yield "embeddings", f"by {model.name}, {model.dim:,} dimensions; the index has no model"
        return
    full = ""
    if model.full_dim:
        full = f" of {model.full_dim}"
    parts = [f"{model.name}, {model.dim}{full} dimensions", f"{model.pooling} pooling", f"{model.max_tokens} tokens"]
    if model.source_sha256 == DEFAULT_MODEL_SHA256:
        parts.append("trained with English")
    if model.documents:
        parts.append("another model for the passages")
    yield "model", ", ".join(parts)
    yield from _training(manifest, prompts)
    yield model.quantization, f"against float32: {_figures(model.accuracy)}"
    if (info := manifest.rerank) is not None:
        parts = [info.name, f"{info.max_tokens} tokens", f"weight {info.weight:g}"]
        yield "reranker", f"{', '.join(parts)}; against float32: {_figures(info.accuracy)}"


def _training(manifest: Manifest, prompts: Mapping[str, str]) -> SummaryRows:
    """Yield which of the model's prompts are used, if it has any, and whether it was trained for another similarity."""
    model = manifest.model
    if prompts or model.unused_prompts:
        yield "prompts", _describe_prompts(prompts, model.unused_prompts)
    if model.similarity is not None:
        yield "similarity", f"cosine; the model was trained for {model.similarity}, which orders texts differently"


def _describe_prompts(prompts: Mapping[str, str], unused: Sequence[str]) -> str:
    shown = {role: json.dumps(text, ensure_ascii=False) for role, text in prompts.items()}
    said = f"{shown.get('query', 'none')} for queries, {shown.get('document', 'none')} for passages"
    if unused:
        said += f"; not used: {', '.join(unused)}"
    return said


def _figures(accuracy: dict[str, float]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in accuracy.items())


def _describe_rows(made: IndexSummary) -> str:
    rows = made.rows
    parts = [f"{rows.embedded:,} texts"]
    if rows.resumed:
        parts.append(f"{rows.resumed:,} rows taken over from a try that was stopped")
    if rows.updated:
        parts.append(f"{rows.updated:,} rows taken over from the older index")
    if rows.given:
        parts.append(f"{rows.given:,} rows from the embeddings that were handed in")
    equal = len(rows.scales) - rows.embedded - rows.resumed - rows.updated - rows.given
    if equal:
        parts.append(f"{equal:,} rows with the text of another")
    return ", ".join(parts)


def _describe_keywords(keywords: KeywordsInfo | None) -> str:
    if keywords is None:
        return "none: no keyword and no hybrid search"
    stems = ", ".join(name for name in keywords.stemmers if name)
    hybrid = f"hybrid: weight {keywords.fusion_weight:g}"
    return f"{keywords.terms:,} terms with {keywords.postings:,} postings, {stems or 'no'} stems; {hybrid}"
