"""The month of operation: what counts as a failure, and how old a reply's texts are, at times that are given."""

from pathlib import Path

import pytest

import bench.month
from bench.month import INCIDENTS, NIGHTS, REVOKED_WITHIN, Operation, Reply, row

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
    assert month.failure_of(reply(1, status="500")) == "500"
    assert month.failure_of(reply(1, status="503", key="team-b")) == "503 for team-b"


def test_a_reply_must_not_have_a_removed_text(month: Operation) -> None:
    month.removed, month.removed_at = [1], 50.0
    assert month.failure_of(reply(40, hits=((0, "a"), (1, "c")))) == ""
    assert month.failure_of(reply(60, hits=((0, "a"), (1, "c")))) == "200 with a removed text"
    assert month.failure_of(reply(60, hits=((0, "a"),))) == ""


def test_a_reply_must_not_be_from_a_version_that_all_had_left_before_the_request(month: Operation) -> None:
    month.followed = [8.0, 15.0]
    assert month.failure_of(reply(12, "old")) == ""  # some have not followed yet
    assert month.failure_of(reply(16, "old")) == "200 from a version that all had left"
    assert month.failure_of(reply(16, "new")) == ""
    assert month.failure_of(reply(22, "new")) == ""  # it was rolled back since
    assert month.failure_of(reply(33, "old")) == ""


def test_a_key_with_a_filter_must_find_only_the_texts_that_pass_it(month: Operation) -> None:
    assert month.failure_of(reply(1, hits=((1, "c"),))) == ""
    assert month.failure_of(reply(1, key="team-c", hits=((0, "a"),))) == ""
    assert month.failure_of(reply(1, key="team-c", hits=((1, "c"),))) == "200 with a text that the key must not find"


def test_all_have_followed_only_when_somebody_has_answered(month: Operation) -> None:
    assert month.has_followed([reply(40, "new"), reply(40, "", status="RemoteDisconnected")])
    assert not month.has_followed([reply(40, "new"), reply(40, "old")])
    assert not month.has_followed([reply(40, "", status="503")])


def test_a_revoked_key_must_be_refused_in_time_and_no_other_key(month: Operation) -> None:
    late = REVOKED + REVOKED_WITHIN + 1
    assert month.failure_of(reply(late, key="team-b", status="401")) == ""
    assert month.failure_of(reply(REVOKED + 1, key="team-b")) == ""
    assert month.failure_of(reply(late, key="team-b")) == "200 for a revoked key"
    assert month.failure_of(reply(late, key="team-a", status="401")) == "401"
    assert month.failure_of(reply(REVOKED - 1, key="team-b", status="401")) == ""  # read while the request waited
    assert month.failure_of(reply(REVOKED - 2, key="team-b", status="401")) == "401"


def test_nights_are_added_up_and_failures_by_design_are_counted_apart() -> None:
    night = {"number": 3, "title": "S3", "requests": 900, "oldest": 1.25, "server": 99.6, "function": 50.2}
    one = night | {"by_design": {"cut": 2}, "failures": {}}
    other = night | {"by_design": {"cut": 1}, "failures": {"503": 1, "404": 2}, "oldest": 2.0, "server": 120.0}
    cells = ("2 nights", "S3", "1,800", "3 x cut", "1 x 503, 2 x 404", "2.0 s", "100 to 120 MB", "50 MB")
    assert row([one, other]) == cells
    assert row([one])[3:5] == ("2 x cut", "0")


def test_the_month_has_as_many_nights_as_it_states() -> None:
    assert max(INCIDENTS) < NIGHTS
    assert f"{NIGHTS} nights of new texts, {len(INCIDENTS)} of them with an incident" in str(bench.month.__doc__)
