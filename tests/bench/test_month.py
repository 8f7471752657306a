"""The month of operation: what counts as a failure, and how old a reply's texts are, at times that are given."""

from pathlib import Path

import pytest

from bench.month import REVOKED_WITHIN, Operation, Reply, row

REVOKED = 100.0  # when the key of team-b was revoked
TEXTS = {"old": ["a", "b"], "new": ["a", "c"]}


@pytest.fixture
def month(tmp_path: Path) -> Operation:
    """A month in which `new` replaced `old` at 10, was rolled back at 20, and came again at 30."""
    month = Operation(tmp_path, [])
    month.published = TEXTS
    month.switches = [(0.0, "old"), (10.0, "new"), (20.0, "old"), (30.0, "new")]
    month.revoked_at = REVOKED
    return month


def reply(
    at: float, version: str = "new", key: str = "team-a", status: str = "200", hits: tuple[tuple[int, str], ...] = ()
) -> Reply:
    return Reply(at, at + 1.5, "server", key, status, version, list(hits))


@pytest.mark.parametrize(
    ("at", "version", "age"),
    [(5, "old", 0), (12, "old", 2), (12, "", 0), (23, "new", 3), (23, "old", 0), (34, "old", 4), (9, "new", 0)],
)
def test_texts_age_from_the_switch_that_replaced_them(month: Operation, at: float, version: str, age: float) -> None:
    assert month.age_of(reply(at, version)) == age


def test_a_reply_must_have_the_texts_of_its_version(month: Operation) -> None:
    assert month.failure_of(reply(1, "new", hits=((0, "a"), (1, "c")))) == ""
    assert month.failure_of(reply(1, "old", hits=((0, "a"), (1, "c")))) == "200 with a text of another version"
    assert month.failure_of(reply(1, status="503")) == "503"


def test_a_revoked_key_must_be_refused_in_time_and_no_other_key(month: Operation) -> None:
    late = REVOKED + REVOKED_WITHIN + 1
    assert month.failure_of(reply(late, key="team-b", status="401")) == ""
    assert month.failure_of(reply(REVOKED + 1, key="team-b")) == ""
    assert month.failure_of(reply(late, key="team-b")) == "200 for a revoked key"
    assert month.failure_of(reply(late, key="team-a", status="401")) == "401"
    assert month.failure_of(reply(REVOKED - 1, key="team-b", status="401")) == ""  # read while the request waited
    assert month.failure_of(reply(REVOKED - 2, key="team-b", status="401")) == "401"


def test_nights_are_added_up(month: Operation) -> None:
    night = {"number": 3, "title": "S3", "requests": 900, "oldest": 1.25, "server": 99.6, "function": 50.2}
    nights = [night | {"failures": {"503": 2}}, night | {"failures": {"503": 1}, "oldest": 2.0, "server": 120.0}]
    assert row(nights) == ("2 nights", "S3", "1,800", "3 x 503", "2.0 s", "100 to 120 MB", "50 MB")
