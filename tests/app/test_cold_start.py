"""The phases of a start, which the next request reports."""

from semsearch.app.cold_start import ColdStart


def test_the_phases_of_a_start_are_taken_once_and_those_of_a_restore_replace_them() -> None:
    cold_start = ColdStart(lambda phases: None)
    assert (cold_start.is_over, cold_start.archive, cold_start.phases) == (False, "not opened yet", {})
    cold_start.end({"model": 1.0})
    assert (cold_start.is_over, cold_start.take(), cold_start.take()) == (True, {"model": 1.0}, {})
    cold_start.end({"model": 2.0})
    cold_start.begin()
    assert (cold_start.is_over, cold_start.take(), cold_start.phases) == (False, {}, {"model": 2.0})
