"""`Search` of a bundle that was published to S3."""

from pathlib import Path

import pytest

from semsearch import Search
from semsearch.publishing.store import Store
from tests.stand_ins.fixtures import Publish


def test_a_published_bundle_is_searched_and_its_files_are_removed_afterwards(
    endpoint: str, store: Store, publish: Publish, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    version = publish(bundle)
    with Search(store.url) as search:
        assert search.search("the baker") == Search(bundle).search("the baker")
        assert version[:12] in repr(search)
        store.remove(["story-007"])
        assert (search.get("story-007") is None, len(search)) == (False, 200)
        search.reload()
        assert (search.get("story-007"), len(search)) == (None, 199)
        assert [path.name for path in tmp_path.glob("*/*") if path.is_dir()] == [version]
    assert not any(path.is_dir() for path in tmp_path.glob("*/*"))
