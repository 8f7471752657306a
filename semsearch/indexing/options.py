"""The options of `index`, read from its signature: an update uses the recorded ones again, wrong values are refused.

The signature says all of an option: its name, its type and its default, and with `Annotated` an Option and the
functions of option_values.py that its value passes. The docstring has its sentence.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, is_dataclass
from enum import StrEnum
from functools import cache, wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from semsearch.engine.bundle import BY_MODEL, BundleError, find_corpus, is_bundle, read_manifest
from semsearch.engine.errors import OptionError
from semsearch.indexing.argument_names import argument_names, naming_arguments
from semsearch.indexing.progress import WaitingProgress, chosen_progress
from semsearch.indexing.replacing import finish_stopped, require_free, when_free

P = ParamSpec("P")
Returned = TypeVar("Returned")
Options = TypeVar("Options")
Arguments = Mapping[str, Any]
Form = Literal["PATH", "FILE", "COLUMN", "SECONDS", "NAME=TYPE", "NAME=TEXT", "JSON"]


class Topic(StrEnum):
    """What options are about: their headings in a help and on a page."""

    PLACES = "Places"
    TEXTS = "Texts"
    DOCUMENTS = "Documents and long texts"
    KEYWORDS = "Keywords and ranking"
    MODEL = "Model"
    RERANKER = "Reranker and query table"
    RUN = "How it runs"


@dataclass(frozen=True, slots=True)
class Option:
    """An option of `index`: what its name, its type and its default do not say."""

    topic: Topic
    _: KW_ONLY
    # Whether a manifest records the option, if it differs from its default: an update uses it again. Others are places,
    # models, which an update takes from the bundle, and what is about one call alone.
    recorded: bool
    adds: bool = False  # whether a stated mapping is added to the recorded one
    without: str = ""  # if the option with this name is False, the recorded value of this one is not used again
    needs: str = ""  # the option without which this one has no effect
    can_be_older: bool = False  # whether what it needs can also be in the older bundle
    converts: tuple[str, ...] = ()  # options of which an update needs one too: it names the model to convert
    # Whether it needs a model, which an index of embeddings that were made elsewhere does not have. It is True for all
    # options of the topics MODEL and RERANKER, but for embedded_by.
    embeds: bool = False
    form: Form | None = None  # how a command line has the value, if not as Python has it
    in_python_alone: bool = False
    flags: Mapping[str, str] = field(default_factory=dict)  # a flag of the command for each value, and its sentence

    @property
    def is_of_model(self) -> bool:
        """Whether it has no effect without a model."""
        return self.embeds or self.topic in (Topic.MODEL, Topic.RERANKER)


def options_of(index: Callable[..., object]) -> dict[str, Option]:
    """Return the Option of each parameter of `index`, in their order."""
    return {name: _metadata(index)[name][0] for name in inspect.signature(index).parameters}


def calling(
    make: Callable[[Any, Options], Returned], options: type[Options]
) -> Callable[[Callable[P, Returned]], Callable[P, Returned]]:
    """Return a decorator of `index`. The decorated function has its signature and docstring, and calls `make`.

    `make` gets the first argument, and all others as the dataclass `options`: see `gather`. With the option `wait`, it
    is called again while another process writes into the index, with the options that the index then records.
    """

    def calling_make(index: Callable[P, Returned]) -> Callable[P, Returned]:
        @wraps(index)
        def call(*positional: P.args, **named: P.kwargs) -> Returned:
            def run(**changed: Any) -> Returned:
                arguments = all_options(index, *positional, **named) | changed
                return make(arguments["data"], _gather_all(index, options, arguments))

            with naming_arguments(names_of_arguments(index)):
                stated = inspect.signature(index).bind(*positional, **named).arguments
                seconds = _passed(index, "wait", stated.get("wait", 0))
                if not seconds:
                    return run()
                with chosen_progress(stated.get("progress", True)) as on_progress:
                    waiting = WaitingProgress(on_progress)
                    return when_free(lambda: run(progress=waiting), seconds, waiting.wait)

        return call

    return calling_make


@cache
def names_of_arguments(index: Callable[..., object]) -> dict[str, str]:
    """Return what Python has in place of each option of the command, such as `mode="add"` for --add."""
    flags = {flag: f'{name}="{flag}"' for name, option in options_of(index).items() for flag in option.flags}
    return argument_names(index) | flags


def options_for(index: Callable[..., object], options: type[Options], **stated: Any) -> Options:
    """Return the options of a call of `index` that has no texts of its own."""
    return _gather_all(index, options, all_options(index, None, **stated))


def _gather_all(index: Callable[..., object], options: type[Options], arguments: Arguments) -> Options:
    own = {"recorded": content_options(index, arguments), "argument_names": names_of_arguments(index)}
    return gather(options, {**arguments, **own})


def recorded_options(folder: Path) -> dict[str, Any] | None:
    """Return the options that the index in a folder records, None if there is none."""
    info = find_corpus(folder)
    return None if info is None else dict(info.options)


def all_options(index: Callable[P, object], *positional: P.args, **named: P.kwargs) -> dict[str, Any]:
    """Return all options of a call of `index`: the stated ones, else those of the older bundle, else the defaults.

    The older bundle is the one of the option `update`, or else the one that is in `out` already.
    Raises OptionError for a wrong value, and for an option that has no effect, and BusyError if another process is
    replacing the older bundle.
    """
    signature = inspect.signature(index)
    stated = signature.bind(*positional, **named).arguments
    out = Path(stated.get("out", signature.parameters["out"].default))
    if stated.get("update") is None:
        finish_stopped(out)
        stated["update"] = out if is_bundle(out) else None
    options = options_of(index)
    try:
        recorded = _recalled(stated, options)
        recorded_before = recorded_options(out)
        maker = _find_maker(index, stated)
    except BundleError:
        require_free(out)  # another process can be moving its files
        raise
    if maker is not None:
        _refuse_model(index, stated, maker)
        stated["embedded_by"] = maker
    _check_effects(stated, options)
    for name, option in options.items():
        if option.adds and name in stated:
            stated[name] = {**recorded.get(name, {}), **(stated[name] or {})}
    return {**_with_defaults(index, recorded | stated), "recorded_before": recorded_before}


def new_options(index: Callable[..., object], stated: Arguments) -> dict[str, Any]:
    """Return all options where there is no older bundle. Raises OptionError as `all_options` does."""
    _check_effects({**stated, "update": None}, options_of(index))
    return _with_defaults(index, stated)


def _with_defaults(index: Callable[..., object], stated: Arguments) -> dict[str, Any]:
    """Return all options in the form that a manifest records. Raises OptionError for wrong values."""
    parameters = inspect.signature(index).parameters
    found = {name: _passed(index, name, stated.get(name, each.default)) for name, each in parameters.items()}
    _check_together(found)
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


def content_options(index: Callable[..., object], arguments: Arguments) -> dict[str, Any]:
    """Return the arguments of `index` that its manifest records: those that change what is in the bundle.

    arguments has every parameter of `index`. Options with their default value are left out.
    """
    recorded = {}
    parameters = inspect.signature(index).parameters
    for name, option in sorted(options_of(index).items()):
        if option.recorded and arguments[name] != _passed(index, name, parameters[name].default):
            recorded[name] = arguments[name]
    return recorded


def _recalled(stated: Arguments, options: Mapping[str, Option]) -> dict[str, Any]:
    """Return the options that the older bundle records, except those that the stated ones contradict."""
    if stated["update"] is None:
        return {}
    try:
        info = read_manifest(Path(stated["update"])).corpus_or_none
    except BundleError as error:
        error.add_note("without this folder, the texts are indexed anew; state all options then")
        raise
    if info is None:
        return {}
    contradicted = {name for name, option in options.items() if stated.get(option.without) is False}
    first, *others = str(info.options.get("text_column", "")).split(",")
    if "text_column" in stated and others and info.options.get("title_column") == first:  # nobody has stated it
        contradicted.add("title_column")
    return {name: value for name, value in info.options.items() if name not in contradicted}


@cache
def _metadata(index: Callable[..., object]) -> dict[str, tuple[Any, ...]]:
    """Return the metadata of each parameter: its Option, and the functions that its value passes."""
    hints = get_type_hints(index, include_extras=True)
    return {name: kind.__metadata__ for name, kind in hints.items() if get_origin(kind) is Annotated}


def _passed(index: Callable[..., object], name: str, value: Any) -> Any:
    """Return an option in the form that a manifest records. Raises OptionError for a value that it cannot have."""
    choices = _choices(index)[name]
    if choices and value not in choices:
        known = ", ".join(str(each) for each in choices if each is not None)
        raise OptionError(name, f"found {value!r}, expected one of {known}")
    for function in _metadata(index)[name][1:]:
        try:
            value = function(value)
        except ValueError as error:
            raise OptionError(name, str(error)) from error
    return value


@cache
def _choices(index: Callable[..., object]) -> dict[str, tuple[object, ...]]:
    """Return the values of each parameter whose type is a Literal, or a Literal or None; nothing for others."""
    choices = {}
    for name, kind in get_type_hints(index).items():
        kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        values = [value for each in kinds if get_origin(each) is Literal for value in get_args(each)]
        choices[name] = (*values, None) if values and NoneType in kinds else tuple(values)
    return choices


def _find_maker(index: Callable[..., object], stated: Arguments) -> str | None:
    """Return what makes the embeddings of an index without a model: the stated word, or that of the older bundle.

    Return None for an index with a model. Raises OptionError if the older bundle has embeddings of something else.
    """
    maker, update = _passed(index, "embedded_by", stated.get("embedded_by")), stated["update"]
    if update is None:
        return None if maker is None else str(maker)
    manifest = read_manifest(Path(update))
    older, remedy = manifest.model.name, "make a new index in another folder"
    if manifest.has_model:
        if maker is not None:
            raise OptionError("embedded_by", f"found {maker!r}, and {update} has the model {older}; {remedy}")
        return None
    if stated.get("model") is not None:
        raise OptionError("model", f"{update} has no model, and embeddings by {older}; {remedy}")
    if maker not in (None, older):
        expected = f"{older!r}, which made the embeddings in {update}"
        raise OptionError("embedded_by", f"found {maker!r}, expected {expected}; {remedy}")
    return older


def _refuse_model(index: Callable[..., object], stated: Arguments, maker: str) -> None:
    """Raise OptionError for a stated option of a model, which an index of embeddings by `maker` does not have."""
    parameters = inspect.signature(index).parameters
    for name, option in options_of(index).items():
        if not option.is_of_model or name == "embedded_by":
            continue
        if stated.get(name, parameters[name].default) != parameters[name].default:
            raise OptionError(name, f"is for a model, and an index of embeddings by {maker} has none; leave it out")


def _check_effects(stated: Arguments, options: Mapping[str, Option]) -> None:
    """Raise OptionError for a stated option that has no effect beside the others."""
    keeps_model = stated["update"] is not None and stated.get("model") is None
    for name, option in options.items():
        if stated.get(name) is None:
            continue
        if keeps_model and option.converts and all(stated.get(other) is None for other in option.converts):
            raise OptionError(name, "is for a new model, and the one of the index is kept; name a model too")
        is_older = option.can_be_older and keeps_model
        if option.needs and stated.get(option.needs) is None and not is_older:
            raise OptionError(name, f"has no effect without {option.needs}; add it")


def _check_together(arguments: Arguments) -> None:
    """Raise OptionError for values that do not fit together."""
    overlap, tokens = arguments["overlap"], arguments["passage_tokens"]
    if overlap >= tokens:
        raise OptionError("overlap", f"found {overlap}, expected less than passage_tokens, {tokens}")
    if arguments["queries"] == BY_MODEL and (arguments["questions"] is not None or arguments["learn"]):
        name = "learn" if arguments["learn"] else "questions"
        raise OptionError(name, "is for a query table; add queries=table")
    device, dtype = arguments["device"], arguments["dtype"]
    if device == "cpu" and dtype == "float16":
        raise OptionError("dtype", "float16 is for a GPU; choose float32, or add --device cuda")
    if device != "cpu" and dtype == "int8":
        raise OptionError("dtype", "int8 is for the processor; choose float16 or float32, or leave the device out")
    maker, mode = arguments["embedded_by"], arguments["mode"]
    if maker is not None and mode in ("add", "upsert") and arguments["embeddings"] is None:
        raise OptionError("embeddings", f"found none, expected a row by {maker} for each row that mode {mode} takes")
    if arguments["embeddings"] is not None:
        for name in ("split", "ray", "dtype"):
            if arguments[name]:
                raise OptionError(name, "has no effect with embeddings, which are those of whole rows; leave it out")
        if device != "cpu":
            raise OptionError("device", "has no effect with embeddings; leave it out")
