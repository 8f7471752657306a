"""The embeddings of a corpus: who embeds its texts, and which rows of the older index are used again.

In an index without a model, nothing is embedded: `take_rows` takes what the caller of `index` gives.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from semsearch.engine.bundle import GIVEN, MODEL, BundleError, Manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.errors import OptionError
from semsearch.engine.quantization import Embeddings
from semsearch.indexing.cluster import Cluster
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.passages import texts_for_model
from semsearch.indexing.digests import Positions
from semsearch.indexing.errors import require_packages
from semsearch.indexing.models.placing import PlacedModels, find_float_model
from semsearch.indexing.older import OlderIndex
from semsearch.indexing.progress import OnProgress
from semsearch.indexing.row_changes import RowChanges
from semsearch.indexing.vectors.device import Device
from semsearch.indexing.vectors.embed import Cores, EmbeddedCorpus, PassageEmbedder, embed_corpus, open_rows
from semsearch.indexing.vectors.shards import KnownRows, gather_rows, name_model


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
    warnings: tuple[str, ...] = ()
    # the unit embeddings that the caller has given for some rows of an index without a model; None in one with a model
    given: Callable[[Positions], Embeddings] | None = None


def embed(
    corpus: Corpus,
    changes: RowChanges,
    *,
    fresh: Path,
    out: Path,
    models: PlacedModels,
    embedder: Embedder,
    choice: EmbedderChoice,
    given: Sequence[KnownRows],
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


def find_places(changes: RowChanges, corpus: Corpus, given: Sequence[KnownRows], merged: Positions | None) -> Positions:
    """Return where the embedding of each row of an index without a model is, (rows,).

    Smaller numbers than the number of older rows are rows of the older index. Greater ones are rows of `given`, whose
    first row follows the last older one. For rows that were added to an older index, merged has these places already.
    Otherwise each row takes the given embedding with its number, or if none are given, that of the equal older row.

    Raises OptionError if rows have no embedding.
    """
    if merged is not None:
        return merged
    if given:
        return np.arange(len(corpus.texts)) + changes.older_count
    missing = np.flatnonzero(changes.same_rows < 0)
    if len(missing):
        first = corpus.ids[int(missing[0])]
        raise OptionError(
            "embeddings", f"found none, and {len(missing):,} rows are new or have changed, such as {first!r}; give them"
        )
    return changes.same_rows


def take_rows(
    places: Positions, changes: RowChanges, *, given: Sequence[KnownRows], fresh: Path, manifest: Manifest
) -> EmbeddedTexts:
    """Take the rows of an index without a model at their places: see `find_places`. manifest is that of the index.

    An embedding is that of a row, not of a text: equal texts can have different ones, and a given one replaces that of
    the older index. Raises BundleError if the older index has other embeddings.
    """
    started = perf_counter()
    known, older = list(given), changes.older
    if older is not None:
        if older.manifest.model != manifest.model:
            raise BundleError(f"{older.folder}: was replaced while it was read; run the command again")
        known.insert(0, open_rows(older))
    codes, scales = gather_rows(known, places, manifest.model.dim, fresh)
    is_older = places < changes.older_count
    rows = EmbeddedCorpus(
        codes=codes,
        scales=scales,
        embedded_by=[GIVEN],
        embedded=0,
        given=int(np.count_nonzero(~is_older)),
        is_truncated=np.zeros(len(places), bool),
        resumed=0,
        older_rows=np.where(is_older, places, -1),
    )

    def given_at(wanted: Positions) -> Embeddings:
        found = np.empty((len(wanted), manifest.model.dim), np.float32)
        begin = changes.older_count
        for each in given:
            here = (places[wanted] >= begin) & (places[wanted] < begin + len(each.digests))
            assert each.unit is not None  # the caller has given it
            found[here] = each.unit(places[wanted][here] - begin)
            begin += len(each.digests)
        return found

    return EmbeddedTexts(rows, perf_counter() - started, manifest.model.name, given=given_at)


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
