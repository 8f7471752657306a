"""What makes imports quicker is undone when they are over, also after an error."""

import gc
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from function.quick_start import deferred_models, no_collection


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """Leave the collector as it was found."""
    yield
    gc.unfreeze()
    gc.enable()


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


def test_garbage_is_not_collected_inside() -> None:
    with no_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_garbage_is_collected_again_after_an_error() -> None:
    with pytest.raises(RuntimeError, match="stopped"), no_collection():
        raise RuntimeError("stopped")
    assert gc.isenabled()


def test_what_is_there_at_the_end_is_not_walked_through_again() -> None:
    gc.unfreeze()
    with no_collection():
        pass
    assert gc.get_freeze_count() > 1000
