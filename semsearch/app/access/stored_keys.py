"""API keys in AWS Secrets Manager or Systems Manager.

They are read when the process starts, and again each minute in a thread, so that requests do not wait for AWS. In
Lambda a process is frozen between requests, possibly for hours. So the first request after a longer pause waits until
they are read.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from threading import Thread
from time import monotonic

from semsearch.app.access.keys import StatedKeys
from semsearch.app.settings import IN_LAMBDA, ApiKey, Settings, SettingsError, read_api_keys, read_hashes
from semsearch.app.shared_memory import SharedFailures
from semsearch.app.telemetry import Log, make_metrics
from semsearch.aws.credentials import CredentialsError
from semsearch.aws.requests import Service
from semsearch.aws.s3.objects import PAUSE, TRIES

# Keys from AWS are read again after this time. The request that starts the reading is answered with the older ones, so
# a removed key works for at most twice this time.
SECONDS_KEPT = 60.0
STORE_TIMEOUT = 2.0  # maximum seconds between two bytes of the reply of AWS that contains the keys
SECONDS_TO_READ = 8.0  # no try begins later: Lambda stops a start after ten seconds
WITHOUT = "a reply without"  # how a StoreError begins whose reply has no text
THROTTLED = ("ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException")  # types of errors
# By the service in an ARN: the operation that reads the keys, the request's field for the ARN, and the path of the keys
# in the reply.
STORES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "secretsmanager": ("secretsmanager.GetSecretValue", "SecretId", ("SecretString",)),
    "ssm": ("AmazonSSM.GetParameter", "Name", ("Parameter", "Value")),
}


class StoredKeys(StatedKeys):
    """Keys in a secret of AWS Secrets Manager or a parameter of AWS Systems Manager, read again each minute.

    With them, those of the environment and of the file are read again.
    """

    def __init__(self, settings: Settings, logger: Log, environment: Mapping[str, str] = os.environ) -> None:
        """Read the keys. Raises SettingsError if that fails."""
        super().__init__(settings, logger, environment)
        self._settings = settings
        self.failures: SharedFailures = SharedFailures()
        self.read()

    def read(self) -> None:
        """Read the keys now. Raises SettingsError if that fails."""
        self._asked_at = monotonic()
        self._accept(self._read())
        self._report_if_there_is_none()

    def read_again(self) -> None:
        """Read the keys again, in a thread."""
        self._start_reading()

    def _start_reading(self) -> Thread:
        self._asked_at = monotonic()
        reading = Thread(target=self._read_again, name="keys", daemon=True)
        reading.start()
        return reading

    async def get(self) -> Sequence[ApiKey]:
        """Return the keys, including those of the settings. If reading them again fails, keep the keys read before."""
        age = monotonic() - self._asked_at
        if age >= SECONDS_KEPT:
            reading = self._start_reading()
            if age >= 2 * SECONDS_KEPT:  # nothing has tried meanwhile: the process was frozen, or had no requests
                await asyncio.to_thread(reading.join, STORE_TIMEOUT)
        return self.latest

    def _read_again(self) -> None:
        try:
            self._accept(self._read())
        except Exception as error:  # reported, and tried again a minute later
            self._logger.exception("API keys were not read", extra={})
            self._fail(str(error))
        else:
            self._report_if_there_is_none()

    def _report_if_there_is_none(self) -> None:
        """Report that no key is valid: an operator can have emptied the store by mistake."""
        if self.latest:
            self.failures.succeed()
            return
        found = f"API_KEYS_ARN: {self._settings.api_keys_arn} holds no key, expected one or more"
        reason = f"{found}; every request gets 401 until one is added"
        self._logger.error("there are no API keys", extra={"error": reason})
        self._fail(reason)

    def _fail(self, reason: str) -> None:
        """Count a failure, show it in GET /info, and in Lambda send the metric KeysNotRead."""
        self.failures.fail(reason)
        if IN_LAMBDA in self._environment:
            metrics = make_metrics(self._settings)
            metrics.add_metric("KeysNotRead", "Count", 1.0)
            metrics.flush_metrics()

    def _read(self) -> Sequence[ApiKey]:
        arn = self._settings.api_keys_arn
        content = self._content(arn)
        if content.startswith("arn:"):  # the parameter of the stack can contain the ARN of ApiKeysArn
            content = self._content(content)
        others = read_api_keys(self._environment)
        if not content.strip():
            return others
        return *others, *read_hashes(f"API_KEYS_ARN: {arn}", content)

    def _content(self, arn: str) -> str:
        found = re.match(r"arn:(aws[\w-]*):(secretsmanager|ssm):([a-z0-9-]+):\d{12}:", arn)
        if found is None:
            expected = "expected the ARN of a secret in Secrets Manager or of a parameter in Systems Manager"
            raise SettingsError(f"API_KEYS_ARN: {arn!r}, {expected}; copy it from there")
        partition, service, region = found.groups()
        target, field, path = STORES[service]
        suffix = "amazonaws.com"
        if partition == "aws-cn":
            suffix = "amazonaws.com.cn"
        address = f"https://{service}.{region}.{suffix}"
        body = json.dumps({field: arn} | ({"WithDecryption": True} if service == "ssm" else {})).encode()
        headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": target}
        store = Service(service, region, address, STORE_TIMEOUT, self._environment)
        began = monotonic()
        for number in range(1, TRIES + 1):
            try:
                return _request_keys(store, headers, body, path)
            except CredentialsError as error:
                raise SettingsError(f"API_KEYS_ARN: {arn} was not read: {error}") from error
            except StoreError as error:
                is_last = number == TRIES or monotonic() - began >= SECONDS_TO_READ
                if is_last or not error.can_pass:
                    advice = _advice(str(error), store.endpoint.host)
                    reason = f"{error}, tried {number} times"
                    raise SettingsError(f"API_KEYS_ARN: {arn} was not read ({reason}); {advice}") from error
            time.sleep(PAUSE * 2 ** (number - 1))
        raise AssertionError("the last try returns or raises")


class StoreError(Exception):
    """A reply of AWS without keys, or none: the message is its status and the type of its error."""

    def __init__(self, found: str, *, can_pass: bool) -> None:
        """Note what was found, and whether the same request can succeed later."""
        super().__init__(found)
        self.can_pass = can_pass


def _request_keys(store: Service, headers: dict[str, str], body: bytes, path: Sequence[str]) -> str:
    """Return the text that is under `path` in the reply of AWS. Raises StoreError, which never shows that text."""
    try:
        with store.request("POST", "/", headers, body) as reply:
            content = json.loads(reply.read())
    except (OSError, HTTPException, ValueError) as error:
        raise StoreError(type(error).__name__, can_pass=True) from error
    kind = ""
    if isinstance(content, dict):
        kind = str(content.get("__type", "")).rpartition("#")[2]
    if reply.status != 200 or kind:
        raise StoreError(f"{reply.status} {kind}", can_pass=reply.status >= 500 or kind in THROTTLED)
    try:
        for name in path:
            content = content[name]
    except (LookupError, TypeError) as error:
        raise StoreError(f"{WITHOUT} {'.'.join(path)}", can_pass=False) from error
    return str(content)


def _advice(found: str, host: str) -> str:
    """Return what to do about the failure that a StoreError describes."""
    if "NotFound" in found:
        return "check the ARN"
    if found.startswith(WITHOUT):
        return "store the keys as text, not as a binary secret"
    if found.startswith("400") and not found.endswith(THROTTLED):
        return "let the role read it, and decrypt it"
    return f"is {host} reachable? In a VPC it needs an interface endpoint"
