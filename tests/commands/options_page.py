"""The page docs/options.md: all options of `index`, read from its signature and docstring."""

from collections.abc import Iterator
from inspect import Parameter, signature
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

from docstring_parser import parse

from semsearch.indexing.make import index
from semsearch.indexing.options import options_of

INTRODUCTION = """\
# Options of an index

`semsearch index` and `semsearch.index` in Python have the same options. An option of the command has hyphens where that
of Python has underscores: `text_column` is `--text-column`.

An index in `out` is updated with the options that it was made with; those that are stated replace them.
"""


def options_page() -> str:
    """Return the page, in Markdown."""
    return INTRODUCTION + "".join(_tables())


def _tables() -> Iterator[str]:
    sentences = {each.arg_name: each.description or "" for each in parse(index.__doc__ or "").params}
    kinds = get_type_hints(index)
    parameters = signature(index).parameters
    group = None
    for name, option in options_of(index).items():
        if option.topic != group:
            group = option.topic
            yield _heading(group)
        sentence = " ".join(sentences[name].split()).replace("|", "\\|")
        python = ""
        if option.in_python_alone:
            python = " (in Python alone)"
        yield f"| `{name}` | {_default(parameters[name], kinds[name])} | {sentence}{python} |\n"


def _heading(group: str) -> str:
    return f"\n## {group}\n\n| Option | Default | Meaning |\n|---|---|---|\n"


def _default(parameter: Parameter, kind: object) -> str:
    """Return the default and the other values that an option can have."""
    if get_origin(kind) is Literal:
        others = [value for value in get_args(kind) if value != parameter.default]
        return f"`{parameter.default}`; or " + ", ".join(f"`{value}`" for value in others)
    if parameter.default in (Parameter.empty, None, "", ()) or callable(parameter.default):
        return ""
    return f"`{parameter.default}`"


if __name__ == "__main__":
    Path("docs/options.md").write_text(options_page(), encoding="utf-8")
