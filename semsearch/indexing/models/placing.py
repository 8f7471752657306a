"""Place the models of a bundle into its unfinished folder: from an older bundle, from the cache, or converted now."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from pathlib import Path

from semsearch.engine.bundle import (
    MODEL,
    RERANK,
    RERANK_TOKENIZER,
    TOKENIZER,
    BundleError,
    Manifest,
    ModelInfo,
    RerankInfo,
)
from semsearch.engine.embedder import Embedder
from semsearch.indexing.bundles import take_model, take_reranker, write_model
from semsearch.indexing.errors import PackagesError, install_command
from semsearch.indexing.models.cache import (
    cached_folder,
    cached_models,
    can_convert,
    find_converted,
    find_documents_model,
    make_model,
    packaged_models,
    require_own_documents_model,
    take_cached,
)
from semsearch.indexing.models.calibration import CalibrationTexts, read_calibration
from semsearch.indexing.models.converting import convert
from semsearch.indexing.models.modules import CONFIG, ModelError
from semsearch.indexing.models.source import (
    DEFAULT_MODEL,
    DEFAULT_MODEL_SHA256,
    Source,
    find_model,
    read_cross_encoder,
    read_source,
)
from semsearch.indexing.progress import OnProgress


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model embeds, and how it is converted. The options of `index` of these names explain the fields."""

    model: str | Path | None
    revision: str | None
    pooling: str | None
    dimensions: int | None
    query_prompt: str | None
    document_prompt: str | None
    similarity: str | None
    calibration: Path | None
    calibration_column: str | None
    cache: bool

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the model was chosen."""
        others = (getattr(self, field.name) for field in fields(self) if field.name not in ("model", "cache"))
        return self.cache and all(other is None for other in others)


@dataclass(frozen=True, slots=True)
class RerankerChoice:
    """Which cross-encoder is added, None for the one of the older bundle, if any, and the weight of its score.

    The options of `index` of these names explain the fields.
    """

    rerank: str | Path | None
    rerank_revision: str | None
    rerank_weight: float | None


LAST_OPENED: dict[str, Embedder] = {}  # one model at most, by its files and settings


@dataclass(frozen=True, slots=True)
class PlacedModels:
    """The models in an unfinished folder: its manifest, and where the model is that embeds passages."""

    manifest: Manifest
    documents_folder: Path  # often the unfinished folder itself
    documents: Manifest  # the manifest of that folder
    from_cache: Path | None = None  # the folder of the cache, or of a package, that the model was copied from

    @property
    def prompts(self) -> dict[str, str]:
        """The prompts by role, also the one of another model for passages."""
        return self.manifest.model.prompts | self.documents.model.prompts

    @classmethod
    def none(cls, fresh: Path, name: str, dim: int) -> "PlacedModels":
        """Return what an index without a model has: the name of what has made its embeddings, of `dim` values."""
        manifest = Manifest(ModelInfo.elsewhere(name, dim), corpus_or_none=None, files={})
        return cls(manifest, fresh, manifest)

    def open_embedder(self) -> Embedder | None:
        """Return the model that embeds passages, None in an index without a model.

        Its file is read when the first text is embedded. The last model stays open: a program can update its index
        often.
        """
        if not self.manifest.has_model:
            return None
        files = [self.documents.files[name].sha256 for name in (MODEL, TOKENIZER)]
        content = repr((files, self.documents.model))
        if content not in LAST_OPENED:
            LAST_OPENED.clear()
            LAST_OPENED[content] = Embedder.open(self.documents_folder, self.documents.model, is_lazy=True)
        return LAST_OPENED[content]

    @property
    def is_default(self) -> bool:
        """Whether the model is all-MiniLM-L6-v2, which was trained with English."""
        return self.manifest.model.source_sha256 == DEFAULT_MODEL_SHA256


def place_models(
    fresh: Path, older: Path | None, choice: ModelChoice, reranker: RerankerChoice, on_progress: OnProgress
) -> PlacedModels:
    """Write the model and the reranker into the unfinished folder `fresh`, with a manifest that describes them.

    Unless `choice` names a model, the one of the bundle `older` is copied, if there is one.
    Raises ModelError if a model cannot be converted, BundleError if the older bundle cannot be used, and PackagesError
    if the packages that convert a model are missing.
    """
    if reranker.rerank is not None:  # read now, so that a wrong name is an error before the conversion
        cross_encoder = read_cross_encoder(*find_model(str(reranker.rerank), reranker.rerank_revision))
    read_texts = cache(partial(read_calibration, choice.calibration, choice.calibration_column, on_progress))
    from_cache = None
    if older is not None and choice.model is None:
        require_own_documents_model(older)
        manifest = take_model(older, fresh)
    else:
        manifest, from_cache = _take_or_convert(fresh, choice, read_texts, on_progress)
        if older is not None and reranker.rerank is None:
            manifest = take_reranker(older, fresh, manifest)
    if reranker.rerank is not None:
        for name in (RERANK, RERANK_TOKENIZER):  # links to those of the older bundle, which stay as they are
            (fresh / name).unlink(missing_ok=True)
        info: RerankInfo = convert("rerank", cross_encoder, read_texts(), fresh, on_progress)
        if (fresh / RERANK_TOKENIZER).read_bytes() == (fresh / TOKENIZER).read_bytes():
            (fresh / RERANK_TOKENIZER).unlink()
        manifest = write_model(fresh, manifest.model, info)
    if reranker.rerank_weight is not None:
        if manifest.rerank is None:
            raise BundleError(f"{older}: rerank_weight found no reranker; add one with the option rerank")
        manifest = write_model(fresh, manifest.model, replace(manifest.rerank, weight=reranker.rerank_weight))
    return PlacedModels(manifest, *find_documents_model(fresh, manifest), from_cache)


def _take_or_convert(
    fresh: Path, choice: ModelChoice, read_texts: Callable[[], CalibrationTexts], on_progress: OnProgress
) -> tuple[Manifest, Path | None]:
    """Copy a converted model, or convert it; return the manifest, and the folder that the model was copied from.

    A model that the user's own texts calibrate is kept in the unfinished folder instead of the cache, for the next try.
    """
    is_own = choice.calibration is not None or not choice.cache
    prompts = {"query": choice.query_prompt, "document": choice.document_prompt}
    name = None if choice.model is None else str(choice.model)
    folders = []
    if not is_own:
        folders += packaged_models()
        if not can_convert():
            folders += cached_models()
    folder = find_converted(
        folders,
        name=name,
        revision=choice.revision,
        pooling=choice.pooling,
        dimensions=choice.dimensions,
        prompts=prompts,
    )
    manifest = take_cached(folder, fresh)
    if manifest is not None:
        _require_cosine(manifest.model.name, manifest.model.similarity, choice)
        return manifest, folder
    if not can_convert():
        raise _no_model(choice, name)
    model_folder, recorded_name, commit = find_model(name, choice.revision)
    source = read_source(
        model_folder,
        recorded_name,
        commit,
        pooling=choice.pooling,
        dimensions=choice.dimensions,
        prompts=prompts,
    )
    _require_cosine(source.name, source.similarity, choice)
    folder = cached_folder(source, fresh, read_texts() if is_own else None)
    manifest = take_cached(folder, fresh)
    if manifest is not None:
        return manifest, folder
    return make_model(source, read_texts(), folder, fresh, on_progress), None


def find_float_model(models: PlacedModels, name: str | Path | None) -> Source:
    """Return the float32 model that the model for passages was converted from.

    name is the one that the caller has stated; without it, it is the one that the manifest records.
    Raises ModelError if that model is not on this machine, or has other weights.
    """
    model = models.documents.model
    stated = str(name or model.name)
    remedy = "name its folder with --model, or embed the passages with --device cpu"
    try:
        folder, recorded_name, commit = find_model(stated, model.revision if name is None else None)
        source = read_source(
            folder, recorded_name, commit, pooling=model.pooling, dimensions=model.full_dim and model.dim
        )
    except ModelError as error:
        error.add_note(f"a GPU runs the float32 model, which an index does not hold; {remedy}")
        raise
    routes = [route for route in (source, source.documents) if route is not None]
    for route in routes:
        if route.weights_sha256 == model.source_sha256:
            return route
    raise ModelError(
        f"{stated}: the weights have the sha256 {routes[-1].weights_sha256[:12]}, and the model of the index was "
        f"converted from {model.source_sha256[:12]}; expected the same; {remedy}"
    )


def _no_model(choice: ModelChoice, name: str | None) -> PackagesError:
    """Return the error of a machine that cannot convert models, and does not have the one that was chosen."""
    remedy = f"install the extra `export`, which converts it: {install_command('export')}"
    expected = "a model converted on this machine"
    if name in (None, DEFAULT_MODEL) and choice.is_plain:
        expected = "the package semsearch-model of this version"
        remedy = f"install the wheel dist/semsearch_model-*.whl that `make wheels` writes in a clone, or {remedy}"
    return PackagesError(
        f"{name or DEFAULT_MODEL}: found no converted model that this version can use, expected {expected}; {remedy}"
    )


def _require_cosine(name: str, similarity: str | None, choice: ModelChoice) -> None:
    """Raise ModelError if a model was trained for another similarity than the cosine, and nobody accepts the cosine."""
    if similarity is not None and choice.similarity is None:
        raise ModelError(
            f"{name}: {CONFIG} has the similarity_fn_name {similarity}, and no Normalize module makes its embeddings "
            "equally long; searches use the cosine, which finds other texts; choose another model, or accept the "
            "cosine with --similarity cosine"
        )
