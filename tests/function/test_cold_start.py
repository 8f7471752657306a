"""A start is told of once, and again after each restore."""

from function.cold_start import ColdStart


def test_the_first_request_after_the_end_takes_the_phases() -> None:
    cold_start = ColdStart({}, print)
    assert cold_start.take() == {}
    cold_start.phases["imports"] = 5.0
    cold_start.end()
    assert [cold_start.take(), cold_start.take()] == [{"imports": 5.0}, {}]


def test_after_a_restore_it_is_told_again() -> None:
    cold_start = ColdStart({"imports": 5.0}, print)
    cold_start.end()
    cold_start.take()
    cold_start.begin()
    assert (cold_start.is_over, cold_start.take()) == (False, {})
    cold_start.end()
    assert cold_start.take() == {"imports": 5.0}
