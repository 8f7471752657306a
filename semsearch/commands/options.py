"""Options that several commands share, for cyclopts, and commands whose options are made of a signature."""

import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import App, Parameter, Token
from cyclopts.validators import Number

from semsearch.engine.errors import OptionError


def _shown_default(value: object) -> str | None:
    """Return a default as a help shows it, None for an option that is off, empty or left out."""
    if value in (None, False, (), ""):
        return None
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value)


# how each program of this package reads options and shows its help
LOOK: dict[str, Any] = {
    "help_format": "markdown",
    # if an option is repeated, its last value counts
    "default_parameter": Parameter(
        negative_iterable=(), negative_none=(), show_default=_shown_default, allow_repeating=True
    ),
}
EXAMPLE_FILTER = "'{\"year\": 2014}'"


def json_objects(kind: object, tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Return the objects of JSON of an option that can be repeated. Raises ValueError for all else."""
    found = []
    for token in tokens:
        try:
            value = json.loads(token.value)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"not JSON: {error}; expected such as {EXAMPLE_FILTER}") from error
        if not isinstance(value, dict):
            raise ValueError(f"expected an object of JSON, such as {EXAMPLE_FILTER}")
        found.append(value)
    return found


def json_object(kind: object, tokens: Sequence[Token]) -> dict[str, Any]:
    """Return the object of JSON that an option has. Raises ValueError for all else."""
    return json_objects(kind, tokens)[-1]


def _refuse_blank(kind: object, texts: Sequence[str]) -> None:
    if any(not text.strip() for text in texts):
        raise ValueError("expected words, not a blank text")


AS_JSON = Parameter(converter=json_object, n_tokens=1, accepts_keys=False, metavar="JSON")
SEVERAL_JSON = Parameter(converter=json_objects, n_tokens=1, accepts_keys=False, json_list=False, metavar="JSON")
JsonObjects = Annotated[Sequence[dict[str, Any]], SEVERAL_JSON]
JsonObject = Annotated[dict[str, Any], AS_JSON]
Share = Annotated[float, Parameter(validator=Number(gte=0, lte=1))]
NotBlank = Annotated[Sequence[str], Parameter(validator=_refuse_blank)]
Positive = Annotated[int, Parameter(validator=Number(gte=1))]


SEVERAL_LINES = Parameter(metavar="NAME=TEXT")


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class FolderOptions:
    """What an index has of the documents of its folders. The options of `index` of these names do the same.

    Args:
        exclude: leave out documents whose path ends in this form, such as secrets/*; can be repeated.
        include: read files of other suffixes too, as plain text, whose path ends in this form, such as *.py; can be
            repeated.
        describe: what one of several folders has, such as notes="minutes of meetings"; can be repeated.
    """

    exclude: Sequence[str] = ()
    include: Sequence[str] = ()
    describe: Annotated[Sequence[str], SEVERAL_LINES] = ()

    def __bool__(self) -> bool:
        """Return whether any is stated."""
        return bool(self.exclude or self.include or self.describe)

    def refuse(self, found: str) -> None:
        """Raise OptionError if one is stated, for what was found in place of a folder of documents."""
        for name in ("exclude", "include", "describe"):
            if getattr(self, name):
                expected = "expected a folder of documents; `semsearch index` has this option too"
                raise OptionError(name, f"found {found}, {expected}")


NONE_STATED = FolderOptions()


def lines_by_name(words: Iterable[str]) -> dict[str, str]:
    """Return what is said of folders, by their names, for words such as notes=minutes. An empty one says nothing.

    Raises OptionError for other words.
    """
    found = {}
    for word in filter(None, words):
        name, equals, line = word.partition("=")
        if not (name and equals):
            raise OptionError("describe", f"found {word!r}, expected NAME=TEXT, such as notes='minutes of meetings'")
        found[name] = line
    return found


def as_command(run: Callable[..., int | None], options: Iterable[inspect.Parameter], examples: str, name: str) -> App:
    """Return a command that calls a function with these options; its help is the function's docstring."""
    signature = inspect.Signature(list(options))
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: option.annotation for name, option in signature.parameters.items()}
    app = App(name, help_epilogue=examples, **LOOK)
    app.default(run)
    return app
