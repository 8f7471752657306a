"""The table of costs: its arithmetic done again by hand, and its assumptions about log lines held against real ones."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import cost
from bench.report import RESULTS
from tests.cloudformation import load_template

ROOT = Path(__file__).parents[1]
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0"  # Lambda sets one for each request


def test_one_request_a_second_costs_what_pen_and_paper_say() -> None:
    dollars = cost.month(1, 2.5, 1769, cost.ARCHITECTURES["x86_64"])
    requests = 2_628_000  # 730 hours of 3,600 seconds
    # 2.5 ms are billed as 3; 1,769 MB are 1.727539 GB
    assert dollars["computing"] == pytest.approx(requests * 0.003 * 1.727539 * 0.0000166667, rel=1e-5)
    assert dollars["Lambda's requests"] == pytest.approx(0.5256)
    assert dollars["HTTP API"] == pytest.approx(2.628)
    assert dollars["logs"] == pytest.approx(requests * 1_100 / 1e9 * 0.50)


def test_a_started_millisecond_is_billed_whole() -> None:
    price = cost.ARCHITECTURES["arm64"].gigabyte_second
    assert cost.compute(2.1, 1024, price) == cost.compute(3.0, 1024, price) == pytest.approx(0.003 * price)


def test_the_table_has_a_row_for_each_rate_and_its_sum_is_the_sum() -> None:
    columns, rows = cost.table(2.5, 1769)
    assert [row[:2] for row in rows] == [[name, rate] for name in ("x86_64", "arm64") for rate in ("1", "10", "100")]
    for row in rows:
        amounts = dict(zip(columns, row, strict=True))
        parts = ("computing", "Lambda's requests", "HTTP API", "logs")
        total = sum(float(amounts[part].strip("$").replace(",", "")) for part in parts)
        assert float(amounts["sum"].strip("$").replace(",", "")) == pytest.approx(total, abs=0.021)  # four roundings


@pytest.mark.skipif(not (RESULTS / "cost.json").exists(), reason="no table yet: run `python -m bench cost`")
def test_the_published_table_is_what_the_prices_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = json.loads((RESULTS / "cost.json").read_text())
    monkeypatch.setattr("bench.report.RESULTS", tmp_path)
    cost.run(argparse.Namespace(milliseconds=published["milliseconds"], memory=published["memory"]))
    assert (tmp_path / "cost.md").read_text() == (RESULTS / "cost.md").read_text()


def test_the_template_has_the_same_prices() -> None:
    prices = load_template(ROOT / "template.yaml")["Mappings"]["Prices"]
    for name, architecture in (("X86", cost.ARCHITECTURES["x86_64"]), ("Arm", cost.ARCHITECTURES["arm64"])):
        assert float(prices[name]["GigabyteSecond"]) == architecture.gigabyte_second
        assert float(prices[name]["ProvisionedGigabyteSecond"]) == architecture.provisioned_gigabyte_second
        assert float(prices[name]["GigabyteSecondOfProvisioned"]) == architecture.gigabyte_second_of_provisioned
    assert float(prices["Request"]["Lambda"]) == pytest.approx(cost.LAMBDA_REQUEST)
    assert float(prices["Request"]["HttpApi"]) == pytest.approx(cost.HTTP_API_REQUEST)


# from https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html, with the fields of one request
IDENTIFIER = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"
METRICS = {"durationMs": 2.512, "billedDurationMs": 3, "memorySizeMB": 1769, "maxMemoryUsedMB": 162}
PLATFORM_LINES = [
    {"type": "platform.start", "record": {"requestId": IDENTIFIER, "version": "12"}},
    {"type": "platform.report", "record": {"requestId": IDENTIFIER, "metrics": METRICS, "status": "success"}},
]


def test_the_lines_that_lambda_and_the_api_log_are_as_long_as_they_are_priced() -> None:
    lines = [json.dumps({"time": "2026-11-21T11:47:47.724Z"} | line, separators=(",", ":")) for line in PLATFORM_LINES]
    assert 0.8 * cost.LAMBDA_LINES < sum(map(len, lines)) <= cost.LAMBDA_LINES
    resources = load_template(ROOT / "template.yaml")["Resources"]
    line = resources["Api"]["Properties"]["AccessLogSettings"]["Format"]
    values = {
        "requestTime": "21/Nov/2026:11:47:47 +0000",
        "requestId": "JKJaXmPLvHcESHA=",
        "routeKey": "POST /similar",
        "status": "200",
        "error.message": "-",
        "identity.sourceIp": "203.0.113.255",
        "responseLatency": "12",
        "integrationLatency": "11",
    }
    for name, value in values.items():
        assert f"$context.{name}" in line
        line = line.replace(f"$context.{name}", value)
    assert "$" not in line
    assert 0.6 * cost.ACCESS_LINE < len(line) <= cost.ACCESS_LINE


def test_the_line_that_a_request_logs_is_as_long_as_it_is_priced(bundle: Path) -> None:
    script = f"""
from types import SimpleNamespace
from bench.events import http_event
from function.handler import handler
for text in ("goose", "baker"):
    handler(http_event("/similar", {{"text": text}}), SimpleNamespace(aws_request_id={IDENTIFIER!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ | {"BUNDLE_DIR": str(bundle), "_X_AMZN_TRACE_ID": TRACE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert json.loads(last)["message"] == "request"
    assert 0.6 * cost.FUNCTION_LINE < len(last) <= cost.FUNCTION_LINE
