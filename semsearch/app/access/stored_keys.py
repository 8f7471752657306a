"""API keys in AWS Secrets Manager or Systems Manager."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from time import monotonic

from semsearch.app.settings import ApiKey, Settings, SettingsError, read_hashes
from semsearch.app.telemetry import Log

SECONDS_KEPT = 60.0  # keys from AWS are read again after this time, so a removed key works for at most this time
STORE_TIMEOUT = 2.0  # maximum seconds between two bytes of the reply of AWS that contains the keys
# By the service in an ARN: the operation that reads the keys, the request's field for the ARN, and the path of the keys
# in the reply.
STORES = {
    "secretsmanager": ("secretsmanager.GetSecretValue", "SecretId", ("SecretString",)),
    "ssm": ("AmazonSSM.GetParameter", "Name", ("Parameter", "Value")),
}


class StoredKeys:
    """Keys in a secret of AWS Secrets Manager or a parameter of AWS Systems Manager, read again each minute."""

    def __init__(self, settings: Settings, logger: Log, environment: Mapping[str, str] = os.environ) -> None:
        """Read the keys. Raises SettingsError if that fails."""
        self._arn, self._others, self._logger = settings.api_keys_arn, settings.api_keys, logger
        self._environment = environment
        self._keys, self._read_at = self._read(), monotonic()

    def get(self) -> Sequence[ApiKey]:
        """Return the keys, including those of the settings. If reading them again fails, keep the keys read before."""
        if monotonic() - self._read_at >= SECONDS_KEPT:
            self._read_at = monotonic()
            try:
                self._keys = self._read()
            except SettingsError:
                self._logger.exception("API keys were not read", extra={})
        return self._keys

    def _read(self) -> Sequence[ApiKey]:
        content = self._content(self._arn)
        if content.startswith("arn:"):  # the parameter of the stack can contain the ARN of ApiKeysArn
            content = self._content(content)
        return *self._others, *(read_hashes(f"API_KEYS_ARN: {self._arn}", content) if content.strip() else ())

    def _content(self, arn: str) -> str:
        from semsearch.aws.requests import CredentialsError, Service

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
        try:
            store = Service(service, region, address, STORE_TIMEOUT, self._environment)
            with store.request("POST", "/", headers, body) as reply:
                content = json.loads(reply.read())
            for name in path:
                content = content[name]
        except (CredentialsError, OSError, HTTPException, ValueError, LookupError, TypeError) as error:
            # the reply can hold the secret, so the error does not show it
            advice = "check the ARN, and that the role may read it"
            raise SettingsError(f"API_KEYS_ARN: {arn} was not read ({type(error).__name__}); {advice}") from error
        return str(content)
