"""Write the files of a bundle into a folder: first the model, then the corpus, and the manifest last."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unicodedata import unidata_version

import numpy as np

from semsearch.engine import bundle as layout
from semsearch.engine.bundle import BY_CORES, CorpusInfo, KeywordsInfo, Manifest, StagesInfo
from semsearch.engine.metadata.boosts import read_boosts
from semsearch.engine.metadata.columns import SECTIONS
from semsearch.engine.quantization import Codes, Embeddings, Scales
from semsearch.engine.semantic.index import EXHAUSTIVE_ROWS, Index, Words, signs
from semsearch.engine.tensors import AnyArray, map_tensors
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.bundles import describe, write_manifest
from semsearch.indexing.columns import NONE, OlderColumns, column_tensors
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.passages import passages_at, strings_at
from semsearch.indexing.counting import COUNTING_VERSION, count_terms
from semsearch.indexing.digests import Digests
from semsearch.indexing.keywords import (
    KeywordOptions,
    keyword_tensors,
    keyword_texts,
    share_of_known_words,
)
from semsearch.indexing.row_changes import RowChanges, find_changes
from semsearch.indexing.sections import digest_sections, section_tensor
from semsearch.indexing.tensor_files import release, save_tensors
from semsearch.indexing.term_counts import TermCounts, update_counts
from semsearch.indexing.update_file import digests_tensor, facts_tensors, read_digests, update_digests
from semsearch.indexing.vectors.recall import ExactSearches, Recall, choose_stages, search_samples
from semsearch.indexing.vectors.shards import Truncated

KEYWORDS_BY_DEFAULT = KeywordOptions()
SECTION_DIGESTS = ("sections.keys", "sections.contents")  # tensors of update.safetensors
COUNTED = "counted"  # tensor of update.safetensors
NO_OPTIONS: Mapping[str, Any] = {}
ROWS_AT_ONCE = 65_536  # rows whose signs are computed at a time


@dataclass(frozen=True, slots=True)
class WrittenIndex:
    """The manifest of a bundle whose texts were written, and what an update of it needs: see update_file.py."""

    manifest: Manifest
    kept: Mapping[str, AnyArray]


def write_index(
    folder: Path,
    manifest: Manifest,
    corpus: Corpus,
    rows: tuple[Codes, Scales],
    spans: Embeddings | None,
    name: str,
    keywords: KeywordOptions | None = KEYWORDS_BY_DEFAULT,
    embedded_by: Sequence[str] = (BY_CORES,),
    options: Mapping[str, Any] = NO_OPTIONS,
    changes: RowChanges | None = None,
    *,
    is_measured: bool = True,
) -> WrittenIndex:
    """Write the index, columns and keywords beside the model and the passages, then the manifest.

    A truncated.jsonl that is in the folder is listed in the manifest.
    rows are codes (rows, dim) int8 and scales (rows,) float32 in the corpus's order, and can be memory-mapped. spans,
    (m, dim) float32, are the embeddings of `sample_spans`, with which the recall is measured; a bundle without a model
    has none. Unless is_measured, what was measured of the older index is taken. keywords is None for a bundle without
    them. embedded_by says what has embedded the rows, and options are those of `index` that an update uses again; both
    are as in the manifest. changes says which rows are older ones; without it, all are new.
    """
    if changes is None:
        changes = find_changes(corpus, None)
    before = None
    if is_measured:
        exact = search_samples(spans, *rows)
        stages, recalls = write_index_file(folder / layout.INDEX, *rows, exact)
        recall = _shares(recalls)
        if exact:
            recall = {"queries": len(next(iter(exact.values())).queries)} | recall
    else:
        assert changes.older is not None  # what was measured is of the older index
        before = changes.older.manifest.corpus
        stages, recall = before.stages, before.recall
        save_rows(folder / layout.INDEX, *rows, has_bits=stages is not None)
    columns = {column: kind for column, kind in corpus.columns.items() if kind != NONE}
    read_boosts(options.get("boost", {}), columns)  # refuses wrong ones
    kept = changes.digests.tensors()
    kept |= _write_columns(folder, corpus, columns, changes)
    described, terms = _write_keywords(folder, manifest, corpus, keywords, changes, before)
    kept |= terms
    files = (layout.INDEX, layout.PASSAGES, layout.COLUMNS, layout.KEYWORDS, layout.TRUNCATED)
    written = [file for file in files if (folder / file).exists()]
    model_files = [
        manifest.files[name].sha256 if manifest.has_model else "" for name in (layout.MODEL, layout.TOKENIZER)
    ]
    index = CorpusInfo(
        rows=len(corpus.texts),
        stages=stages,
        recall=recall,
        model_sha256=model_files[0],
        tokenizer_sha256=model_files[1],
        source=name,
        columns=columns,
        keywords=described,
        untyped=[column for column in corpus.mixed if column not in columns],
        heading_prefix=corpus.heading_prefix,
        title=options.get("title", ""),
        description=options.get("description", ""),
        boost=options.get("boost", {}),
        options=dict(options),
        embedded_by=list(embedded_by),
        floor={} if before is None else before.floor,
        other_suffixes=corpus.other_suffixes,
    )
    described_files = {file: describe(folder / file) for file in written}
    manifest = replace(manifest, corpus_or_none=index, files=manifest.files | described_files)
    write_manifest(folder, manifest)
    return WrittenIndex(manifest, kept)


def _shares(recalls: Mapping[str, Recall]) -> dict[str, float]:
    shares = {kind: each.at_10 for kind, each in recalls.items()}
    shares |= {f"{kind}_first": each.first for kind, each in recalls.items()}
    return {kind: round(share, 4) for kind, share in shares.items()}


def _write_columns(
    folder: Path, corpus: Corpus, columns: Mapping[str, str], changes: RowChanges
) -> dict[str, AnyArray]:
    """Write the columns, if there are any, and return what an update of them needs."""
    older, kept, found = None, changes.kept, facts_tensors(corpus.facts)
    if kept is not None and changes.older is not None:
        types = changes.older.manifest.corpus.columns
        older = OlderColumns(
            types, map_tensors(changes.older.folder / layout.COLUMNS) if types else {}, changes.older_rows
        )
    if columns:
        tensors = column_tensors(corpus, columns, older)
        if corpus.heading_prefix:
            sections = _update_sections(corpus, changes)
            tensors[SECTIONS] = section_tensor(*sections.values())
            found |= {name: digests_tensor(digests) for name, digests in sections.items()}
        save_tensors(folder / layout.COLUMNS, tensors)
    return found


def _update_sections(corpus: Corpus, changes: RowChanges) -> dict[str, Digests]:
    """Return the digests of the section and of the content of each row, by their names in update.safetensors."""
    kept = changes.kept
    if kept is not None and not kept.keys() >= set(SECTION_DIGESTS):  # no column had a type before
        kept = None
    rows = np.arange(len(corpus.texts)) if kept is None else changes.new
    found = digest_sections((each.text, each.metadata) for each in passages_at(corpus, rows))
    digests = dict(zip(SECTION_DIGESTS, found, strict=True))
    if kept is None:
        return digests
    return {name: update_digests(read_digests(kept[name]), changes.older_rows, each) for name, each in digests.items()}


def _write_keywords(
    folder: Path,
    manifest: Manifest,
    corpus: Corpus,
    options: KeywordOptions | None,
    changes: RowChanges,
    before: CorpusInfo | None,
) -> tuple[KeywordsInfo | None, dict[str, AnyArray]]:
    """Write the keywords, if there are any; return their description, and what an update of them needs.

    before is what the older index says of its texts, if it is not measured again.
    """
    if options is None:
        return None, {}
    counts = _count_terms(corpus, options, changes)
    kept = counts.tensors() | {COUNTED: _counted_with(options)}
    postings, described = keyword_tensors(counts, options)
    if described is None:
        return None, kept
    if before is not None and before.keywords is not None:
        known = before.keywords.known_words
    elif not manifest.has_model:
        known = 0.0  # without a tokenizer, a word is corrected as in a language that a tokenizer does not know
    else:
        known = share_of_known_words(corpus.texts, read_tokenizer(folder / layout.TOKENIZER))
    save_tensors(folder / layout.KEYWORDS, postings)
    return replace(described, known_words=known), kept


def _counted_with(options: KeywordOptions) -> AnyArray:
    """Return the tensor of update.safetensors with the options that the counts of terms depend on."""
    chosen = [options.stemming, options.title_column, options.language_column]
    stated = [*chosen, COUNTING_VERSION, version("PyStemmer"), unidata_version]
    return np.frombuffer(json.dumps(stated).encode(), np.uint8)


def _count_terms(corpus: Corpus, options: KeywordOptions, changes: RowChanges) -> TermCounts:
    """Return the counts of the terms of a corpus: those of the older index, and those of the rows that have changed."""
    read = partial(keyword_texts, options=options, has_prefixes=corpus.heading_prefix)
    older = changes.older
    if older is None or older.kept is None or not np.array_equal(older.kept.get(COUNTED, ()), _counted_with(options)):
        return count_terms(read(passages_at(corpus, np.arange(len(corpus.texts)))))
    new = count_terms(read(passages_at(corpus, changes.new)))
    gone = count_terms(read(passages_at(older.corpus(), changes.gone)))
    return update_counts(TermCounts.from_tensors(older.kept), changes.older_rows, new, gone)


def write_index_file(
    path: Path, codes: Codes, scales: Scales, exact: ExactSearches
) -> tuple[StagesInfo | None, dict[str, Recall]]:
    """Write the rows of a corpus; return the stages of a search, and their recall by the kind of query.

    codes is (rows, dim) int8 and scales (rows,) float32, in the order of the corpus; both can be memory-mapped.
    """
    stages = None
    if len(codes) > EXHAUSTIVE_ROWS:
        save_rows(path, codes, scales, has_bits=True)
        stages = choose_stages(path, exact)
    if stages is None:
        save_rows(path, codes, scales, has_bits=False)
    index = Index.open(path, stages)
    return stages, {kind: each.recall_of(index) for kind, each in exact.items()}


def save_rows(path: Path, codes: Codes, scales: Scales, *, has_bits: bool) -> None:
    """Write the rows of a corpus, with their signs if the index is searched by stages."""
    tensors: dict[str, AnyArray] = {"codes": codes, "scales": scales}
    if has_bits:
        tensors["bits"] = _signs(codes).T
    save_tensors(path, tensors)


def _signs(codes: Codes) -> Words:
    blocks = []
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        blocks.append(signs(codes[begin : begin + ROWS_AT_ONCE]))
        release(codes)
    return np.concatenate(blocks)


def write_truncated(folder: Path, ids: Sequence[str], is_truncated: Truncated) -> None:
    """Write truncated.jsonl into an unfinished bundle, for its maker, if a text is longer than the model reads.

    It has a line for each of these texts, in the order of the corpus: {"index": 12, "id": "…"}. No function reads it.
    is_truncated is (rows,), as many as ids.
    """
    if not is_truncated.any():
        return
    with (folder / layout.TRUNCATED).open("w", encoding="utf-8") as file:
        rows = np.flatnonzero(is_truncated)
        for index, name in zip(rows.tolist(), strings_at(ids, rows), strict=True):
            file.write(json.dumps({"index": index, "id": name}, ensure_ascii=False) + "\n")
