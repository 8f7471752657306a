"""Credentials come from the environment or, in a restored function or a container, from the address that it names."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from function.aws import credentials as module
from function.aws.credentials import CredentialsError, CredentialSource
from function.aws.signature import Credentials

NOW = datetime(2026, 11, 22, 8, tzinfo=UTC)
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


class Local(HTTPServer):
    """Answers with credentials that expire an hour after `NOW`, and remembers what it was asked with."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []  # path, token
        self.status = 200
        self.do_expire = True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers["authorization"]))
                number = len(outer.asked)
                reply = {"AccessKeyId": f"key-{number}", "SecretAccessKey": "secret", "Token": "token"}
                if outer.do_expire:
                    reply["Expiration"] = (NOW + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
                self.send_response(outer.status)
                self.end_headers()
                self.wfile.write(json.dumps(reply).encode())

            def log_message(self, *arguments: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def local() -> Iterator[Local]:
    with Local() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def environment(local: Local) -> dict[str, str]:
    """What Lambda tells a restored function."""
    return {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{local.url}/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "lambdas",
    }


def test_those_of_the_environment_are_taken_first(local: Local, environment: dict[str, str]) -> None:
    assert CredentialSource(environment | KEYS).get(NOW) == Credentials("key", "secret")
    assert CredentialSource(KEYS | {"AWS_SESSION_TOKEN": "t"}).get(NOW) == Credentials("key", "secret", "t")
    assert not local.asked


def test_a_restored_function_asks_the_address_once_until_they_expire(local: Local, environment: dict[str, str]) -> None:
    source = CredentialSource(environment)
    assert source.get(NOW) == Credentials("key-1", "secret", "token")
    assert source.get(NOW + timedelta(minutes=54)).access_key == "key-1"
    assert local.asked == [("/credentials", "lambdas")]
    assert source.get(NOW + timedelta(minutes=56)).access_key == "key-2"


def test_credentials_that_do_not_expire_are_asked_for_once(local: Local, environment: dict[str, str]) -> None:
    local.do_expire = False
    source = CredentialSource(environment)
    assert source.get(NOW).access_key == source.get(NOW + timedelta(days=999)).access_key == "key-1"


def test_a_container_has_a_path_at_amazons_address_and_a_file_with_the_token(
    local: Local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONTAINER", local.url)
    (tmp_path / "token").write_text("of the file\n")
    environment = {
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials?id=7",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token"),
    }
    assert CredentialSource(environment).get(NOW).access_key == "key-1"
    assert local.asked == [("/v2/credentials?id=7", "of the file")]


def test_an_address_that_refuses_is_an_error(local: Local, environment: dict[str, str]) -> None:
    local.status = 500
    with pytest.raises(CredentialsError, match="answered 500, expected 200"):
        CredentialSource(environment).get(NOW)


def test_an_address_that_does_not_answer_is_an_error() -> None:
    environment = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/"}
    with pytest.raises(CredentialsError, match="returned no AWS credentials"):
        CredentialSource(environment).get(NOW)


@pytest.mark.parametrize("url", ["http://example.com/credentials", "ftp://localhost/credentials"])
def test_the_token_goes_to_no_other_machine_without_tls(url: str) -> None:
    with pytest.raises(CredentialsError, match="expected https:// or a local address"):
        CredentialSource({"AWS_CONTAINER_CREDENTIALS_FULL_URI": url}).get(NOW)


def test_without_any_the_error_says_where_they_were_looked_for() -> None:
    with pytest.raises(CredentialsError, match="neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor"):
        CredentialSource({}).get(NOW)
