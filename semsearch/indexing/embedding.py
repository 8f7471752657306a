"""The embeddings of a corpus: who embeds its texts, and which rows of the older index are used again."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

from semsearch.engine.bundle import BundleError, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.tensors import TensorsError
from semsearch.indexing.cluster import Cluster
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.errors import require_packages
from semsearch.indexing.models.placing import PlacedModels, find_float_model
from semsearch.indexing.progress import OnProgress
from semsearch.indexing.vectors.device import Device
from semsearch.indexing.vectors.embed import Cores, EmbeddedCorpus, PassageEmbedder, embed_corpus, open_older_rows
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
    *,
    fresh: Path,
    out: Path,
    older: Path | None,
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
    known, damage = older_rows(older, out, models, on_progress)
    rows = embed_corpus(
        passage_embedder,
        corpus.embedded_texts,
        fresh=fresh,
        model=name_model(models.manifest),
        dim=embedder.model.dim,
        older=known,
        given=given,
        on_progress=on_progress,
    )
    return EmbeddedTexts(
        rows,
        seconds=perf_counter() - started,
        embedded_by=passage_embedder.describe(),
        warnings=tuple(filter(None, (damage, _warn_of_mixture(known, rows)))),
    )


def older_rows(
    older: Path | None, out: Path, models: PlacedModels, on_progress: OnProgress
) -> tuple[KnownRows | None, str | None]:
    """Return the rows of the older bundle, None if all texts have to be embedded, and a warning if they are damaged.

    If the older bundle is the one in `out`, it can be damaged or have another model.
    Raises BundleError or TensorsError if it is another one that cannot be used.
    """
    if older is None or read_manifest(older).corpus_or_none is None:
        return None, None
    if older == out and name_model(read_manifest(out)) != name_model(models.manifest):
        return None, None
    on_progress("read the older bundle", 0)
    try:
        known = open_older_rows(older, models.manifest)
    except (BundleError, TensorsError) as error:
        if older != out:
            raise
        return None, f"the older index is damaged, so all texts were embedded again: {str(error).partition(';')[0]}"
    on_progress("read the older bundle", 1)
    return known, None


def _warn_of_mixture(known: KnownRows | None, rows: EmbeddedCorpus) -> str | None:
    """Return a warning if the rows of the older index were embedded by something else than the new ones."""
    if known is None or not rows.updated or not set(rows.embedded_by) - set(known.embedded_by):
        return None
    return (
        f"the texts were embedded by {' and '.join(rows.embedded_by)}, which agree within the accuracy of the model; "
        "the options device and dtype choose one of them"
    )
