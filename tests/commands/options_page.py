"""The pages docs/options.md and docs/search-options.md: the options of `index` and of a search.

They are read from the signatures and docstrings of `index` and `Search.search`.
"""

from collections.abc import Callable, Iterator
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import Parameter as Option
from docstring_parser import parse

from semsearch.client.search import Search
from semsearch.commands.query import PANELS, options_of_search
from semsearch.indexing.make import index
from semsearch.indexing.options import options_of

INTRODUCTION = """\
# Options of an index

`semsearch index` and `semsearch.index` in Python have the same options. An option of the command has hyphens where that
of Python has underscores: `text_column` is `--text-column`.

An index in `out` is updated with the options that it was made with; those that are stated replace them.
"""
OF_SEARCH = """\
# Options of a search

`Search.search` in Python and `semsearch query` in the shell have the same options. They are fields of
[`POST /similar`](api.md#routes), where `top_k` is `num_results`, and `rerank=20` is `"rerank": {"candidates": 20}`.
[api.md](api.md#pages-groups-facets-and-highlights) says which can be combined, and in which modes each has an effect.
"""


def options_page() -> str:
    """Return the page of `index`, in Markdown."""
    return INTRODUCTION + "".join(_tables())


def search_page() -> str:
    """Return the page of a search, in Markdown."""
    return OF_SEARCH + "".join(_search_tables())


def _search_tables() -> Iterator[str]:
    sentences = _sentences(Search.search)
    kinds = get_type_hints(Search.search)
    for option in options_of_search():
        if option.name in PANELS:
            title = PANELS[option.name].name
            yield f"\n## {title}\n\n| Python | Shell | Default | Meaning |\n|---|---|---|---|\n"
        names = [each.name for each in option.annotation.__metadata__ if isinstance(each, Option) and each.name]
        (shell,) = names[0] if names else (f"--{option.name.replace('_', '-')}",)
        default = _default(option, kinds[option.name])
        yield f"| `{option.name}` | `{shell}` | {default} | {sentences[option.name]} |\n"


def _sentences(function: Callable[..., Any]) -> dict[str, str]:
    """Return what a docstring says of each argument, as a cell of a table holds it."""
    described = {each.arg_name: each.description or "" for each in parse(function.__doc__ or "").params}
    return {name: " ".join(sentence.split()).replace("|", "\\|") for name, sentence in described.items()}


def _tables() -> Iterator[str]:
    sentences = _sentences(index)
    kinds = get_type_hints(index)
    parameters = signature(index).parameters
    group = None
    for name, option in options_of(index).items():
        if option.topic != group:
            group = option.topic
            yield _heading(group)
        sentence = sentences[name]
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
    if isinstance(parameter.default, tuple):
        return ", ".join(f"`{value}`" for value in parameter.default)
    return f"`{parameter.default}`"


if __name__ == "__main__":
    Path("docs/options.md").write_text(options_page(), encoding="utf-8")
    Path("docs/search-options.md").write_text(search_page(), encoding="utf-8")
