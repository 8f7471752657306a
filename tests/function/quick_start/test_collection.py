"""No garbage is collected while importing, and what is there afterwards is left alone."""

import gc
from collections.abc import Iterator

import pytest

from function.quick_start.collection import no_collection


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """Leave the collector as it was found."""
    yield
    gc.unfreeze()
    gc.enable()


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
