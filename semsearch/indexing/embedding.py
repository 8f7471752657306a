"""The embeddings of a corpus: who embeds its texts, and which rows of the older index are used again."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

from semsearch.engine.bundle import MODEL, BundleError, Manifest
from semsearch.engine.embedder import Embedder
from semsearch.indexing.cluster import Cluster
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.passages import texts_for_model
from semsearch.indexing.errors import require_packages
from semsearch.indexing.models.placing import PlacedModels, find_float_model
from semsearch.indexing.older import Changes, OlderIndex
from semsearch.indexing.progress import OnProgress
from semsearch.indexing.vectors.device import Device
from semsearch.indexing.vectors.embed import Cores, EmbeddedCorpus, PassageEmbedder, embed_corpus, open_rows
from semsearch.indexing.vectors.shards import KnownRows, name_model


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """Who embeds the texts. The options of `index` of these names explain the fields."""

    model: str | Path | None
    ray: str | None
    device: str
    dtype: str | None

    def require_packages(self) -> None:
        """Raise PackagesError if a package is missing that the chosen embedder needs."""
        if self.ray is not None:
            require_packages("--ray", "cluster", "ray")
        if self.device not in ("cpu", "auto") or self.dtype == "float32":
            require_packages("--device", "export", "torch", "transformers")

    def passage_embedder(self, models: PlacedModels, embedder: Embedder) -> PassageEmbedder:
        """Return who embeds the passages; embedder has the model of the index."""
        find_source = partial(find_float_model, models, self.model)
        if self.ray is not None:
            return Cluster(
                self.ray.removeprefix("auto"),
                bundle=models.documents_folder,
                model=embedder.model,
                device=self.device,
                dtype=self.dtype,
                find_source=find_source,
            )
        if self.device != "cpu" or self.dtype == "float32":
            return Device(self.device, dtype=self.dtype, find_source=find_source, embedder=embedder)
        return Cores(embedder)


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    """The rows of an index, and how they were embedded."""

    rows: EmbeddedCorpus
    seconds: float
    embedded_by: str  # what embedded the new texts, if it was not this machine's processor with the index's model
    warnings: tuple[str, ...]


def embed(
    corpus: Corpus,
    changes: Changes,
    *,
    fresh: Path,
    out: Path,
    models: PlacedModels,
    embedder: Embedder,
    choice: EmbedderChoice,
    given: KnownRows | None,
    on_progress: OnProgress,
) -> EmbeddedTexts:
    """Embed the texts that neither the older index, nor the caller, nor the unfinished folder `fresh` has rows of.

    given has the rows of the caller.
    """
    passage_embedder = choice.passage_embedder(models, embedder)
    started = perf_counter()
    known = known_rows(changes.older, out, models.manifest)
    rows = embed_corpus(
        passage_embedder,
        texts_for_model(corpus),
        fresh=fresh,
        model=name_model(models.manifest),
        dim=embedder.model.dim,
        older=known,
        given=given,
        on_progress=on_progress,
        digests=changes.digests.embedded,
        older_rows=changes.same_rows,
    )
    return EmbeddedTexts(
        rows,
        seconds=perf_counter() - started,
        embedded_by=passage_embedder.describe(),
        warnings=tuple(filter(None, [_warn_of_mixture(known, rows)])),
    )


def known_rows(older: OlderIndex | None, out: Path, manifest: Manifest) -> KnownRows | None:
    """Return the rows of the older index; None if there is none, or if another model embedded the one in `out`.

    manifest describes the model of the new one.

    Raises BundleError if another model embedded an index that is somewhere else.
    """
    if older is None:
        return None
    if name_model(older.manifest) != name_model(manifest):
        if older.folder == out:
            return None
        raise BundleError(
            f"{older.folder}: was embedded by the model {older.manifest.model.name} with {_shown(older.manifest)}, the "
            f"new texts would be by {manifest.model.name} with {_shown(manifest)}; expected the same "
            "model; leave MODEL out to go on with the bundle's, or leave out --update, to embed all texts"
        )
    return open_rows(older)


def _warn_of_mixture(known: KnownRows | None, rows: EmbeddedCorpus) -> str | None:
    """Return a warning if the rows of the older index were embedded by something else than the new ones."""
    if known is None or not rows.updated or not set(rows.embedded_by) - set(known.embedded_by):
        return None
    return (
        f"the texts were embedded by {' and '.join(rows.embedded_by)}, which agree within the accuracy of the model; "
        "the options device and dtype choose one of them"
    )


def _shown(manifest: Manifest) -> str:
    return f"sha256 {manifest.files[MODEL].sha256[:12]}"
