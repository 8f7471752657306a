"""Another revision beside this one, and requests of all kinds."""

import subprocess
from pathlib import Path

import pytest

from bench import revision
from bench.bundles import corpus_of
from bench.mixed import KINDS, LOTS, mixed_request
from bench.starts import Starts


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for words in (["init", "--quiet"], ["config", "user.email", "me@here"], ["config", "user.name", "me"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    for content in ("old", "new"):
        (folder / "file.txt").write_text(content)
        subprocess.run(["git", "add", "."], cwd=folder, check=True)
        subprocess.run(["git", "commit", "--quiet", "-m", content], cwd=folder, check=True)
    monkeypatch.setattr(revision, "PROJECT", folder)
    return folder


def test_a_revision_is_checked_out_beside_the_tree_which_stays_as_it_is(project: Path, tmp_path: Path) -> None:
    former = revision.check_out(tmp_path / "work", "HEAD~1")
    assert (former / "file.txt").read_text() == "old"
    assert (project / "file.txt").read_text() == "new"
    assert revision.check_out(tmp_path / "work", "HEAD~1") == former
    assert (revision.check_out(tmp_path / "work", "HEAD") / "file.txt").read_text() == "new"


def test_a_revision_that_does_not_exist_is_one_line(project: Path, tmp_path: Path) -> None:
    with pytest.raises(
        SystemExit, match=r"^--against: found 'v99', expected a commit, branch or tag of this checkout$"
    ):
        revision.check_out(tmp_path / "work", "v99")


def test_starts_are_compared_in_pairs() -> None:
    assert Starts(init=[100.0, 300.0, 210.0]).times_as_long_as(Starts(init=[200.0, 200.0, 200.0])) == 1.05


def test_the_corpus_of_a_bundle_is_beside_it() -> None:
    assert corpus_of(Path("work") / "headlines-30000") == Path("work") / "headlines-30000.csv"


def test_mixed_requests_are_of_every_mode_with_filters_and_without() -> None:
    bodies = [mixed_request(number, ["a", "b"]) for number in range(2 * len(KINDS))]
    assert {body["mode"] for body in bodies} == {"semantic", "keyword", "hybrid"}
    kinds = {(body["mode"], str(body.get("filter"))) for body in bodies}
    assert len(kinds) == 9
    assert {limit for _, limit in kinds} == {"None", f"{{'lot': {{'$lt': {LOTS // 2}}}}}", "{'lot': {'$lt': 1}}"}
    assert {body["text"] for body in bodies} == {"a", "b"}
