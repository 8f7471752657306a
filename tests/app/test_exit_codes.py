"""How the end of a process is told."""

import pytest

from semsearch.app.exit_codes import how_it_ended


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (None, "ended with exit code None"),
        (0, "ended with exit code 0"),
        (3, "ended with exit code 3"),
        (-1, "was ended by the signal SIGHUP"),
        (-9, "was ended by the signal SIGKILL"),
        (-200, "was ended by signal 200"),
    ],
)
def test_a_signal_is_named(code: int | None, expected: str) -> None:
    assert how_it_ended(code) == expected
