"""Cache the models of an export, so that the next export reuses them if this one is stopped later.

The name of a cached model has a digest of everything that it depends on: the source's files and settings, the
calibration texts, this code and the versions of the libraries.
"""

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

from export.corpus.corpus import digest_texts
from export.files import FINISHED, finishing, flush
from export.index.indexer import take_model, write_model
from export.index.shards import name_model
from export.model.calibration import CalibrationTexts
from export.model.export_model import export_model
from export.model.model_cache import DOCUMENTS_MODEL, digest_source
from export.model.reranker import export_reranker
from export.model.source import Source
from export.progress import OnProgress, no_progress
from function.engine.bundle import (
    RERANK,
    RERANK_TOKENIZER,
    TOKENIZER,
    BundleError,
    Manifest,
    RerankInfo,
    read_manifest,
)

CACHED_ENTRY = "rerank.json"  # in a cached reranker: its entry of the manifest


def make_model(
    source: Source,
    texts: CalibrationTexts,
    fresh: Path,
    on_progress: OnProgress = no_progress,
) -> tuple[Manifest, bool]:
    """Write the model part of a bundle into the unfinished folder; return its manifest, and whether it was cached.

    Deletes other cached models. Raises ModelError as `export_model` does.
    """
    name = _name("model", source, texts, fresh)
    kept = fresh / FINISHED / name
    if kept.is_dir():
        try:
            return take_model(kept, fresh), True
        except BundleError:  # the disk has damaged it
            shutil.rmtree(kept)
    with finishing(fresh, name) as folder:
        folder.mkdir()
        info = export_model(source, texts, folder, on_progress)
        if source.documents is not None:
            (folder / DOCUMENTS_MODEL).mkdir()
            made = export_model(
                source.documents,
                texts,
                folder / DOCUMENTS_MODEL,
                lambda step, share, texts=0: on_progress(f"{step} (documents)", share),
            )
            info = replace(info, documents=name_model(write_model(folder / DOCUMENTS_MODEL, made)))
            flush(folder / DOCUMENTS_MODEL)
        write_model(folder, info)
    return take_model(kept, fresh), False


def make_reranker(
    source: Source, texts: CalibrationTexts, fresh: Path, on_progress: OnProgress = no_progress
) -> Manifest:
    """Write a reranker beside the model in the unfinished folder, and return the manifest with it.

    Deletes other cached rerankers. Raises ModelError as `export_reranker` does.
    """
    name = _name("rerank", source, texts, fresh)
    kept = fresh / FINISHED / name
    if not kept.is_dir():
        with finishing(fresh, name) as folder:
            folder.mkdir()
            info = export_reranker(source, texts, folder, on_progress)
            (folder / CACHED_ENTRY).write_text(json.dumps(asdict(info)), encoding="utf-8")
    shutil.copyfile(kept / RERANK, fresh / RERANK)
    own, shared = (kept / RERANK_TOKENIZER).read_bytes(), (fresh / TOKENIZER).read_bytes()
    (fresh / RERANK_TOKENIZER).unlink(missing_ok=True)
    if own != shared:
        (fresh / RERANK_TOKENIZER).write_bytes(own)
    info = RerankInfo(**json.loads((kept / CACHED_ENTRY).read_bytes()))
    return write_model(fresh, read_manifest(fresh).model, info)


def _name(kind: str, source: Source, texts: CalibrationTexts, fresh: Path) -> str:
    """Return the name of a cached model, after deleting the other ones of its kind."""
    digest = digest_source(source)
    digest.update(digest_texts([*texts.calibration, *texts.held_out]).tobytes())
    name = f"{kind}-{digest.hexdigest()[:32]}"
    for other in (fresh / FINISHED).glob(f"{kind}-*"):
        if other.name != name:
            shutil.rmtree(other)
    return name
