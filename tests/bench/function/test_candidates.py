"""Another revision beside this one."""

from pathlib import Path

import pytest

from bench.function import candidates
from tests.bench.repository import Repository


def test_a_revision_is_checked_out_beside_the_tree_which_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / "project")
    old = repository.commit({"file.txt": "old"})
    repository.commit({"file.txt": "new"})
    monkeypatch.setattr(candidates, "PROJECT", repository.folder)
    former = candidates.check_out(tmp_path / "work" / "old", old)
    assert (former / "file.txt").read_text() == "old"
    assert (repository.folder / "file.txt").read_text() == "new"
    assert candidates.check_out(tmp_path / "work" / "old", "no commit: it is there") == former


def test_a_revision_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        SystemExit, match=r"^--against: found 'v99', expected a commit, branch or tag of this checkout$"
    ):
        candidates.make_former(tmp_path, "v99", tmp_path / "corpus.csv")
