"""The requests that a function makes of S3: where they go, and answers that are not what was asked for."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from semsearch.aws import endpoint as aws
from semsearch.aws.s3 import objects as objects_module
from semsearch.aws.s3.objects import Objects, RemoteError
from tests.stand_ins.faults import Fault, Proxy, change, crawl, cut_in_s3, dawdle, refuse
from tests.stand_ins.fixtures import Publish, object_at

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret"}


@pytest.mark.parametrize(
    ("url", "environment", "host", "path"),
    [
        ("s3://texts/a b", {}, "texts.s3.us-east-1.amazonaws.com", "/a%20b/current.json"),
        ("s3://texts/x/", {"AWS_REGION": "cn-north-1"}, "texts.s3.cn-north-1.amazonaws.com.cn", "/x/current.json"),
        ("s3://my.texts/x", {}, "s3.us-east-1.amazonaws.com", "/my.texts/x/current.json"),
        ("s3://texts", {"AWS_ENDPOINT_URL": "x", "AWS_ENDPOINT_URL_S3": "https://one"}, "one", "/texts/current.json"),
    ],
)
def test_a_request_goes_to_amazons_address_of_the_bucket_or_to_the_one_that_a_variable_names(
    url: str, environment: dict[str, str], host: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    class Connection:
        sock = None

        def __init__(self, host: str, timeout: float, context: object) -> None:
            assert context is not None
            self._host = host

        def request(self, method: str, path: str, body: None, headers: object) -> None:
            asked.append((self._host, path))
            raise KeyboardInterrupt

        def close(self) -> None:
            pass

    monkeypatch.setattr(aws, "HTTPSConnection", Connection)
    with pytest.raises(KeyboardInterrupt):
        Objects(url, KEYS | environment).read("current.json")
    assert asked == [(host, path)]


def test_an_object_is_read_with_its_time(url: str, environment: dict[str, str], bundle: Path, publish: Publish) -> None:
    before = int(time.time())
    publish(bundle)
    after = time.time()
    content, stored = Objects(url, environment).read_dated("current.json")
    assert b"version" in content
    assert before <= stored <= after


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        *((status, "Odd", "is the bucket in eu-central-1? Set AWS_REGION to its region") for status in (307, 400)),
        *(
            (403, code, "get new credentials")
            for code in ("InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch")
        ),
        *((status, "Odd", "expected 200; does 127.0.0.1") for status in (206, 302, 401, 405, 409)),
        (301, "PermanentRedirect", "is the bucket in eu-central-1? Set AWS_REGION to its region"),
        (400, "ExpiredToken", "get new credentials"),
        (403, "RequestTimeTooSkewed", "set the clock of this machine"),
        (403, "AccessDenied", "publish a bundle there, or allow s3:GetObject"),
        (404, "NoSuchKey", "publish a bundle there, or allow s3:GetObject"),
    ],
)
def test_what_s3_refuses_is_told_with_what_to_do(
    url: str, environment: dict[str, str], proxy: Proxy, status: int, code: str, advice: str
) -> None:
    proxy.fail("current.json", refuse(status, code))
    with pytest.raises(RemoteError) as raised:
        Objects(url, environment).read("current.json")
    assert str(raised.value).startswith(f"{url}/current.json: {status} {code}; {advice}")


@pytest.mark.parametrize(("status", "is_stopped", "times"), [(503, True, 1), (503, False, 4), (408, False, 4)])
def test_a_request_is_repeated_three_times_unless_the_process_ends(
    url: str, environment: dict[str, str], proxy: Proxy, status: int, is_stopped: bool, times: int
) -> None:
    proxy.fail("current.json", refuse(status, "SlowDown"))
    objects = Objects(url, environment)
    if is_stopped:
        objects.stop()
    with pytest.raises(RemoteError) as raised:
        objects.read("current.json")
    assert str(raised.value).startswith(f"{url}/current.json: {status} SlowDown, {times} times; is 127.0.0.1:")
    assert len(proxy.asked) == times


def test_a_part_is_written_to_its_place_until_the_process_ends(
    url: str, environment: dict[str, str], s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put_object(**object_at(url, "x"), Body=b"0123456789")
    objects = Objects(url, environment)
    with (tmp_path / "part").open("w+b") as file:
        objects.copy_part("x", 3, 4, file.fileno())
        assert file.read() == b"\0\0\x003456"
        monkeypatch.setattr(objects_module, "READ_AT_ONCE", 1)
        objects.stop()
        with pytest.raises(RemoteError, match="x: ended after 0 of 4 bytes, 1 times; is "):
            objects.copy_part("x", 3, 4, file.fileno())
    assert objects.read("x", s3.head_object(**object_at(url, "x"))["ETag"]) is None


def test_an_answer_that_stops_is_an_error(
    url: str, environment: dict[str, str], proxy: Proxy, publish: Publish, bundle: Path
) -> None:
    publish(bundle)
    proxy.fail("current.json", dawdle)
    with pytest.raises(RemoteError, match=r"current\.json: timed out, 4 times"):
        Objects(url, environment, timeout=0.1).read("current.json")


@pytest.mark.parametrize("fault", [change, cut_in_s3])
def test_a_body_that_changed_on_its_way_is_read_again(
    url: str, environment: dict[str, str], proxy: Proxy, publish: Publish, bundle: Path, fault: Fault
) -> None:
    publish(bundle)
    objects = Objects(url, environment)
    whole = objects.read("current.json")
    proxy.fail("current.json", fault, times=2)
    assert objects.read("current.json") == whole
    proxy.fail("current.json", fault)
    with pytest.raises(RemoteError, match=r"bytes came whose SHA-256 is not that of the reply's header, 4 times"):
        objects.read_dated("current.json")


@pytest.mark.parametrize("name", ["current.json", "index.safetensors"])
def test_requests_that_crawl_fail_together(
    url: str,
    environment: dict[str, str],
    proxy: Proxy,
    publish: Publish,
    bundle: Path,
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    version = publish(bundle)
    proxy.fail(name, crawl)
    objects = Objects(url, environment)
    with (tmp_path / "part").open("wb") as file, monkeypatch.context() as patch:
        patch.setattr(objects_module, "ALLOWED_SECONDS", 0.05)
        patch.setattr(objects_module, "SECONDS_BETWEEN_TICKS", 0.05)
        requests: dict[str, Callable[[], object]] = {
            "current.json": lambda: objects.read("current.json"),
            "index.safetensors": lambda: objects.copy_part(f"bundles/{version}/{name}", 0, 10_000, file.fileno()),
        }
        with objects.limited(), pytest.raises(RemoteError, match="comes too slowly"):
            requests[name]()
        patch.setattr(objects_module, "BYTES_PER_SECOND", 1)
        patch.setattr(objects_module, "READ_AT_ONCE", 1)
        with objects.limited():  # each byte that comes allows more time
            objects.copy_part(f"bundles/{version}/index.safetensors", 0, 20, file.fileno())
    proxy.faults.clear()
    with objects.limited():  # the next ones begin with all of their time
        assert objects.read("current.json") is not None
