"""Environment variables: each one, what is taken when it is not set, and how a wrong one is told."""

from pathlib import Path

import pytest

from semsearch.app.settings import Settings, SettingsError, default_bundle, read_settings

NUMBERS = [
    *(("MAX_BODY_BYTES", 6_291_456), ("MAX_REPLY_BYTES", 67_108_864), ("MAX_TEXTS", 10_000), ("MAX_TOKENS", 1_000_000))
]


def test_nothing_set_gives_the_defaults() -> None:
    assert read_settings({}) == Settings(
        max_body_bytes=6_291_456, max_reply_bytes=67_108_864, max_texts=2048, max_tokens=300_000, api_base_path="/"
    )


def test_in_lambda_the_defaults_are_what_a_function_can_answer() -> None:
    of_servers = {"CORS_ORIGINS": "no origin", "ALLOWED_HOSTS": "https://no.host"}  # API Gateway decides in Lambda
    found = read_settings({"AWS_LAMBDA_FUNCTION_NAME": "stories"} | of_servers)
    assert found == Settings(max_reply_bytes=6_287_360, max_tokens=32_768, mcp_origins=("*",))
    with pytest.raises(SettingsError, match="MAX_REPLY_BYTES: '6287361', expected a whole number from 1 to 6287360"):
        read_settings({"AWS_LAMBDA_FUNCTION_NAME": "stories", "MAX_REPLY_BYTES": "6287361"})


def test_origins_may_be_separated_by_commas_and_spaces() -> None:
    found = read_settings({"MCP_ORIGINS": "https://a.example, https://b.example"})
    assert found.mcp_origins == ("https://a.example", "https://b.example")


def test_an_empty_variable_counts_as_not_set() -> None:
    names = ("BUNDLE_DIR", "MAX_BODY_BYTES", "MAX_REPLY_BYTES", "MAX_TEXTS", "MAX_TOKENS", "API_BASE_PATH")
    assert read_settings(dict.fromkeys(names, "")) == read_settings({})


@pytest.mark.parametrize(
    ("code", "bundle"), [("/var/task", "/var/task/bundle"), ("/venv/lib/python3.13/site-packages", "bundle")]
)
def test_the_default_bundle_is_beside_the_code_unless_pip_installed_a_wheel(code: str, bundle: str) -> None:
    assert default_bundle(Path(code)) == Path(bundle)


@pytest.mark.parametrize(("name", "largest"), NUMBERS)
def test_a_number_may_be_the_largest_there_is_and_no_larger(name: str, largest: int) -> None:
    assert getattr(read_settings({name: str(largest)}), name.lower()) == largest
    with pytest.raises(SettingsError, match=f"expected a whole number from 1 to {largest}"):
        read_settings({name: str(largest + 1)})


@pytest.mark.parametrize("value", ["0", "1.5", "many", "1e3", "٣"])
def test_a_wrong_number_is_refused_by_name_with_what_was_found_and_expected(value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"MAX_TEXTS": value})
    assert str(caught.value) == f"MAX_TEXTS: {value!r}, expected a whole number from 1 to 10000"


@pytest.mark.parametrize("value", ["stories", "/stories/"])
def test_a_base_path_is_read_with_and_without_slashes(value: str) -> None:
    assert read_settings({"API_BASE_PATH": value}).api_base_path == "/stories"
