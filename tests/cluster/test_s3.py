"""A corpus in S3 is copied and read like a file: against a real server that speaks S3's protocol."""

import gzip
import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from semsearch.indexing.corpus import CorpusError, corpus_place, fetching_corpus
from tests.indexing.corpus.files import read_corpus


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty bucket."""
    from moto.server import ThreadedMotoServer
    from pyarrow.fs import S3FileSystem

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    S3FileSystem(endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True).create_dir("texts")
    yield "s3://texts"
    server.stop()


def put(address: str, content: bytes) -> None:
    from pyarrow.fs import S3FileSystem

    system = S3FileSystem(endpoint_override=urlsplit(os.environ["AWS_ENDPOINT_URL"]).netloc, scheme="http")
    with system.open_output_stream(address.removeprefix("s3://"), compression=None) as file:
        file.write(content)


def read(address: str) -> list[str]:
    with fetching_corpus(corpus_place(address)) as path:
        return list(read_corpus(path).texts)


def test_a_file_in_s3_is_read_as_one_on_the_disk(bucket: str) -> None:
    put(f"{bucket}/some/a.csv.gz", gzip.compress(b"text\none\ntwo\n"))
    assert read(f"{bucket}/some/a.csv.gz") == ["one", "two"]


def test_a_folder_in_s3_is_one_corpus(bucket: str) -> None:
    put(f"{bucket}/folder/b.csv", b"text\nthree\n")
    put(f"{bucket}/folder/a.jsonl", b'{"text": "one"}\n{"text": "two"}\n')
    assert read(f"{bucket}/folder") == read(f"{bucket}/folder/") == ["one", "two", "three"]


def test_what_is_not_in_s3_is_an_error_with_its_address(bucket: str) -> None:
    with pytest.raises(CorpusError) as raised:
        read(f"{bucket}/none.csv")
    assert str(raised.value).startswith("s3://texts/none.csv: found no corpus that can be read (")
