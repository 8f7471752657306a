"""The settings of an operator, read from the environment.

AWS's own variables are read in semsearch/aws/credentials.py, and TMPDIR in semsearch/aws/s3/folders.py.
"""

import hashlib
import json
import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsearch.engine.errors import ExpectedError


def default_bundle(code: Path) -> Path:
    """Return bundle/ beside semsearch/, or in the current folder if pip installed a wheel; code has semsearch/."""
    if code.name in ("site-packages", "dist-packages"):
        return Path("bundle")
    return code / "bundle"


DEFAULT_BUNDLE = default_bundle(Path(__file__).resolve().parents[2])
# OpenAI's limit of one request, so that its clients need no other setting: LangChain sends 1,000 texts at a time and
# LlamaIndex 100 (https://developers.openai.com/api/reference/resources/embeddings/methods/create).
DEFAULT_TEXTS = 2048
MOST_TEXTS = 10_000  # largest MAX_TEXTS
DEFAULT_TOKENS = 300_000
# In Lambda a request has 29 seconds (template.yaml) and one core, which embeds 4,096 tokens of long texts with
# all-MiniLM-L6-v2 in 1.7 seconds (bench/limits.py of commit 1eb8162). Half of the 29 are left for larger models.
LAMBDA_TOKENS = 32_768
# Characters of a request for each token of MAX_TOKENS. English has four or five characters a token, and the time of
# tokenizing grows with the characters.
CHARACTERS_PER_TOKEN = 16
# Bytes of a body for each of these characters, which clients often write as \u00e9 if not ASCII. And bytes for all
# else, such as names, filters and quotation marks.
BYTES_PER_CHARACTER, LEAST_BODY_BYTES = 6, 65_536
DEFAULT_POLL_SECONDS = 60
LONGEST_POLL = 86_400  # seconds
DEFAULT_SERVICE = "semantic-search"
DEFAULT_NAMESPACE = "SemanticSearch"
SHORTEST_KEY = 16  # characters; 16 random hex digits are 64 bits, too many to guess over a network
LAMBDA_BODY_LIMIT = 6 * 1024 * 1024  # bytes; Lambda's own limit, base64 included
LAMBDA_REPLY_LIMIT = LAMBDA_BODY_LIMIT - 4096  # bytes of the body as a string of JSON; the rest is for the headers
SERVER_REPLY_LIMIT = 64 * 1024 * 1024  # bytes; 2,048 embeddings of 1,024 values are 27 MB of JSON
HOST_NAME = r"[a-z0-9._-]+|\[[0-9a-f:.]+\]"  # a name or an address in lower case, without a port
# an origin as browsers send it: in lower case, without a path, and without the port that its scheme implies
ORIGIN = rf"(?!http://.*:80$|https://.*:443$)[a-z][a-z0-9+.-]*://({HOST_NAME})(:[0-9]{{1,5}})?"
IN_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME"  # the environment variable that Lambda sets


class SettingsError(ExpectedError, ValueError):
    """An environment variable that cannot be used. The message has the variable, its value and what was expected."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key: the name that the log has, the hexadecimal SHA-256, and the filter of all its requests, if any."""

    name: str
    sha256: str
    filter: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """One field for each environment variable, named like it in lower case."""

    bundle_dir: Path = DEFAULT_BUNDLE
    max_body_bytes: int = LAMBDA_BODY_LIMIT
    max_reply_bytes: int = SERVER_REPLY_LIMIT
    max_texts: int = DEFAULT_TEXTS  # in one request for embeddings
    max_tokens: int = DEFAULT_TOKENS  # in all texts of one request, special tokens included
    api_base_path: str = "/"
    mcp_origins: tuple[str, ...] = ()  # other origins whose web pages are allowed to call /mcp
    cors_origins: tuple[str, ...] = ()  # other origins whose web pages are allowed to call all routes
    allowed_hosts: tuple[str, ...] = ()  # names in the header Host of requests that are answered; () for any name
    powertools_service_name: str = DEFAULT_SERVICE
    powertools_metrics_namespace: str = DEFAULT_NAMESPACE
    aws_lambda_initialization_type: str = "on-demand"
    api_keys: tuple[ApiKey, ...] = ()  # from API_KEYS, API_KEYS_FILE and API_KEY_HASHES; a request needs one
    api_keys_arn: str = ""  # what has further ones: a secret in Secrets Manager, or a parameter in Systems Manager
    jwt_filter: str = ""  # CLAIM=COLUMN: a request finds only texts whose column has the value of its token's claim
    # The address s3://BUCKET/PREFIX if BUNDLE_DIR is one. Then bundle_dir is LOCAL_BUNDLE_DIR: a bundle whose model is
    # linked instead of fetched, if both have the same model.
    bundle_url: str = ""
    log_queries: bool = False  # whether the log has the text of each query
    bundle_poll_seconds: int = DEFAULT_POLL_SECONDS
    warm_up_all_routes: bool = False  # whether a start in Lambda loads what all routes need; plain searches need less

    @property
    def is_closed(self) -> bool:
        """Return whether a caller needs an API key, or a token with a claim."""
        return bool(self.api_keys or self.api_keys_arn or self.jwt_filter)

    @property
    def max_characters(self) -> int:
        """Return the maximum number of characters of all texts of one request."""
        return CHARACTERS_PER_TOKEN * self.max_tokens


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of an environment. In Lambda the default limits are smaller, because time is limited.

    Raises SettingsError if a number is wrong or out of range, if an origin or the name of a host is not valid, or if an
    API key is too short.
    """
    reply_limit, tokens, origins = SERVER_REPLY_LIMIT, DEFAULT_TOKENS, ""
    cors_origins = _origins(environment.get("CORS_ORIGINS", ""))
    allowed_hosts: tuple[str, ...] = ()
    if IN_LAMBDA in environment:
        # DNS rebinding cannot reach Lambda, and rules of CORS decide which origins may call
        reply_limit, tokens, origins = LAMBDA_REPLY_LIMIT, LAMBDA_TOKENS, "*"
    else:
        allowed_hosts = _host_names(environment.get("ALLOWED_HOSTS", ""))
    bundle_dir, bundle_url = environment.get("BUNDLE_DIR") or str(DEFAULT_BUNDLE), ""
    if bundle_dir.startswith("s3://"):
        from semsearch.aws.s3.published import split_s3_url  # only for a bundle in S3

        try:
            split_s3_url(bundle_dir)
        except ValueError as error:
            raise SettingsError(f"BUNDLE_DIR: {error}") from error
        bundle_dir, bundle_url = environment.get("LOCAL_BUNDLE_DIR") or str(DEFAULT_BUNDLE), bundle_dir.rstrip("/")
    max_tokens = _whole_number(environment, "MAX_TOKENS", tokens, 1_000_000)
    body_limit = min(LAMBDA_BODY_LIMIT, max_tokens * CHARACTERS_PER_TOKEN * BYTES_PER_CHARACTER + LEAST_BODY_BYTES)
    return Settings(
        bundle_dir=Path(bundle_dir),
        bundle_url=bundle_url,
        bundle_poll_seconds=_whole_number(environment, "BUNDLE_POLL_SECONDS", DEFAULT_POLL_SECONDS, LONGEST_POLL),
        max_body_bytes=_whole_number(environment, "MAX_BODY_BYTES", body_limit, LAMBDA_BODY_LIMIT),
        max_reply_bytes=_whole_number(environment, "MAX_REPLY_BYTES", reply_limit, reply_limit),
        max_texts=_whole_number(environment, "MAX_TEXTS", DEFAULT_TEXTS, MOST_TEXTS),
        max_tokens=max_tokens,
        api_base_path="/" + (environment.get("API_BASE_PATH") or "").strip("/"),
        mcp_origins=(*(environment.get("MCP_ORIGINS") or origins).replace(",", " ").split(), *cors_origins),
        cors_origins=cors_origins,
        allowed_hosts=allowed_hosts,
        powertools_service_name=environment.get("POWERTOOLS_SERVICE_NAME") or DEFAULT_SERVICE,
        powertools_metrics_namespace=environment.get("POWERTOOLS_METRICS_NAMESPACE") or DEFAULT_NAMESPACE,
        aws_lambda_initialization_type=environment.get("AWS_LAMBDA_INITIALIZATION_TYPE") or "on-demand",
        api_keys=read_api_keys(environment),
        api_keys_arn=environment.get("API_KEYS_ARN") or "",
        jwt_filter=environment.get("JWT_FILTER") or "",
        log_queries=environment.get("LOG_QUERIES") == "1",
        warm_up_all_routes=environment.get("WARM_UP_ALL_ROUTES") == "1",
    )


def whole_number(text: str, least: int, most: int) -> int:
    """Return the number that a text of ASCII digits means. Raises ValueError unless it is from `least` to `most`."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 20 and least <= int(text) <= most):
        raise ValueError(f"{text!r}, expected a whole number from {least} to {most}")
    return int(text)


def _whole_number(environment: Mapping[str, str], name: str, default: int, largest: int) -> int:
    try:
        return whole_number(environment.get(name) or str(default), 1, largest)
    except ValueError as error:
        raise SettingsError(f"{name}: {error}") from error


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(text.replace(",", " ").split())
    for origin in origins:
        if origin != "*" and not re.fullmatch(ORIGIN, origin):
            expected = "expected a web page's scheme and host in lower case, and its port if it has one, without a path"
            raise SettingsError(f"CORS_ORIGINS: {origin!r}, {expected}; write https://example.com, or * for all pages")
    return origins


def _host_names(text: str) -> tuple[str, ...]:
    names = tuple(text.lower().replace(",", " ").split())
    for name in names:
        if not re.fullmatch(HOST_NAME, name):
            expected = "expected the name of a host without a scheme, a port or a path"
            raise SettingsError(f"ALLOWED_HOSTS: {name!r}, {expected}; write search.example.com")
    return names


def read_api_keys(environment: Mapping[str, str]) -> tuple[ApiKey, ...]:
    """Return the keys of API_KEYS, API_KEYS_FILE and API_KEY_HASHES.

    Raises SettingsError, which has the number of a key, never the key, if one is too short or the file cannot be read.
    """
    keys = []
    if environment.get("API_KEYS"):
        keys = _split_keys("API_KEYS", environment["API_KEYS"])
    if file := environment.get("API_KEYS_FILE"):
        where = f"API_KEYS_FILE: {file}"
        try:
            keys += _split_keys(where, Path(file).read_text(encoding="ascii", errors="replace"))
        except OSError as error:
            raise SettingsError(f"{where}: cannot be read ({error.strerror}); name a file with a key a line") from error
    plain = [ApiKey(f"key {number}", hash_key(key)) for number, key in enumerate(keys, start=1)]
    hashes = environment.get("API_KEY_HASHES")
    return *plain, *(read_hashes("API_KEY_HASHES", hashes) if hashes else ())


def hash_key(key: str) -> str:
    """Return the hexadecimal SHA-256 of a key. Keys are long and random, so they need no slow hash."""
    return hashlib.sha256(key.encode()).hexdigest()


def read_hashes(where: str, text: str) -> list[ApiKey]:
    """Return the keys of a list of HASH, NAME:HASH or NAME:HASH:FILTER, separated by commas or white space.

    FILTER is JSON in base64url, as `encode_filter` returns it, or JSON as it is. Raises SettingsError, whose message
    begins with `where` and shows no hash, for all else.
    """
    keys, place = list[ApiKey](), 0
    while entry := re.compile(r"[\s,]*(?:([\w.@-]+):)?([0-9a-f]{64})(?![^\s,:])").match(text, place):
        condition, place = None, entry.end()
        if text.startswith(":", place):
            with suppress(ValueError, RecursionError):
                condition, place = _read_bound_filter(text, place + 1)
            if not isinstance(condition, dict) or not condition:
                break
        keys.append(ApiKey(entry[1] or f"key {len(keys) + 1}", entry[2], condition))
        if not text[place:].strip(", \t\r\n"):
            return keys
        if text[place] not in ", \t\r\n":
            break
    raise SettingsError(
        f"{where}: key {len(keys) + 1} cannot be read, expected NAME:HASH or NAME:HASH:FILTER, such as "
        'team-a:64 HEX DIGITS:{"tenant": "a"}; make one with `semsearch key team-a`'
    )


def encode_filter(condition: dict[str, Any]) -> str:
    """Return a filter as JSON in base64url (RFC 4648), which needs no quoting in a shell or in a samconfig.toml."""
    return urlsafe_b64encode(json.dumps(condition, separators=(",", ":")).encode()).decode().rstrip("=")


def _read_bound_filter(text: str, place: int) -> tuple[Any, int]:
    """Return the JSON at a place of a list of keys, as it is or in base64url, and where it ends. Raises ValueError."""
    encoded = re.compile(r"[\w-]+", re.ASCII).match(text, place)
    if encoded is None:
        return json.JSONDecoder().raw_decode(text, place)
    return json.loads(urlsafe_b64decode(encoded[0] + "=" * (-len(encoded[0]) % 4))), encoded.end()


def _split_keys(where: str, text: str) -> list[str]:
    keys = text.replace(",", " ").split()
    advice = "make one with `openssl rand -hex 32`"
    if not keys:
        raise SettingsError(f"{where}: there is no key; {advice}")
    for number, key in enumerate(keys, start=1):
        if len(key) < SHORTEST_KEY or not key.isascii():
            found = "has characters that are not ASCII"
            if key.isascii():
                found = f"has {len(key)} characters"
            raise SettingsError(f"{where}: key {number} {found}, expected {SHORTEST_KEY} or more of ASCII; {advice}")
    return keys
