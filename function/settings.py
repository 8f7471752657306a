"""What an operator may set, and the only reader of the environment."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_BUNDLE = Path(__file__).resolve().parent.parent / "bundle"
# What OpenAI takes in one request, so that no client must be told to send less: LangChain sends 1,000 texts at a time,
# LlamaIndex 100 (https://developers.openai.com/api/reference/resources/embeddings/methods/create).
DEFAULT_TEXTS = 2048
DEFAULT_TOKENS = 300_000
# Lambda's function has 29 seconds (template.yaml) and one core, on which all-MiniLM-L6-v2 reads 4,096 tokens of long
# texts in 1.7 seconds (bench/results/limits.md): half of the 29 are left for larger models.
LAMBDA_TOKENS = 32_768
CHARACTERS_PER_TOKEN = 16  # of MAX_TOKENS: English has four or five, and the tokenizer's work grows with characters
CHARACTERS_PER_TEXT = 65_536  # a tenth of a second of tokenizing, of which a model reads some thousands
S3 = "s3://"  # what a BUNDLE_DIR in S3 begins with
DEFAULT_POLL_SECONDS = 60
LONGEST_POLL = 86_400  # seconds
DEFAULT_SERVICE = "semantic-search"
DEFAULT_NAMESPACE = "SemanticSearch"
DEFAULT_BASE_PATH = "/"
SHORTEST_KEY = 16  # characters: as random hex digits they are 64 bits, which nobody guesses over a network
LAMBDA_BODY_LIMIT = 6 * 1024 * 1024  # bytes; what Lambda lets through, base64 included
LAMBDA_REPLY_LIMIT = LAMBDA_BODY_LIMIT - 4096  # bytes of the body as a string of JSON; the rest is for the headers
SERVER_REPLY_LIMIT = 64 * 1024 * 1024  # bytes; 2,048 embeddings of 1,024 values are 27 MB of JSON
# an origin as browsers send it: in lower case, without a path, and without the port that its scheme implies
ORIGIN = r"(?!http://.*:80$|https://.*:443$)[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?"
IN_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME"  # the environment variable that Lambda sets


class SettingsError(ValueError):
    """An environment variable that cannot be used: the message names it, what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One field for each environment variable, named like it in lower case."""

    bundle_dir: Path = DEFAULT_BUNDLE
    max_body_bytes: int = LAMBDA_BODY_LIMIT
    max_reply_bytes: int = SERVER_REPLY_LIMIT
    max_texts: int = DEFAULT_TEXTS  # in one request for embeddings
    max_tokens: int = DEFAULT_TOKENS  # in all texts of one request, special tokens included
    api_base_path: str = DEFAULT_BASE_PATH
    mcp_origins: tuple[str, ...] = ()  # of web pages that may ask /mcp beside those on this machine
    cors_origins: tuple[str, ...] = ()  # of web pages that may ask all routes of the server
    powertools_service_name: str = DEFAULT_SERVICE
    powertools_metrics_namespace: str = DEFAULT_NAMESPACE
    aws_lambda_initialization_type: str = "on-demand"
    api_keys: tuple[str, ...] = field(default=(), repr=False)  # any of them will do; those of API_KEYS_FILE too
    bundle_url: str = ""  # s3://BUCKET/PREFIX, if BUNDLE_DIR is that; bundle_dir may then have the same model
    bundle_poll_seconds: int = DEFAULT_POLL_SECONDS

    @property
    def max_characters(self) -> int:
        """Return the most characters that the texts of one request may have together."""
        return CHARACTERS_PER_TOKEN * self.max_tokens


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of an environment; in Lambda the defaults are what a function can answer in time.

    Raises SettingsError if a number is not one or is out of range, if a path does not start with a slash, if an origin
    is none, or if an API key is too short.
    """
    reply_limit, tokens, origins = SERVER_REPLY_LIMIT, DEFAULT_TOKENS, ""
    cors_origins: tuple[str, ...] = ()
    if IN_LAMBDA in environment:
        # no page can lead a browser to a function by another name, and the API's own rules say which pages may ask
        reply_limit, tokens, origins = LAMBDA_REPLY_LIMIT, LAMBDA_TOKENS, "*"
    else:
        cors_origins = _origins(environment, "CORS_ORIGINS")
    bundle_dir, bundle_url = environment.get("BUNDLE_DIR") or DEFAULT_BUNDLE, ""
    if str(bundle_dir).startswith(S3):
        bundle_dir, bundle_url = environment.get("LOCAL_BUNDLE_DIR") or DEFAULT_BUNDLE, bundle_url_of(str(bundle_dir))
    return Settings(
        bundle_dir=Path(bundle_dir),
        bundle_url=bundle_url,
        bundle_poll_seconds=_whole_number(environment, "BUNDLE_POLL_SECONDS", DEFAULT_POLL_SECONDS, LONGEST_POLL),
        max_body_bytes=_whole_number(environment, "MAX_BODY_BYTES", LAMBDA_BODY_LIMIT, LAMBDA_BODY_LIMIT),
        max_reply_bytes=_whole_number(environment, "MAX_REPLY_BYTES", reply_limit, reply_limit),
        max_texts=_whole_number(environment, "MAX_TEXTS", DEFAULT_TEXTS, 10_000),
        max_tokens=_whole_number(environment, "MAX_TOKENS", tokens, 1_000_000),
        api_base_path=_path(environment, "API_BASE_PATH", DEFAULT_BASE_PATH),
        mcp_origins=(*(environment.get("MCP_ORIGINS") or origins).replace(",", " ").split(), *cors_origins),
        cors_origins=cors_origins,
        powertools_service_name=environment.get("POWERTOOLS_SERVICE_NAME") or DEFAULT_SERVICE,
        powertools_metrics_namespace=environment.get("POWERTOOLS_METRICS_NAMESPACE") or DEFAULT_NAMESPACE,
        aws_lambda_initialization_type=environment.get("AWS_LAMBDA_INITIALIZATION_TYPE") or "on-demand",
        api_keys=_api_keys(environment),
    )


def bundle_url_of(text: str) -> str:
    """Return an s3:// address without a slash at its end. Raises SettingsError if it names no bucket."""
    bucket = text.removeprefix(S3).partition("/")[0]
    if not text.startswith(S3) or not bucket or any(character in text for character in "?#"):
        raise SettingsError(f"BUNDLE_DIR: {text!r}, expected a folder or {S3}BUCKET/PREFIX")
    return text.rstrip("/")


def _whole_number(environment: Mapping[str, str], name: str, default: int, largest: int) -> int:
    found = environment.get(name) or str(default)
    if not (found.isascii() and found.isdecimal() and len(found) <= 20 and 1 <= int(found) <= largest):
        raise SettingsError(f"{name}: {found!r}, expected a whole number from 1 to {largest}")
    return int(found)


def _path(environment: Mapping[str, str], name: str, default: str) -> str:
    found = environment.get(name) or default
    if not found.startswith("/"):
        raise SettingsError(f"{name}: {found!r}, expected a path that starts with a slash; set {'/' + found!r}")
    return found


def _origins(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    origins = tuple(environment.get(name, "").replace(",", " ").split())
    for origin in origins:
        if origin != "*" and not re.fullmatch(ORIGIN, origin):
            expected = "expected a web page's scheme and host in lower case, and its port if it has one, without a path"
            raise SettingsError(f"{name}: {origin!r}, {expected}; write https://example.com, or * for all pages")
    return origins


def _api_keys(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys, which errors count and never show."""
    keys = _split_keys("API_KEYS", environment["API_KEYS"]) if environment.get("API_KEYS") else []
    if file := environment.get("API_KEYS_FILE"):
        where = f"API_KEYS_FILE: {file}"
        try:
            keys += _split_keys(where, Path(file).read_text(encoding="ascii", errors="replace"))
        except OSError as error:
            raise SettingsError(f"{where}: cannot be read ({error.strerror}); name a file with a key a line") from error
    return tuple(keys)


def _split_keys(where: str, text: str) -> list[str]:
    keys = text.replace(",", " ").split()
    advice = "make one with `openssl rand -hex 32`"
    if not keys:
        raise SettingsError(f"{where}: there is no key; {advice}")
    for number, key in enumerate(keys, start=1):
        if len(key) < SHORTEST_KEY or not key.isascii():
            found = f"has {len(key)} characters" if key.isascii() else "has characters that are not ASCII"
            raise SettingsError(f"{where}: key {number} {found}, expected {SHORTEST_KEY} or more of ASCII; {advice}")
    return keys
