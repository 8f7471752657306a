"""The table of promises. Its rows are read from the models of requests and from the parameters of routes.

docs/api.md says in which modes a field has an effect.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from semsearch.app.routes.documents import add_documents
from semsearch.app.routes.fields import ClientRequest
from semsearch.engine.metadata.filters import OPERATORS
from semsearch.search.request import SimilarRequest, StrictRequest
from tests.app.routes.test_limits import models_below
from tests.project import ROOT
from tests.promises.geese import MODES, ORDERS

OTHER = "other"  # column of the examples without a mode
COLUMNS = (*ORDERS, OTHER)
HOLE = "**none**"
PAGE = ROOT / "tests" / "promises" / "README.md"
INTRODUCTION = """\
# Promises

`python -m tests.promises.table` writes this page: how many plain examples each field of a request has. An example is a
test with the marker `promise` and the name of the field. Its parameter `mode` is its column: a mode, `id` for texts
similar to another one, or `listing` for a search without both. A field without an example where it has an effect fails
a test.
"""
Counts = Counter[tuple[str, str]]  # number of examples by the name of the field and the column


def count_examples() -> Counts:
    """Collect the examples of all tests, and count them."""
    files = [str(path) for path in (ROOT / "tests").rglob("test_*.py") if "mark.promise(" in path.read_text("utf-8")]
    counts = Counts()

    class Counting:
        def pytest_collection_finish(self, session: pytest.Session) -> None:
            for item in session.items:
                mode = item.callspec.params.get("mode") if hasattr(item, "callspec") else None
                column = str(mode) if mode in COLUMNS else OTHER
                counts.update({(name, column) for marker in item.iter_markers("promise") for name in marker.args})

    with redirect_stdout(StringIO()) as output:
        status = pytest.main(["--collect-only", "--assert=plain", "-p", "no:cacheprovider", *files], [Counting()])
    assert status == pytest.ExitCode.OK, output.getvalue()
    return counts


def columns_of(field: str) -> list[str]:
    """Return the columns in which a field of a search has an effect."""
    if field in ("text", "id"):
        return [*MODES]
    rows = (
        (ROOT / "docs" / "api.md").read_text("utf-8").partition("| field | has an effect |\n")[2].partition("\n\n")[0]
    )
    effect = re.search(rf"^\| .*`{field}`.* \| (.*?)[;|]", rows, re.MULTILINE)
    named = re.findall(r"`(\w+)`", effect[1]) if effect else []
    if named == ["group_by"]:
        return columns_of("group_by")
    columns = [mode for mode in MODES if mode in named or not {*MODES} & {*named}]
    return columns + ["id"] * ("text" not in named or "id" in named) + ["listing"] * ("text" not in named)


def other_fields() -> Iterator[str]:
    """Yield the fields of other routes and of tools, those of objects in requests, and the parameters of addresses."""
    import_module("semsearch.app.fastapi_app")  # it imports all models
    for model in models_below(StrictRequest, ClientRequest):
        if not issubclass(model, SimilarRequest) and not model.__subclasses__():
            yield from (f"{model.__name__}.{field}" for field in model.model_fields)
    unused: Any = None
    add_documents(app := FastAPI(), unused, unused, unused)
    for route in (each for each in app.routes if isinstance(each, APIRoute)):
        for parameter in (*route.dependant.path_params, *route.dependant.query_params):
            yield f"{route.path.partition('/{')[0]} {parameter.name}"


def page(counts: Counts) -> str:
    """Return the page in Markdown. Where an example is missing, it has HOLE."""
    wanted = {field: columns_of(field) for field in SimilarRequest.model_fields}
    others = [*(f"filter.{operator}" for operator in (*OPERATORS, "$and", "$or", "$not")), *other_fields()]
    lines = [INTRODUCTION, f"| field | {' | '.join(COLUMNS)} |", "|---" * (1 + len(COLUMNS)) + "|"]
    for name in dict.fromkeys([*wanted, *others, *sorted(name for name, _ in counts)]):
        missing = wanted.get(name, [OTHER] * (not any(counts[name, column] for column in COLUMNS)))
        cells = [str(counts[name, column] or (HOLE if column in missing else "-")) for column in COLUMNS]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(count_examples()), encoding="utf-8")
