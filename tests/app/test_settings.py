"""Environment variables: each one, what is taken when it is not set, and how a wrong one is told."""

import json
from pathlib import Path

import pytest

from semsearch.app.settings import (
    ApiKey,
    Settings,
    SettingsError,
    default_bundle,
    hash_key,
    read_settings,
    whole_number,
)

MOST = {"MAX_BODY_BYTES": 6_291_456, "MAX_REPLY_BYTES": 67_108_864, "MAX_TEXTS": 10_000, "MAX_TOKENS": 1_000_000}


def test_nothing_set_or_an_empty_text_gives_the_defaults() -> None:
    defaults = Settings(max_body_bytes=6_291_456, max_reply_bytes=67_108_864, max_texts=2048, max_tokens=300_000)
    assert read_settings({}) == read_settings(dict.fromkeys(("BUNDLE_DIR", "API_BASE_PATH", *MOST), "")) == defaults


def test_each_variable_is_read() -> None:
    environment = {
        "BUNDLE_DIR": "s3://bucket/prefix/",
        "LOCAL_BUNDLE_DIR": "/local",
        "BUNDLE_POLL_SECONDS": "86400",
        "MAX_BODY_BYTES": "5",
        "MAX_REPLY_BYTES": "6",
        "MAX_TEXTS": "7",
        "MAX_TOKENS": "8",
        "API_BASE_PATH": "base",
        "MCP_ORIGINS": "https://a.example",
        "CORS_ORIGINS": "https://b.example:8000 *",
        "ALLOWED_HOSTS": "C.example",
        "POWERTOOLS_SERVICE_NAME": "service",
        "POWERTOOLS_METRICS_NAMESPACE": "namespace",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start",
        "API_KEYS": "sixteen-letters!",
        "API_KEYS_ARN": "arn",
        "JWT_FILTER": "claim=column",
        "LOG_QUERIES": "1",
        "WARM_UP_ALL_ROUTES": "1",
    }
    assert read_settings(environment) == Settings(
        bundle_dir=Path("/local"),
        bundle_url="s3://bucket/prefix",
        bundle_poll_seconds=86_400,
        max_body_bytes=5,
        max_reply_bytes=6,
        max_texts=7,
        max_tokens=8,
        api_base_path="/base",
        mcp_origins=("https://a.example", "https://b.example:8000", "*"),
        cors_origins=("https://b.example:8000", "*"),
        allowed_hosts=("c.example",),
        powertools_service_name="service",
        powertools_metrics_namespace="namespace",
        aws_lambda_initialization_type="snap-start",
        api_keys=(ApiKey("key 1", hash_key("sixteen-letters!")),),
        api_keys_arn="arn",
        jwt_filter="claim=column",
        log_queries=True,
        warm_up_all_routes=True,
    )
    assert read_settings(
        {"LOG_QUERIES": "0", "WARM_UP_ALL_ROUTES": "0", "BUNDLE_DIR": "s3://bucket/prefix"}
    ) == Settings(bundle_url="s3://bucket/prefix")
    with pytest.raises(SettingsError, match="BUNDLE_POLL_SECONDS: '86401', expected a whole number from 1 to 86400"):
        read_settings({"BUNDLE_POLL_SECONDS": "86401"})
    with pytest.raises(SettingsError, match=r"^BUNDLE_DIR: .*'s3://'"):
        read_settings({"BUNDLE_DIR": "s3://"})


@pytest.mark.parametrize(
    ("closed", "expected"),
    [
        (Settings(), False),
        (Settings(api_keys=(ApiKey("a", "0"),)), True),
        (Settings(api_keys_arn="arn"), True),
        (Settings(jwt_filter="a=b"), True),
    ],
)
def test_a_caller_needs_a_key_or_a_claim_if_one_is_set(closed: Settings, expected: bool) -> None:
    assert closed.is_closed is expected


def test_a_number_has_at_most_twenty_digits() -> None:
    assert whole_number("00000000000000000005", 5, 5) == 5
    for text in ("000000000000000000005", "4", "6", ""):
        with pytest.raises(ValueError, match=f"'{text}', expected a whole number from 5 to 5"):
            whole_number(text, 5, 5)


def test_in_lambda_the_defaults_are_what_a_function_can_answer() -> None:
    found = read_settings({"AWS_LAMBDA_FUNCTION_NAME": "stories", "ALLOWED_HOSTS": "https://no.host"})
    assert found == Settings(max_body_bytes=3_211_264, max_reply_bytes=6_287_360, max_tokens=32_768, mcp_origins=("*",))
    with pytest.raises(SettingsError, match="MAX_REPLY_BYTES: '6287361', expected a whole number from 1 to 6287360"):
        read_settings({"AWS_LAMBDA_FUNCTION_NAME": "stories", "MAX_REPLY_BYTES": "6287361"})


def test_the_body_may_hold_all_characters_that_are_allowed_and_little_more() -> None:
    open_stack = {"AWS_LAMBDA_FUNCTION_NAME": "stories", "MAX_TEXTS": "16", "MAX_TOKENS": "1024"}
    found = read_settings(open_stack)
    longest = {"text": ["é" * (found.max_characters // 16)] * 16, "prompt_name": "document"}
    assert len(json.dumps(longest)) <= found.max_body_bytes == 163_840
    assert read_settings(open_stack | {"MAX_BODY_BYTES": "500000"}).max_body_bytes == 500_000
    assert read_settings({"MAX_TOKENS": "1000000"}).max_body_bytes == 6_291_456  # what Lambda takes


def test_origins_may_be_separated_by_commas_and_spaces() -> None:
    found = read_settings({"MCP_ORIGINS": "https://a.example, https://b.example"})
    assert found.mcp_origins == ("https://a.example", "https://b.example")


@pytest.mark.parametrize(
    ("code", "bundle"),
    [
        ("/var/task", "/var/task/bundle"),
        ("/venv/lib/python3.13/site-packages", "bundle"),
        ("/usr/lib/python3/dist-packages", "bundle"),
    ],
)
def test_the_default_bundle_is_beside_the_code_unless_pip_installed_a_wheel(code: str, bundle: str) -> None:
    assert default_bundle(Path(code)) == Path(bundle)


@pytest.mark.parametrize(("name", "most"), MOST.items())
def test_a_number_may_be_the_largest_there_is_and_no_larger(name: str, most: int) -> None:
    assert getattr(read_settings({name: str(most)}), name.lower()) == most
    for value in (str(most + 1), "0", "1.5", "many", "1e3", "٣"):
        with pytest.raises(SettingsError) as caught:
            read_settings({name: value})
        assert str(caught.value) == f"{name}: {value!r}, expected a whole number from 1 to {most}"


@pytest.mark.parametrize("value", ["stories", "/stories/"])
def test_a_base_path_is_read_with_and_without_slashes(value: str) -> None:
    assert read_settings({"API_BASE_PATH": value}).api_base_path == "/stories"
