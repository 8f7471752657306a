"""Write the files of a bundle into a folder: first the model, then the corpus, and the manifest last."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path

from export.corpus import Corpus
from export.files.tensor_file import save_tensors
from export.index.columns import NONE, column_tensors
from export.index.index_file import write_index_file
from export.index.keywords import KeywordOptions, keyword_tensors, share_of_known_words
from export.index.languages import row_languages
from export.index.recall import ExactSearches, Recall
from export.index.shards import Truncated
from function.engine import bundle as layout
from function.engine.bundle import BundleError, IndexInfo, Manifest, ModelInfo, RerankInfo, describe_file
from function.engine.quantization import Codes, Scales
from function.engine.tokenizer import read_tokenizer

KEYWORDS_BY_DEFAULT = KeywordOptions()


def write_model(folder: Path, model: ModelInfo, rerank: RerankInfo | None = None) -> Manifest:
    """Write the manifest of a folder that holds a model, a tokenizer and perhaps a reranker, and return it."""
    names = [layout.MODEL, layout.TOKENIZER]
    if rerank is not None:
        names += [name for name in (layout.RERANK, layout.RERANK_TOKENIZER) if (folder / name).exists()]
    files = {name: describe_file(folder / name) for name in names}
    manifest = Manifest(model=model, index=None, files=files, rerank=rerank)
    write_manifest(folder, manifest)
    return manifest


def write_index(
    folder: Path,
    manifest: Manifest,
    corpus: Corpus,
    codes: Codes,
    scales: Scales,
    name: str,
    exact: ExactSearches,
    keywords: KeywordOptions | None = KEYWORDS_BY_DEFAULT,
) -> Manifest:
    """Write the index, columns and keywords beside the model and the passages, then the manifest, and return that.

    A truncated.jsonl that is in the folder is listed in the manifest.
    codes (rows, dim) int8 and scales (rows,) float32 are in the corpus's order, and can be memory-mapped.
    exact is what exact search finds for the queries that the recall is measured with. keywords is None for a bundle
    without them.
    """
    stages, recalls = write_index_file(folder / layout.INDEX, codes, scales, exact)
    written = [layout.INDEX, layout.PASSAGES]
    columns = {column: kind for column, kind in corpus.columns.items() if kind != NONE}
    if columns:
        save_tensors(folder / layout.COLUMNS, column_tensors(map(json.loads, corpus.metadata), columns))
        written.append(layout.COLUMNS)
    described = None
    if keywords is not None:
        titles = _titles(corpus, keywords.title_column)
        column = keywords.language_column
        languages = None if column is None else row_languages(corpus, column, keywords.stemming, Path(name))
        postings, described = keyword_tensors(corpus.embedded_texts, keywords, titles, languages)
        if described is not None:
            known = share_of_known_words(corpus.texts, read_tokenizer(folder / layout.TOKENIZER))
            described = replace(described, known_words=known)
            save_tensors(folder / layout.KEYWORDS, postings)
            written.append(layout.KEYWORDS)
    if (folder / layout.TRUNCATED).exists():
        written.append(layout.TRUNCATED)
    files = {file: describe_file(folder / file) for file in written}
    index = IndexInfo(
        rows=len(codes),
        stages=stages,
        recall={"queries": len(next(iter(exact.values())).queries)} | _stated(recalls),
        model_sha256=manifest.files[layout.MODEL].sha256,
        tokenizer_sha256=manifest.files[layout.TOKENIZER].sha256,
        corpus=name,
        columns=columns,
        keywords=described,
        heading_prefix=corpus.heading_prefix,
        title=corpus.options.get("title", ""),
        description=corpus.options.get("description", ""),
        options=corpus.options,
    )
    manifest = replace(manifest, index=index, files=manifest.files | files)
    write_manifest(folder, manifest)
    return manifest


def _stated(recalls: Mapping[str, Recall]) -> dict[str, float]:
    """Return the recall of each kind of query as the manifest states it."""
    shares = {kind: each.at_10 for kind, each in recalls.items()}
    shares |= {f"{kind}_first": each.first for kind, each in recalls.items()}
    return {name: round(share, 4) for name, share in shares.items()}


def _titles(corpus: Corpus, column: str | None) -> Iterator[str] | None:
    """Return the title of each text, "" for a text without one; None if no column has titles."""
    if column is None:
        return None
    values = (json.loads(metadata).get(column) for metadata in corpus.metadata)
    return (value if isinstance(value, str) else "" for value in values)


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


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder, when all its files are there."""
    (folder / layout.MANIFEST).write_text(manifest.to_json(), encoding="utf-8")


def take_model(bundle: Path, folder: Path) -> Manifest:
    """Copy model, tokenizer and reranker of a bundle into a folder, and return the manifest written there.

    Raises BundleError if the bundle's manifest or one of these files is damaged.
    """
    manifest = layout.read_manifest(bundle)
    for name in (layout.MODEL, layout.TOKENIZER):
        _take(bundle, manifest, name, folder / name)
    return take_reranker(bundle, folder, write_model(folder, manifest.model))


def take_reranker(bundle: Path, folder: Path, manifest: Manifest) -> Manifest:
    """Copy the reranker of a bundle, if it has one, beside the model in a folder, and return the folder's manifest.

    manifest is that of the folder until now. Raises BundleError if the bundle's manifest or a file is damaged.
    """
    older = layout.read_manifest(bundle)
    if older.rerank is None:
        return manifest
    _take(bundle, older, layout.RERANK, folder / layout.RERANK)
    own = layout.RERANK_TOKENIZER if layout.RERANK_TOKENIZER in older.files else layout.TOKENIZER
    if older.files[own].sha256 != manifest.files[layout.TOKENIZER].sha256:
        _take(bundle, older, own, folder / layout.RERANK_TOKENIZER)
    return write_model(folder, manifest.model, older.rerank)


def _take(bundle: Path, manifest: Manifest, name: str, copy: Path) -> None:
    layout.check_size(bundle, name, manifest)
    check_checksum(bundle, name, manifest)
    shutil.copyfile(bundle / name, copy)


def check_checksum(bundle: Path, name: str, manifest: Manifest) -> None:
    """Raise BundleError if a file of a bundle is damaged, which reads all of it."""
    found, expected = describe_file(bundle / name).sha256, manifest.files[name].sha256
    if found != expected:
        raise BundleError(
            f"{bundle / name}: sha256 {found[:12]}, the manifest says {expected[:12]}; it is damaged: run "
            "`python -m export` again, with the model"
        )
