"""Replaced modules act as the libraries' own wherever a request could see them."""

import ast
import importlib.util
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from function.image.build_archive import LAZY, REWRITTEN, ReplacementError, compile_module

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


START = """
import json, sys
import function.handler
print(json.dumps(list(sys.modules)))
"""


def test_every_lazy_module_is_one_that_a_start_imports(
    in_a_new_process: Callable[..., Any], shipped: Path, bundle: Path
) -> None:
    assert set(LAZY) <= set(in_a_new_process(START, shipped, BUNDLE_DIR=str(bundle)))


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
