"""Credentials come from the environment or, in a restored function, from the address that it names."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from function.aws_signature import Credentials
from function.s3vectors.credentials import CredentialsError, find_credentials

NOW = datetime(2026, 11, 22, 8, tzinfo=UTC)


class Local(HTTPServer):
    """Answers with credentials that expire an hour after `NOW`, and remembers the tokens it was asked with."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.headers["authorization"])
                expires = (NOW + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
                number = len(outer.asked)
                keys = {"AccessKeyId": f"key-{number}", "SecretAccessKey": "secret", "Token": "token"}
                self.send_response(outer.status)
                self.end_headers()
                self.wfile.write(json.dumps(keys | {"Expiration": expires}).encode())

            def log_message(self, *arguments: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def local() -> Iterator[Local]:
    with Local() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def environment_of(local: Local) -> dict[str, str]:
    url = f"http://127.0.0.1:{local.server_port}/credentials"
    return {"AWS_CONTAINER_CREDENTIALS_FULL_URI": url, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "lambdas"}


def test_those_of_the_environment_are_taken_first(local: Local) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    assert find_credentials(environment_of(local) | keys) == Credentials("key", "secret")
    assert find_credentials(keys | {"AWS_SESSION_TOKEN": "t"}) == Credentials("key", "secret", "t")
    assert not local.asked


def test_a_restored_function_asks_the_address_once_until_they_expire(local: Local) -> None:
    environment = environment_of(local)
    assert find_credentials(environment, NOW) == Credentials("key-1", "secret", "token")
    assert find_credentials(environment, NOW + timedelta(minutes=54)).access_key == "key-1"
    assert local.asked == ["lambdas"]
    assert find_credentials(environment, NOW + timedelta(minutes=56)).access_key == "key-2"


def test_an_address_that_refuses_is_an_error(local: Local) -> None:
    local.status = 500
    with pytest.raises(CredentialsError, match="answered 500, expected 200"):
        find_credentials(environment_of(local), NOW)


def test_the_token_goes_to_no_other_machine() -> None:
    with pytest.raises(CredentialsError, match="expected a local address"):
        find_credentials({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.com/credentials"})
