"""What all options of `index` share: an update uses the recorded ones again, and wrong values are refused.

The signature of `index` defines the options. A manifest records those that change what is in the bundle and differ from
their defaults.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from Stemmer import algorithms

from semsearch.engine.bundle import BY_MODEL, NO_STEMS, BundleError, is_bundle, read_manifest
from semsearch.engine.errors import OptionError
from semsearch.indexing.columns import COLUMN_TYPES
from semsearch.indexing.synonyms import read_synonyms

P = ParamSpec("P")
Returned = TypeVar("Returned")
Options = TypeVar("Options")
Arguments = Mapping[str, Any]

LONGEST_LINE = 1_000  # maximum characters of title and description
RUN_OPTIONS = (  # no manifest records these: places, models, and what is about one call alone
    *("data", "out", "update", "mode", "ray", "strict", "learn", "cache", "progress"),
    *("device", "dtype", "embeddings"),  # the manifest says what has embedded the rows
    *("calibration", "calibration_column", "questions"),  # an update has texts of its own
    *("model", "rerank", "rerank_revision", "rerank_weight"),  # an update takes both models from the bundle
    "similarity",  # accepts the cosine for one model alone
)
MODEL_OPTIONS = (
    *("revision", "pooling", "dimensions", "query_prompt", "document_prompt", "similarity", "calibration"),
)
KEYWORD_OPTIONS = ("stem", "title_column", "language_column", "fusion_weight", "synonyms")
NEEDED_OPTIONS = {  # an option, and the one without which it has no effect
    "rerank_revision": "rerank",
    "rerank_weight": "rerank",
    "calibration_column": "calibration",
}
DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
LEAST_NUMBERS = {"dimensions": 1, "passage_tokens": 1, "overlap": 0}
SHARES = ("fusion_weight", "rerank_weight")  # from 0 to 1


def calling(
    make: Callable[[Any, Options], Returned], options: type[Options]
) -> Callable[[Callable[P, Returned]], Callable[P, Returned]]:
    """Let a function, of which only the signature counts, call `make` with its first argument and its options.

    `options` is the dataclass of the options: see `gather`.
    """

    def calling_make(index: Callable[P, Returned]) -> Callable[P, Returned]:
        @wraps(index)
        def call(*positional: P.args, **named: P.kwargs) -> Returned:
            arguments = all_options(index, *positional, **named)
            recorded = content_options(index, arguments)
            return make(arguments["data"], gather(options, {**arguments, "recorded": recorded}))

        return call

    return calling_make


def all_options(index: Callable[P, object], *positional: P.args, **named: P.kwargs) -> dict[str, Any]:
    """Return all options of a call of `index`: the stated ones, else those of the older bundle, else the defaults.

    The older bundle is the one of the option `update`, or else the one that is in `out` already.
    Raises OptionError for a wrong value, and for an option that has no effect.
    """
    signature = inspect.signature(index)
    bound = signature.bind(*positional, **named)
    stated = dict(bound.arguments)
    if stated.get("update") is None:
        out = stated.get("out", signature.parameters["out"].default)
        stated["update"] = out if is_bundle(out) else None
    _check_effects(stated)
    recorded = _recalled(stated)
    if "column" in stated:
        stated["column"] = {**recorded.get("column", {}), **(stated["column"] or {})}
    bound.arguments |= recorded | stated
    bound.apply_defaults()
    found = {name: _plain(name, value) for name, value in bound.arguments.items()}
    _check_values(found, _choices(index))
    return found


def gather(options: type[Options], values: Arguments) -> Options:
    """Return a dataclass whose fields have the values of their names. One that is a dataclass is gathered in turn."""
    found = {}
    for name, kind in get_type_hints(options).items():
        if isinstance(kind, type) and is_dataclass(kind):
            found[name] = gather(kind, values)
        elif name in values:
            found[name] = values[name]
    return options(**found)


def content_options(make: Callable[..., object], arguments: Arguments) -> dict[str, Any]:
    """Return the arguments of `index` that its manifest records: those that change what is in the bundle.

    arguments has every parameter of `make`. Options with their default value are left out.
    """
    recorded = {}
    for name, parameter in sorted(inspect.signature(make).parameters.items()):
        if name not in RUN_OPTIONS and arguments[name] != _plain(name, parameter.default):
            recorded[name] = arguments[name]
    return recorded


def _recalled(stated: Arguments) -> dict[str, Any]:
    """Return the options that the older bundle records, except those that the stated ones contradict."""
    if stated["update"] is None:
        return {}
    try:
        index = read_manifest(Path(stated["update"])).index
    except BundleError as error:
        error.add_note("without this folder, the texts are indexed anew; state all options then")
        raise
    if index is None:
        return {}
    contradicted: tuple[str, ...] = ()
    if stated.get("keywords") is False:
        contradicted = KEYWORD_OPTIONS
    return {name: value for name, value in index.options.items() if name not in contradicted}


def _plain(name: str, value: Any) -> Any:
    """Return an option in the form that a manifest records: JSON, and None for an empty name of a column or file."""
    if name == "synonyms" and isinstance(value, str | Path) and str(value):
        try:
            return read_synonyms(Path(value))
        except (OSError, ValueError) as error:
            raise OptionError(name, f"{value}: {error}") from error
    if name == "text_column" and value is not None and not isinstance(value, str):
        if len(value) > 1 and any("," in column for column in value):
            raise OptionError(name, f"found {list(value)!r}, expected names without a comma, or one; rename the column")
        value = ",".join(value)
    if name in ("text_column", "id_column", "title_column", "language_column", "synonyms") and not value:
        return None
    if name in ("title", "description"):
        return value.strip()
    if name in ("out", "update") and value is not None:
        return Path(value)
    if name == "exclude":
        return list(value)
    if name in ("column", "boost"):
        return dict(value or {})
    return value


def _check_effects(stated: Arguments) -> None:
    """Raise OptionError for a stated option that has no effect beside the others."""
    keeps_model = stated["update"] is not None and stated.get("model") is None
    if keeps_model:
        for name in MODEL_OPTIONS:
            is_used = name == "calibration" and stated.get("rerank") is not None
            if stated.get(name) is not None and not is_used:
                raise OptionError(name, "is for a new model, and the one of the index is kept; name a model too")
    for name, needed in NEEDED_OPTIONS.items():
        is_of_bundle = name == "rerank_weight" and keeps_model  # the bundle can have a reranker
        if stated.get(name) is not None and stated.get(needed) is None and not is_of_bundle:
            raise OptionError(name, f"has no effect without {needed}; add it")


def _check_values(arguments: Arguments, choices: Mapping[str, tuple[object, ...]]) -> None:
    """Raise OptionError for a value that its option cannot have."""
    for name, values in choices.items():
        if arguments[name] not in values:
            known = ", ".join(str(value) for value in values if value is not None)
            raise OptionError(name, f"found {arguments[name]!r}, expected one of {known}")
    for name, least in LEAST_NUMBERS.items():
        if arguments[name] is not None and arguments[name] < least:
            raise OptionError(name, f"found {arguments[name]}, expected {least} or more")
    for name in SHARES:
        if arguments[name] is not None and not 0 <= arguments[name] <= 1:
            raise OptionError(name, f"found {arguments[name]}, expected a number from 0 to 1")
    for name in ("title", "description"):
        if not arguments[name].isprintable() or len(arguments[name]) > LONGEST_LINE:
            found = f"found {arguments[name][:60]!r}"
            raise OptionError(name, f"{found}, expected one line of at most {LONGEST_LINE} characters")
    separator, stem = arguments["separator"], arguments["stem"]
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise OptionError("separator", f"found {separator!r}, expected one character, such as ';'")
    if stem not in (None, NO_STEMS, *algorithms()):
        raise OptionError("stem", f"found {stem!r}, expected one of {', '.join([NO_STEMS, *algorithms()])}")
    for column, kind in arguments["column"].items():
        if not column or kind not in COLUMN_TYPES:
            raise OptionError("column", f"found {column}={kind}, expected a type of {', '.join(COLUMN_TYPES)}")
    if arguments["overlap"] >= arguments["passage_tokens"]:
        tokens = arguments["passage_tokens"]
        raise OptionError("overlap", f"found {arguments['overlap']}, expected less than passage_tokens, {tokens}")
    _check_together(arguments)


def _check_together(arguments: Arguments) -> None:
    if arguments["queries"] == BY_MODEL and (arguments["questions"] is not None or arguments["learn"]):
        name = "questions"
        if arguments["learn"]:
            name = "learn"
        raise OptionError(name, "is for a query table; add queries=table")
    _check_device(arguments)


def _check_device(arguments: Arguments) -> None:
    """Raise OptionError for a device, a dtype or embeddings that do not fit together."""
    device, dtype = arguments["device"], arguments["dtype"]
    if not DEVICE.fullmatch(device):
        raise OptionError("device", f"found {device!r}, expected auto, cpu, mps, cuda, or one GPU such as cuda:1")
    if device == "cpu" and dtype == "float16":
        raise OptionError("dtype", "float16 is for a GPU; choose float32, or add --device cuda")
    if device != "cpu" and dtype == "int8":
        raise OptionError("dtype", "int8 is for the processor; choose float16 or float32, or leave the device out")
    if arguments["embeddings"] is not None:
        for name in ("split", "ray", "dtype"):
            if arguments[name]:
                raise OptionError(name, "has no effect with embeddings, which are those of whole rows; leave it out")
        if device != "cpu":
            raise OptionError("device", "has no effect with embeddings; leave it out")


def _choices(make: Callable[..., object]) -> dict[str, tuple[object, ...]]:
    """Return the values of each parameter whose type is a Literal, or a Literal or None."""
    choices = {}
    for name, kind in get_type_hints(make).items():
        kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        literals = [each for each in kinds if get_origin(each) is Literal]
        if literals:
            values = get_args(literals[0])
            choices[name] = (*values, None) if NoneType in kinds else values
    return choices
