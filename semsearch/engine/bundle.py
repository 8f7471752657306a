"""The bundle: a folder that `semsearch index` writes and searches trust. `manifest.json` is the contract.

Opening checks the format version, that each file exists with its size, and that the bundle's own model embedded the
index. Only `check_files` compares checksums, because a cold start has no time to read every byte: the image's build,
`semsearch verify`, `semsearch serve --verify` and `Search(…, verify=True)` call it.
"""

import hashlib
import json
import reprlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

from semsearch.engine.errors import ExpectedError

FORMAT_VERSION = 5

MANIFEST = "manifest.json"
MODEL = "model.ort"
TOKENIZER = "tokenizer.txt"
INDEX = "index.safetensors"
PASSAGES = "passages.safetensors"
COLUMNS = "columns.safetensors"
KEYWORDS = "keywords.safetensors"
QUERY_TABLE = "queries.safetensors"  # the query table of a bundle with one
RERANK = "rerank.ort"  # the cross-encoder of a bundle with a reranker
RERANK_TOKENIZER = "rerank_tokenizer.txt"  # the reranker's tokenizer, unless it is equal to TOKENIZER
SOURCE = "source.txt"  # where the texts came from, for whoever made the bundle; the manifest does not list this file
UPDATE = "update.safetensors"  # what an update needs and a search does not; the manifest does not list this file
TRUNCATED = "truncated.jsonl"  # truncated texts, for who made the bundle: see semsearch/indexing/vectors/indexer.py

QueryEmbedder: TypeAlias = Literal["table", "model"]  # what embeds queries
BY_MODEL: Final = "model"
BY_TABLE: Final = "table"

BY_CORES = "cpu int8"  # what has embedded passages, by default: the processor's cores and the bundle's own model
GIVEN = "given"  # the same for passages whose embeddings the caller of `index` had already

NO_STEMS = "none"  # in the place of a stemmer's language
CONVEX = "convex"  # how hybrid search combines scores: see semsearch/engine/hybrid.py

Info = TypeVar("Info")


class BundleError(ExpectedError, ValueError):
    """A bundle that cannot be used: the message says where, what was found, what was expected and what to do."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """The length and the hexadecimal SHA-256 of one file of the bundle."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The embedding model: its source, its input, and how close its 8-bit embeddings are to the float32 ones."""

    name: str
    revision: str | None
    source_sha256: str  # checksum of the weights file that the model was converted from; "" in a bundle without a model
    pooling: str  # mean, cls or max; inside the graph, like the normalization
    dim: int
    max_tokens: int  # special tokens included; longer texts are truncated
    prompts: dict[str, str]  # by role, "query" or "document": what precedes a text of that role
    quantization: str
    accuracy: dict[str, float] = field(default_factory=dict)  # against float32: see semsearch/conversion/convert.py
    full_dim: int | None = None  # dimensions of the model's own embeddings, if the bundle keeps only the first `dim`
    documents: str = ""  # name (`name_model`) of the model that embeds passages; "" if it is the model of queries
    unused_prompts: list[str] = field(default_factory=list)  # names of prompts in the model's files that no role has
    # the similarity that the model was trained for, such as "dot", if it orders texts differently from the cosine; None
    # also in bundles of older versions, which did not store it
    similarity: str | None = None

    @classmethod
    def elsewhere(cls, name: str, dim: int) -> "ModelInfo":
        """Return what is known of a model that is not in the bundle: its owner's word for it, and its dimensions."""
        return cls(
            name=name,
            revision=None,
            source_sha256="",
            pooling="",
            dim=dim,
            max_tokens=0,
            prompts={},
            quantization="",
        )


@dataclass(frozen=True, slots=True)
class RerankInfo:
    """The cross-encoder that scores a query and a text together, and how search blends its score."""

    name: str
    revision: str | None
    source_sha256: str  # checksum of the weights that it was converted from
    max_tokens: int  # maximum tokens of a pair, special ones included; in a longer pair, the longer text is truncated
    weight: float  # weight of its score in the blend, 0 to 1; the rest is the weight of the mode's score
    quantization: str
    accuracy: dict[str, float] = field(default_factory=dict)  # against float32: see semsearch/conversion/reranker.py


@dataclass(frozen=True, slots=True)
class QueriesInfo:
    """The query table, which embeds queries instead of the model, and how it was learned."""

    spans: int  # number of texts that it was learned from
    new_rows: int = 0  # number of passages that updates have added since then
    accuracy: dict[str, float] = field(default_factory=dict)  # against the model: see indexing/vectors/query_table.py


@dataclass(frozen=True, slots=True)
class KeywordsInfo:
    """The postings of keyword search, and how hybrid search adds their scores to those of the embeddings."""

    terms: int
    postings: int
    stemming: str | None  # the language of the Snowball stemmer, such as "english"
    k1: float  # parameter of BM25, like b
    b: float
    fusion: str  # CONVEX
    fusion_weight: float  # weight of the cosine, 0 to 1; the rest is the weight of BM25
    # languages of all stemmers if a column names the language of each text; "none" for texts that are not stemmed
    languages: list[str] = field(default_factory=list)
    # share of the texts' words that are one token; low if the texts are in another language than the tokenizer's
    known_words: float = 1.0
    # terms that also match a term of a query, from --synonyms: see semsearch/indexing/synonyms.py
    synonyms: dict[str, list[str]] = field(default_factory=dict)

    @property
    def stemmers(self) -> list[str | None]:
        """Return the languages of all stemmers, None for words without stems."""
        if not self.languages:
            return [self.stemming]
        return [None if name == NO_STEMS else name for name in self.languages]


@dataclass(frozen=True, slots=True)
class StagesInfo:
    """How many rows the stages of a search keep; semsearch/engine/semantic/index.py explains them."""

    candidates: int  # rows that are kept after comparing signs
    rescored: int  # rows that are scored with their codes


@dataclass(frozen=True, slots=True)
class VectorsInfo:
    """Where in Amazon S3 Vectors the texts and the embeddings are, if the bundle has none."""

    bucket: str
    index: str
    region: str
    keys: str  # beginning of each vector's key; its row follows


@dataclass(frozen=True, slots=True)
class FloorInfo:
    """The score of a best hit below which nothing relevant was found, for one mode: see indexing/vectors/floor.py."""

    score: float | None  # None if no score separates questions that the texts answer from others
    kept: float  # share of the questions made from the texts, 0 to 1, whose best hit reaches the score


JSON_NAMES = {"source": "corpus"}  # fields of CorpusInfo that the JSON calls something else


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """The embedded corpus: its size, its layout and the model that embedded it."""

    rows: int
    stages: StagesInfo | None  # None if every search looks at all rows
    recall: dict[str, float]  # recall against exact search by kind of query (`choose_stages`); {} if not measured
    model_sha256: str  # checksum of the model.ort that embedded the corpus; "" in a bundle without a model
    tokenizer_sha256: str  # checksum of tokenizer.txt; "" in a bundle without a model
    source: str  # name of the texts' file, or a description of them; "corpus" in the JSON
    columns: dict[str, str]  # type of each column that filters can name; columns.safetensors has the values
    keywords: KeywordsInfo | None  # None in a bundle without keywords.safetensors
    vectors: VectorsInfo | None = None  # None if the corpus is in the bundle
    untyped: list[str] = field(default_factory=list)  # columns that filters cannot name: values of several types
    heading_prefix: bool = False  # whether passages were embedded after the path of their headings
    title: str = ""  # title of the corpus; "" for the name of its file
    description: str = ""  # what the corpus is about; agents read it to choose a tool
    boost: dict[str, Any] = field(default_factory=dict)  # default of the field `boost` of a request
    # options of `semsearch index` that differ from their defaults; only updates read them
    options: dict[str, Any] = field(default_factory=dict)
    floor: dict[str, FloorInfo] = field(default_factory=dict)  # by mode; {} if not measured, as in older bundles
    # what embedded the passages: a device and a type of numbers, or "given" if the caller of `index` had embeddings
    embedded_by: list[str] = field(default_factory=lambda: [BY_CORES])
    # number of files in the folder of documents that are not read because of their suffix, by suffix, "" for none;
    # {} in older bundles: see `listed_suffixes`
    other_suffixes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """manifest.json. `corpus_or_none`, "index" in the JSON, is None in a bundle that holds only a model so far."""

    model: ModelInfo
    corpus_or_none: CorpusInfo | None
    files: dict[str, FileInfo]
    format_version: int = FORMAT_VERSION
    rerank: RerankInfo | None = None
    queries: QueriesInfo | None = None

    def to_json(self) -> str:
        """Return the text of manifest.json, indented so that people can read and compare it."""
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n"

    def as_json(self) -> dict[str, Any]:
        """Return the content of manifest.json."""
        content = {"index" if name == "corpus_or_none" else name: value for name, value in asdict(self).items()}
        if self.corpus_or_none is not None:
            content["index"] = {JSON_NAMES.get(name, name): value for name, value in content["index"].items()}
        return content

    @property
    def corpus(self) -> CorpusInfo:
        """The corpus. Raises BundleError if the bundle holds none yet, which `check_bundle` has checked."""
        if self.corpus_or_none is None:
            raise BundleError(
                "the bundle holds a model and no texts; add texts with `semsearch index PATH --out BUNDLE`"
            )
        return self.corpus_or_none

    @property
    def has_model(self) -> bool:
        """Whether the bundle has a model and a tokenizer. Otherwise all embeddings are made elsewhere."""
        return bool(self.model.source_sha256)

    def has_model_of(self, other: "Manifest") -> bool:
        """Return whether both embed with the same files in the same way, so that one can take the other's place."""
        same = [self.files.get(name) == other.files.get(name) for name in (MODEL, TOKENIZER)]
        return self.model == other.model and all(same)


def is_bundle(path: str | Path) -> bool:
    """Return whether this folder is a bundle: whether it has a manifest, and a model or texts."""
    folder = Path(path)
    if not (folder / MANIFEST).is_file():
        return False
    # without a model, and with its texts in S3 Vectors, a bundle is a manifest alone
    return (folder / MODEL).is_file() or (folder / INDEX).is_file() or find_corpus(folder) is not None


def read_manifest(bundle: Path) -> Manifest:
    """Read and check the manifest alone. Raises BundleError if it is missing or has another format."""
    path = bundle / MANIFEST
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        state = "is not a folder"
        if bundle.is_dir():
            state = "holds no manifest.json"
        raise BundleError(f"{bundle}: {state}; make a bundle with `semsearch index PATH --out {bundle}`") from None
    except OSError as error:
        raise BundleError(f"{path}: {error}; run `semsearch index` again") from error
    return parse_manifest(content, str(path))


def find_corpus(bundle: Path) -> CorpusInfo | None:
    """Return what a folder's manifest says of its texts, None if it holds none or the folder is no bundle."""
    try:
        return read_manifest(bundle).corpus_or_none
    except BundleError:
        return None


def parse_manifest(content: bytes, where: str) -> Manifest:
    """Return the manifest that a file holds. Raises BundleError, which begins with `where`, if it holds none."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{where}: {error}; run `semsearch index` again") from error
    version = None
    if isinstance(found, dict):
        version = found.get("format_version")
    if version != FORMAT_VERSION:
        shown = version if isinstance(version, str) else reprlib.repr(version)
        remedy = "run `semsearch index` again"
        if isinstance(version, int) and version > FORMAT_VERSION:
            remedy = "a newer release wrote it: install that here, or `semsearch rollback` to an older bundle"
        raise BundleError(f"{where}: format_version is {shown}, this code reads {FORMAT_VERSION}; {remedy}")
    try:
        return Manifest(
            model=ModelInfo(**found["model"]),
            corpus_or_none=_read_corpus(found["index"], where),
            files={name: FileInfo(**entry) for name, entry in found["files"].items()},
            rerank=_read_info(RerankInfo, found.get("rerank")),
            queries=_read_info(QueriesInfo, found.get("queries")),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise BundleError(f"{where}: {error} is missing or wrong; run `semsearch index` again") from error


def _read_info(kind: Callable[..., Info], fields: dict[str, Any] | None) -> Info | None:
    if fields is None:
        return None
    return kind(**fields)


def _read_corpus(fields: dict[str, Any] | None, where: str) -> CorpusInfo | None:
    if fields is None:
        return None
    vectors = fields.get("vectors") or {}
    if vectors.pop("keeps_texts", False):  # bundles of 1.0.0 state it
        found = "only the embeddings are in S3 Vectors, expected the texts too"
        raise BundleError(f"{where}: {found}; publish the bundle with its embeddings again")
    kinds = {"stages": StagesInfo, "keywords": KeywordsInfo, "vectors": VectorsInfo}
    parts = {name: kind(**fields[name]) for name, kind in kinds.items() if fields.get(name) is not None}
    values = fields | parts
    values["floor"] = {mode: FloorInfo(**measured) for mode, measured in fields.get("floor", {}).items()}
    for name, stored in JSON_NAMES.items():
        values[name] = values.pop(stored)
    return CorpusInfo(**values)


def check_bundle(bundle: Path) -> Manifest:
    """Check a bundle as far as a cold start has time for, and return its manifest.

    Raises BundleError if a file is missing, if its length differs from the manifest's, or if the index was embedded
    by a model or a tokenizer that differs from the bundle's.
    """
    manifest, remedy = read_manifest(bundle), f"run `semsearch index PATH --out {bundle}`"
    if manifest.corpus_or_none is None:
        raise BundleError(f"{bundle}: holds a model and no texts; {remedy}")
    keywords, vectors = manifest.corpus.keywords, manifest.corpus.vectors
    if keywords is not None and keywords.fusion != CONVEX:
        raise BundleError(f"{bundle / MANIFEST}: fusion is {keywords.fusion}, this code reads {CONVEX}; {remedy}")
    has_texts = vectors is None
    needed = {
        MODEL: manifest.has_model,
        TOKENIZER: manifest.has_model,
        RERANK: manifest.rerank is not None,
        QUERY_TABLE: manifest.queries is not None,
        RERANK_TOKENIZER: RERANK_TOKENIZER in manifest.files,
        INDEX: has_texts,
        PASSAGES: has_texts,
        COLUMNS: has_texts and bool(manifest.corpus.columns),
        KEYWORDS: has_texts and keywords is not None,
    }
    for name in (name for name, is_needed in needed.items() if is_needed):
        check_size(bundle, name, manifest)
    for name, embedded_by in (
        (MODEL, manifest.corpus.model_sha256),
        (TOKENIZER, manifest.corpus.tokenizer_sha256),
    ):
        if manifest.has_model and manifest.files[name].sha256 != embedded_by:
            raise BundleError(
                f"{bundle / INDEX}: was embedded by {name} {embedded_by[:12]}, the bundle holds "
                f"{manifest.files[name].sha256[:12]}; {remedy}"
            )
    return manifest


def check_size(bundle: Path, name: str, manifest: Manifest) -> None:
    """Raise BundleError unless the file is there with the length that the manifest states."""
    if name not in manifest.files:
        raise BundleError(f"{bundle / MANIFEST}: lists no {name}; run `semsearch index` again")
    expected = manifest.files[name].bytes
    try:
        found = (bundle / name).stat().st_size
    except FileNotFoundError:
        raise BundleError(f"{bundle / name}: is missing; run `semsearch index` again") from None
    if found != expected:
        raise BundleError(f"{bundle / name}: {found} bytes, the manifest says {expected}; run `semsearch index` again")


def check_files(bundle: Path) -> None:
    """Read all files and compare their SHA-256 with the manifest. Raises BundleError if one differs."""
    manifest = read_manifest(bundle)
    for name in manifest.files:
        check_file(bundle, name, manifest)


def check_file(bundle: Path, name: str, manifest: Manifest) -> None:
    """Read all of a file and compare its SHA-256 with the manifest. Raises BundleError if it differs."""
    check_size(bundle, name, manifest)
    found, expected = describe_file(bundle / name).sha256, manifest.files[name].sha256
    if found != expected:
        raise BundleError(
            f"{bundle / name}: is damaged: SHA-256 {found[:12]}, the manifest says {expected[:12]}; copy it again, or "
            "run `semsearch index` again, with --model"
        )


def describe_file(path: Path) -> FileInfo:
    """Read all of a file and return its length and checksum."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return FileInfo(bytes=file.tell(), sha256=digest.hexdigest())
