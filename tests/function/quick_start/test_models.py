"""What pydantic is spared while FastAPI is imported comes back afterwards."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from function.quick_start.models import deferred_models


def test_a_model_made_inside_is_built_at_its_first_use_and_one_made_outside_at_once() -> None:
    with deferred_models():

        class Inside(BaseModel):
            number: int

    class Outside(BaseModel):
        number: int

    assert not Inside.__pydantic_complete__
    assert Outside.__pydantic_complete__
    assert Inside.model_validate({"number": "5"}).number == 5
    assert Inside.__pydantic_complete__


def test_models_are_built_at_once_again_after_an_error() -> None:
    with pytest.raises(RuntimeError, match="stopped"), deferred_models():
        raise RuntimeError("stopped")
    assert "defer_build" not in BaseModel.model_config


TYPED_DICTS = """
import json
from function.quick_start.models import import_core_schema
import_core_schema()
import pydantic_core.core_schema as core
print(json.dumps([
    hasattr(core.IntSchema, "__required_keys__"),
    core.int_schema(ge=1),
    core.CoreConfig(title="a"),
    hasattr(__import__("pydantic").ConfigDict, "__required_keys__"),
    __import__("pydantic").TypeAdapter(__import__("pydantic_core").ErrorDetails).json_schema()["title"],
]))
"""


def test_core_schemas_are_plain_dicts_and_pydantics_own_typed_dicts_are_whole(
    in_a_new_process: Callable[..., Any],
) -> None:
    found = in_a_new_process(TYPED_DICTS)
    assert found == [False, {"type": "int", "ge": 1}, {"title": "a"}, True, "ErrorDetails"]


def test_typed_dicts_are_pythons_own_again(in_a_new_process: Callable[..., Any]) -> None:
    script = """
import json, typing, typing_extensions
before = typing.TypedDict, typing_extensions.TypedDict
from function.quick_start.models import import_core_schema
import_core_schema()
print(json.dumps(before == (typing.TypedDict, typing_extensions.TypedDict)))
"""
    assert in_a_new_process(script) is True
