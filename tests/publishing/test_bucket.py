"""Calls of boto3's client that S3 would have to fail or to hold much for."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, IncompleteReadError

from semsearch.publishing.bucket import Bucket, PublishError, connect

URL = "s3://bucket/a/prefix/"


class NoSuchKeyError(Exception):
    pass


class Client:
    """A client that answers each call with the next one of some replies."""

    exceptions = SimpleNamespace(NoSuchKey=NoSuchKeyError)

    def __init__(self, *replies: Any) -> None:
        self.replies, self.calls = [*replies], list[tuple[str, dict[str, Any]]]()

    def __getattr__(self, name: str) -> Any:
        def call(*names: str, **arguments: Any) -> Any:
            self.calls.append((name, arguments))
            reply = self.replies.pop(0)
            if isinstance(reply, Exception):
                raise reply
            return reply

        return call


def error(code: str, **other: str) -> ClientError:
    return ClientError({"Error": {"Code": code, **other}}, "PutObject")


class Body:
    def __init__(self, content: bytes | None) -> None:
        self.content = content

    def read(self) -> bytes:
        if self.content is None:
            raise IncompleteReadError(actual_bytes=1, expected_bytes=2)
        return self.content


def test_a_body_that_breaks_off_is_read_three_times() -> None:
    broken, whole = ({"Body": Body(content), "ETag": "tag"} for content in (None, b"x"))
    client = Client(broken, broken, whole)
    assert Bucket(client, URL).read("name") == (b"x", "tag")
    assert client.calls[0] == ("get_object", {"Bucket": "bucket", "Key": "a/prefix/name", "ChecksumMode": "ENABLED"})
    with pytest.raises(PublishError, match=r"^s3://bucket/a/prefix: name: 1 read, but total bytes expected is 2"):
        Bucket(Client(broken, broken, broken), URL).read("name")
    assert Bucket(Client(NoSuchKeyError()), URL).read("name") is None


def test_a_thousand_objects_are_deleted_at_once() -> None:
    client = Client({}, {"Errors": [{"Key": "x", "Message": "denied"}, {"Key": "y"}]})
    with pytest.raises(PublishError, match=r"^s3://bucket/a/prefix: x: denied; prune again$"):
        Bucket(client, URL).delete([str(number) for number in range(1_002)])
    sent = [[each["Key"] for each in call["Delete"]["Objects"]] for _, call in client.calls]
    assert [len(keys) for keys in sent] == [1_000, 2]
    assert sent[1] == ["a/prefix/1000", "a/prefix/1001"]


def test_uploads_that_began_before_a_time_are_aborted() -> None:
    before = datetime(2026, 1, 1, tzinfo=UTC)

    class Pages:
        def paginate(self, **place: str) -> Iterator[dict[str, Any]]:
            assert place == {"Bucket": "bucket", "Prefix": "a/prefix/bundles/"}
            for seconds in (-2, 0, 1, -1):
                yield {"Uploads": [{"Key": "k", "UploadId": str(seconds), "Initiated": before + timedelta(0, seconds)}]}
            yield {}

    client = Client(Pages(), None, None)
    assert Bucket(client, URL).abort_uploads("bundles/", before) == 2
    assert client.calls[1:] == [
        ("abort_multipart_upload", {"Bucket": "bucket", "Key": "k", "UploadId": id}) for id in ("-2", "-1")
    ]


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (
            error("PreconditionFailed", Message="x"),
            "PreconditionFailed: another command changed it at the same time; run",
        ),
        (
            error("ConditionalRequestConflict"),
            "ConditionalRequestConflict: another command changed it at the same time",
        ),
        (error("AccessDenied", Message="no"), "AccessDenied: no"),
        (error("Odd"), "Odd: None"),
    ],
)
def test_what_s3_refuses_is_told_with_the_object(refused: ClientError, message: str) -> None:
    with pytest.raises(PublishError) as raised:
        Bucket(Client(refused), URL).write("current.json", b"{}", {"IfMatch": "tag"})
    assert str(raised.value).startswith(f"s3://bucket/a/prefix: current.json: {message}")


def test_no_bytes_are_read_without_a_request_and_others_by_their_range() -> None:
    client = Client({"Body": Body(b"xyz")})
    assert Bucket(client, "s3://bucket").read_part("name", 5, 0) == b""
    assert Bucket(client, "s3://bucket").read_part("name", 5, 3) == b"xyz"
    assert client.calls == [("get_object", {"Bucket": "bucket", "Key": "name", "Range": "bytes=5-7"})]


def test_the_progress_of_a_file_is_the_share_of_its_bytes(tmp_path: Any) -> None:
    shares: list[tuple[str, float]] = []

    def note(step: str, share: float, texts: int = 0) -> None:
        shares.append((step, share))

    class Sending(Client):
        def upload_file(self, *names: str, ExtraArgs: dict[str, Any], Callback: Any) -> None:  # noqa: N803
            assert names == (str(path), "bucket", "a/prefix/name")
            assert ExtraArgs == {"ChecksumAlgorithm": "SHA256", "Metadata": {"sha256": "abc"}}
            Callback(1)
            Callback(3)

    (path := tmp_path / "file").write_bytes(b"four")
    Bucket(Sending(), URL).send_file(path, "name", "abc", note)
    assert shares == [("send file", 0.25), ("send file", 1)]
    path.write_bytes(b"")
    Bucket(Sending(), URL).send_file(path, "name", "abc", note)
    assert shares[2:] == [("send file", 1), ("send file", 4)]


def test_an_endpoint_that_is_no_address_is_an_error() -> None:
    with pytest.raises(PublishError, match=r"^AWS: Invalid endpoint: x; check --profile, --region and --endpoint$"):
        connect("s3", "x", None, "eu-central-1")


def test_a_client_of_a_region_tries_ten_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    clients = [connect("s3"), connect("s3", region="eu-north-1")]
    assert [client.meta.region_name for client in clients] == ["eu-west-3", "eu-north-1"]
    assert clients[0].meta.config.retries == {"mode": "adaptive", "total_max_attempts": 11}
