"""Replaced modules act as the libraries' own wherever a request could see them."""

import ast
import importlib.util
import json
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from deploy.replacements import LAZY, REWRITTEN, ReplacementError, compile_module
from function.archive import Archive

# a lazy module is the same module once it has been asked for something, whoever asks first
LAZY_MODULE = """
import json, sys
from function.archive import archive_status, use_archive
use_archive()
import html, threading
loader = type(html.__loader__).__module__
found = []
threads = [threading.Thread(target=lambda: found.append(html.escape)) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
from html import unescape
print(json.dumps([archive_status(), loader, len(set(map(id, found))), html.escape("<"),
                  hasattr(html, "nothing"), "__getattr__" in vars(html), unescape is html.unescape]))
"""


def test_a_lazy_module_runs_when_it_is_asked_for_something_and_is_then_the_library(
    in_a_new_process: Callable[..., Any], shipped: Path
) -> None:
    found = in_a_new_process(LAZY_MODULE, shipped)
    assert found == ["used", "function.archive", 1, "&lt;", False, False, True]


def test_every_lazy_module_is_one_that_a_start_imports(shipped: Path) -> None:
    archive = Archive(memoryview((shipped / "function" / "archive.bin").read_bytes()))
    assert [name for name in LAZY if name not in archive.modules] == []


OPENAPI = """
import json
from function.archive import use_archive
use_archive()
import fastapi.openapi.models as models
from fastapi import Depends, FastAPI
from fastapi.security import OAuth2PasswordBearer, APIKeyHeader
before = models.__real_module__ is None
app = FastAPI()
@app.get("/", dependencies=[Depends(OAuth2PasswordBearer("token")), Depends(APIKeyHeader(name="x"))])
def root() -> int:
    return 1
document = app.openapi()
contact = models.Contact(name="a")
print(json.dumps([before, document["components"], isinstance(contact, models.Contact), models.APIKeyIn.query.value]))
"""


def test_openapi_documents_and_security_schemes_are_those_of_fastapi(
    in_a_new_process: Callable[..., Any], shipped: Path
) -> None:
    before, components, is_example, place = in_a_new_process(OPENAPI, shipped)
    plain = OPENAPI.replace("use_archive()\n", "").replace("models.__real_module__ is None", "True")
    assert in_a_new_process(plain, shipped)[1] == components
    assert (before, is_example, place) == (True, True, "query")
    assert "OAuth2PasswordBearer" in json.dumps(components)


FIRST_PYDANTIC = """
import json, warnings
from function.archive import use_archive
use_archive()
import pydantic.v1
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pydantic warns where its first version is used with a newer Python
    model = pydantic.v1.create_model("Model", size=(int, ...))
print(json.dumps([model(size="3").size, issubclass(model, pydantic.v1.BaseModel)]))
"""


def test_pydantics_first_version_works_when_it_is_used_after_all(
    in_a_new_process: Callable[..., Any], shipped: Path
) -> None:
    assert in_a_new_process(FIRST_PYDANTIC, shipped) == [3, True]


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


def test_linear_algebra_works_without_the_types_for_checkers() -> None:
    solve = run_module("numpy.linalg._linalg").solve
    np.testing.assert_array_equal(solve(np.eye(2), np.array([1.0, 2.0])), [1.0, 2.0])


@pytest.mark.parametrize("name", sorted(REWRITTEN.keys() - {"dataclasses"}))  # which only gets a line more
def test_a_library_that_changed_under_a_replacement_stops_the_build(name: str) -> None:
    _, change = REWRITTEN[name]
    with pytest.raises(ReplacementError, match=name.partition(".")[0]):
        change(ast.parse("x = 1"))
