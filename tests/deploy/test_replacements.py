"""Replaced modules act as the libraries' own wherever a request could see them."""

import ast
import importlib.util
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from function.image.build_archive import LAZY, LAZY_STUB, REWRITTEN, ReplacementError, compile_module
from semsearch.app.routes.body_schemas import BODY_SCHEMAS
from semsearch.search.request import SimilarRequest
from tests.function.events.event_makers import http_api

LIBRARIES = {name for name in REWRITTEN if not name.startswith("semsearch.")}  # with rewritten modules
LIBRARY = """
import sys
runs.append(1)
if len(runs) == 1:
    raise OSError("cannot be read")
try:
    sys.modules[__name__].later
except AttributeError as error:
    early = str(error)
later = 1
"""


@pytest.fixture
def lazy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A lazy module, whose code fails the first time and is counted in `runs`."""
    module: Any = ModuleType("hashlib")
    module.runs = []
    module.__loader__ = SimpleNamespace(original_code=lambda name: compile(LIBRARY, name, "exec"))
    monkeypatch.setitem(sys.modules, "hashlib", module)
    exec(compile_module("hashlib", LAZY_STUB), vars(module))
    return module


def test_a_lazy_module_runs_when_it_is_asked_for_something_and_is_then_the_library(lazy: Any) -> None:
    ask = lazy.__getattr__  # which another thread can have called
    assert (hasattr(lazy, "__path__"), lazy.runs) == (False, [])
    with pytest.raises(OSError, match="cannot be read"):
        ask("later")
    assert (lazy.later, ask("later"), lazy.runs) == (1, 1, [1, 1])
    assert lazy.early == "partially initialized module 'hashlib' has no attribute 'later'"
    assert "__getattr__" not in vars(lazy)
    with pytest.raises(AttributeError, match="module 'hashlib' has no attribute 'nothing'"):
        ask("nothing")


def test_a_lazy_module_keeps_the_way_in_which_the_library_finds_its_names(lazy: Any) -> None:
    code = compile("def __getattr__(name): return name * 2\none = 1", "hashlib", "exec")
    lazy.__loader__.original_code = lambda name: code
    assert (lazy.one, lazy.ab) == (1, "abab")


def test_threads_that_ask_a_lazy_module_at_once_find_it_whole(lazy: Any) -> None:
    code = compile("import time; runs.append(1); time.sleep(0.01); last = 1", "hashlib", "exec")
    lazy.__loader__.original_code = lambda name: code
    with ThreadPoolExecutor(8) as threads:
        assert [*threads.map(lambda name: getattr(lazy, name), ["last"] * 8)] == [1] * 8
    assert lazy.runs == [1]


START = """
import json, sys
import function.handler
from function.image.build_archive import LAZY
stubs = [name for name in LAZY if "__lazy_stub__" in vars(sys.modules.get(name, json))]
run = [name for name in stubs if vars(sys.modules[name]).get("__getattr__") is not sys.modules[name].__lazy_stub__]
search, info = (function.handler.handler(event, None)["statusCode"] for event in EVENTS)
assert (search, info) == (200, 200)
print(json.dumps([run, list(sys.modules)]))
"""
EVENTS = [http_api("POST", "/similar", '{"text": "angry goose"}'), http_api("GET", "/info", None)]


def test_every_lazy_module_is_imported_by_a_start_or_by_fastapi_and_a_start_runs_none(
    in_a_new_process: Callable[..., Any], shipped: Path, bundle: Path
) -> None:
    run, modules = in_a_new_process(START.replace("EVENTS", repr(EVENTS)), shipped, BUNDLE_DIR=str(bundle))
    assert set(LAZY) <= set(modules)
    assert run == []


def run_module(name: str, without: tuple[str, ...] = ()) -> ModuleType:
    """Return the module that the archive would make, beside the imported one."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None, origin=spec.origin)
    module.__package__ = name.rpartition(".")[0]
    exec(compile_module(name, Path(spec.origin), without), module.__dict__)
    return module


def test_pydantics_schemas_are_plain_dicts_of_the_same_content() -> None:
    import pydantic_core.core_schema as own

    replaced = run_module("pydantic_core.core_schema")
    assert replaced.IntSchema.__mro__ == (replaced.IntSchema, dict, object)
    assert replaced.int_schema(ge=1) == own.int_schema(ge=1)
    assert replaced.CoreConfig(title="a") == own.CoreConfig(title="a")


def test_the_finished_schemas_of_bodies_are_those_of_the_models() -> None:
    finished = run_module("semsearch.app.routes.body_schemas")
    assert not {"pydantic", "BODY_MODELS"} & vars(finished).keys()
    assert finished.BODY_SCHEMAS == BODY_SCHEMAS


@pytest.mark.parametrize("value", [object(), (1, 2), b"1"], ids=["object", "tuple", "bytes"])
def test_a_schema_that_cannot_be_written_stops_the_build(monkeypatch: pytest.MonkeyPatch, value: object) -> None:
    monkeypatch.setitem(BODY_SCHEMAS, "/similar", {"default": [value]})
    with pytest.raises(ReplacementError, match=r"body_schemas: .* cannot be written as a literal"):
        rewritten("semsearch.app.routes.body_schemas", "")


def test_linear_algebra_works_without_the_types_for_checkers() -> None:
    solve = run_module("numpy.linalg._linalg").solve
    np.testing.assert_array_equal(solve(np.eye(2), np.array([1.0, 2.0])), [1.0, 2.0])


# Prints whether a model of the OpenAPI document is built, before it is made and then, and pydantic's version 1 is
# imported; and the document.
DOCUMENT = """
import json, sys
from types import SimpleNamespace
from function.handler import handler
def body(event):
    reply = handler(event, SimpleNamespace(aws_request_id="a"))
    assert reply["statusCode"] == 200, reply
    return reply["body"]
body(TOOLS)
model = sys.modules["fastapi.openapi.models"].OpenAPI
before, has_version_1 = model.__pydantic_complete__, "pydantic.v1.main" in sys.modules
document = body(OPENAPI)
print(json.dumps([before, model.__pydantic_complete__, has_version_1, document]))
"""


def test_the_models_of_openapi_are_built_for_the_document_alone_which_is_the_same(
    in_a_new_process: Callable[..., Any], shipped: Path, bundle: Path
) -> None:
    tools = http_api("POST", "/mcp", '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}')
    script = DOCUMENT.replace("TOOLS", repr(tools)).replace("OPENAPI", repr(http_api("GET", "/openapi.json", None)))
    *replaced, document = in_a_new_process(script, shipped, BUNDLE_DIR=str(bundle))
    *own, expected = in_a_new_process(script, BUNDLE_DIR=str(bundle))
    assert (replaced, own) == ([False, True, False], [True, True, True])
    assert json.loads(document) == json.loads(expected)
    assert "/similar" in json.loads(document)["paths"]


def test_no_class_is_a_model_of_pydantics_version_1() -> None:
    assert not issubclass(SimilarRequest, run_module("pydantic.v1").BaseModel)


def test_models_are_deferred_and_not_rebuilt() -> None:
    source = "from pydantic import BaseModel\n{}class A(BaseModel):\n    a: int\n{}x = 1"
    lazy = source.format("class BaseModel(BaseModel, defer_build=True):\n    pass\n", "")
    built = source.format("", "A.model_rebuild()\n")
    assert rewritten("fastapi.openapi.models", built) == ast.unparse(ast.parse(lazy))
    for changed in (source.format("", ""), "A.model_rebuild()"):
        with pytest.raises(ReplacementError, match="builds no models"):
            rewritten("fastapi.openapi.models", changed)


def rewritten(name: str, source: str) -> str:
    """Return a source as the replacement of a module changes it."""
    tree = ast.parse(source)
    REWRITTEN[name][1](tree)
    return ast.unparse(tree)


def test_only_typed_dicts_and_the_imports_of_types_are_changed() -> None:
    typed = "\n".join(f"class A{number}(TypedDict, total=False): pass" for number in range(50))
    others = "\nx = 1\nclass B(other.Base, metaclass=M): pass\nclass C(A1): pass"
    expected = ast.unparse(ast.parse(typed.replace("TypedDict, total=False", "dict") + others))
    assert rewritten("pydantic_core.core_schema", typed + others) == expected
    imports = "import numpy\nfrom numpy._typing import NDArray\nfrom numpy import where\nx = 1"
    assert rewritten("numpy.linalg._linalg", imports) == (
        "from __future__ import annotations\nimport numpy\nfrom numpy import where\nx = 1"
    )
    with pytest.raises(ReplacementError, match="has few TypedDicts"):
        rewritten("pydantic_core.core_schema", typed.partition("\nclass A49")[0])


def test_a_replacement_can_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "library.py"
    file.write_text("found = 1", encoding="utf-8")
    kinds = {name: kind for name, (kind, _) in REWRITTEN.items()} | {"hashlib": "lazy", "geese": ""}
    for name, kind in kinds.items():
        code = compile_module(name, file, (kind,))
        assert (code.co_names, code.co_filename) == (("found",), str(file))
    assert "run_snippet" in compile_module("dataclasses", file).co_names
    assert "__getattr__" in compile_module("hashlib", file, ("dataclasses",)).co_names


@pytest.mark.parametrize("name", sorted(LIBRARIES - {"dataclasses"}))  # which only gets a line more
def test_a_library_that_changed_under_a_replacement_stops_the_build(name: str) -> None:
    _, change = REWRITTEN[name]
    with pytest.raises(ReplacementError, match=name.partition(".")[0]):
        change(ast.parse("x = 1"))
