"""Write the files of a bundle into a folder: first the model, then the corpus, and the manifest last."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from semsearch.engine import bundle as layout
from semsearch.engine.bundle import BY_CORES, CorpusInfo, Manifest, StagesInfo, describe_file
from semsearch.engine.metadata.boosts import read_boosts
from semsearch.engine.metadata.columns import SECTIONS
from semsearch.engine.quantization import Codes, Embeddings, Scales
from semsearch.engine.semantic.index import EXHAUSTIVE_ROWS, Index, Words, signs
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.bundles import write_manifest
from semsearch.indexing.columns import NONE, column_tensors
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.keywords import (
    KeywordOptions,
    heading_names,
    keyword_tensors,
    row_languages,
    share_of_known_words,
)
from semsearch.indexing.sections import digest_sections, section_tensor
from semsearch.indexing.tensor_files import release, save_tensors
from semsearch.indexing.vectors.recall import SPANS, ExactSearches, Recall, choose_stages, search_samples
from semsearch.indexing.vectors.shards import Truncated

KEYWORDS_BY_DEFAULT = KeywordOptions()
NO_OPTIONS: Mapping[str, Any] = {}
ROWS_AT_ONCE = 65_536  # rows whose signs are computed at a time


def write_index(
    folder: Path,
    manifest: Manifest,
    corpus: Corpus,
    rows: tuple[Codes, Scales],
    spans: Embeddings,
    name: str,
    keywords: KeywordOptions | None = KEYWORDS_BY_DEFAULT,
    embedded_by: Sequence[str] = (BY_CORES,),
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Manifest:
    """Write the index, columns and keywords beside the model and the passages, then the manifest, and return that.

    A truncated.jsonl that is in the folder is listed in the manifest.
    rows are codes (rows, dim) int8 and scales (rows,) float32 in the corpus's order, and can be memory-mapped. spans,
    (m, dim) float32, are the embeddings of `sample_spans`, with which the recall is measured. keywords is None for a
    bundle without them. embedded_by says what has embedded the rows, and options are those of `index` that an update
    uses again; both are as in the manifest.
    """
    exact = search_samples(spans, *rows)
    stages, recalls = write_index_file(folder / layout.INDEX, *rows, exact)
    shares = {kind: each.at_10 for kind, each in recalls.items()}
    shares |= {f"{kind}_first": each.first for kind, each in recalls.items()}
    written = [layout.INDEX, layout.PASSAGES]
    columns = {column: kind for column, kind in corpus.columns.items() if kind != NONE}
    if columns:
        tensors = column_tensors(corpus, columns)
        if corpus.heading_prefix:
            tensors[SECTIONS] = section_tensor(*digest_sections(corpus.texts, corpus.metadata))
        save_tensors(folder / layout.COLUMNS, tensors)
        written.append(layout.COLUMNS)
    read_boosts(options.get("boost", {}), columns)  # refuses wrong ones
    described = None
    if keywords is not None:
        titles, languages = None, None
        if keywords.title_column is not None:
            found = (json.loads(metadata).get(keywords.title_column) for metadata in corpus.metadata)
            titles = (title if isinstance(title, str) else "" for title in found)
        if keywords.language_column is not None:
            languages = row_languages(corpus, keywords.language_column, keywords.stemming, Path(name))
        names = (heading_names(json.loads(metadata), keywords.title_column) for metadata in corpus.metadata)
        postings, described = keyword_tensors(corpus.keyword_texts, keywords, titles, languages, names)
        if described is not None:
            known = share_of_known_words(corpus.texts, read_tokenizer(folder / layout.TOKENIZER))
            described = replace(described, known_words=known)
            save_tensors(folder / layout.KEYWORDS, postings)
            written.append(layout.KEYWORDS)
    if (folder / layout.TRUNCATED).exists():
        written.append(layout.TRUNCATED)
    index = CorpusInfo(
        rows=len(corpus.texts),
        stages=stages,
        recall={"queries": len(exact[SPANS].queries)} | {kind: round(share, 4) for kind, share in shares.items()},
        model_sha256=manifest.files[layout.MODEL].sha256,
        tokenizer_sha256=manifest.files[layout.TOKENIZER].sha256,
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
    )
    files = {file: describe_file(folder / file) for file in written}
    manifest = replace(manifest, corpus_or_none=index, files=manifest.files | files)
    write_manifest(folder, manifest)
    return manifest


def write_index_file(
    path: Path, codes: Codes, scales: Scales, exact: ExactSearches
) -> tuple[StagesInfo | None, dict[str, Recall]]:
    """Write the rows of a corpus; return the stages of a search, and their recall by the kind of query.

    codes is (rows, dim) int8 and scales (rows,) float32, in the order of the corpus; both can be memory-mapped.
    """
    stages = None
    if len(codes) > EXHAUSTIVE_ROWS:
        save_tensors(path, {"codes": codes, "scales": scales, "bits": _signs(codes).T})
        stages = choose_stages(path, exact)
    if stages is None:
        save_tensors(path, {"codes": codes, "scales": scales})
    index = Index.open(path, stages)
    return stages, {kind: each.recall_of(index) for kind, each in exact.items()}


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
        for index, name in compress(enumerate(ids), is_truncated):
            file.write(json.dumps({"index": index, "id": name}, ensure_ascii=False) + "\n")
