"""A corpus in S3 is copied and read like a file: against a real server that speaks S3's protocol."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from semsearch.indexing.corpus import CorpusError, Table, corpus_place, fetching_corpus
from tests.stand_ins.fixtures import object_at

Put = Callable[[str, bytes], None]


@pytest.fixture
def put(s3: Any, url: str, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Return what puts an object into the bucket, which AWS's variables lead to."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    return lambda name, content: s3.put_object(**object_at(url, name), Body=content)


def read(address: str) -> list[str]:
    with fetching_corpus(corpus_place(address)) as path:
        return Table(path).texts()


def test_a_file_in_s3_is_read_as_one_on_the_disk(url: str, put: Put) -> None:
    put("some/a.csv.gz", gzip.compress(b"text\none\ntwo\n"))
    with fetching_corpus(corpus_place(f"{url}/some/a.csv.gz")) as path:
        assert Table(path).texts() == ["one", "two"]
    assert not path.parent.exists()


def test_a_folder_in_s3_is_one_corpus(url: str, put: Put) -> None:
    put("folder/b.csv", b"text\nthree\n")
    put("folder/a.jsonl", b'{"text": "one"}\n{"text": "two"}\n')
    assert read(f"{url}/folder") == read(f"{url}/folder/") == ["one", "two", "three"]


def test_what_is_not_in_s3_is_an_error_with_its_address(url: str, put: Put) -> None:
    with pytest.raises(CorpusError) as raised:
        read(f"{url}/none.csv")
    assert str(raised.value).startswith(f"{url}/none.csv: found no corpus that can be read (")
    put("empty.csv", b"title,author\n")
    with pytest.raises(CorpusError) as broken:
        read(f"{url}/empty.csv")
    assert str(broken.value).startswith(f"{url}/empty.csv: found no rows, expected")


def test_a_bucket_and_a_key_are_needed() -> None:
    assert corpus_place("s3://bucket/a") == Path("s3:/bucket/a")
    assert corpus_place("texts") == Path("texts")
    for words in ("s3://", "s3://bucket"):
        with pytest.raises(CorpusError) as raised:
            corpus_place(words)
        assert str(raised.value) == f"found {words!r}, expected s3://BUCKET/KEY of a file or a folder; write both"
