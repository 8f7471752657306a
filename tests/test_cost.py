"""The table of costs: its arithmetic done again by hand, and its assumptions about log lines held against real ones."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import cost, places
from bench.folders import RESULTS
from bench.needs import Missing
from tests.cloudformation import Stack, load_template

ROOT = Path(__file__).parents[1]
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0"  # Lambda sets one for each request


def test_one_request_a_second_costs_what_pen_and_paper_say() -> None:
    dollars = cost.month(1, 2.5, 1769, cost.ARCHITECTURES["x86_64"])
    requests = 2_628_000  # 730 hours of 3,600 seconds
    # 2.5 ms are billed as 3; 1,769 MB are 1.727539 GB
    assert dollars["computing"] == pytest.approx(requests * 0.003 * 1.727539 * 0.0000166667, rel=1e-5)
    assert dollars["Lambda's requests"] == pytest.approx(0.5256)
    assert dollars["HTTP API"] == pytest.approx(2.628)
    assert dollars["logs"] == pytest.approx(requests * 1_350 / 1e9 * 0.50)


def test_a_started_millisecond_is_billed_whole() -> None:
    price = cost.ARCHITECTURES["arm64"].gigabyte_second
    assert cost.compute(2.1, 1024, price) == cost.compute(3.0, 1024, price) == pytest.approx(0.003 * price)


def test_the_table_has_a_row_for_each_rate_and_its_sum_is_the_sum() -> None:
    columns, rows = cost.table(2.5, 1769)
    assert [(row[0], row[2]) for row in rows] == [
        (name, rate) for name in ("x86_64", "arm64") for rate in ("1", "10", "100")
    ]
    assert {row[1] for row in rows} == {"2.5"}
    for row in rows:
        amounts = dict(zip(columns, row, strict=True))
        parts = ("computing", "Lambda's requests", "HTTP API", "logs")
        total = sum(float(amounts[part].strip("$").replace(",", "")) for part in parts)
        assert float(amounts["sum"].strip("$").replace(",", "")) == pytest.approx(total, abs=0.021)  # four roundings


MEASURED: dict[str, object] = {
    **{"commit": "abc1234", "python": "3.13.0", "machine": "a CPU", "texts": "", "measured": "2026-11-21T12:00:00"},
    "seen": {"1769": {"warm": [2.0, 3.0, 5.8], "init": [400.0, 300.0, 500.0]}},
}


def measured(folder: Path, monkeypatch: pytest.MonkeyPatch, result: dict[str, object]) -> None:
    (folder / "memory.json").write_text(json.dumps(result))
    monkeypatch.setattr("bench.report.RESULTS", folder)


def test_the_milliseconds_are_the_mean_that_was_measured_and_so_is_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(tmp_path, monkeypatch, MEASURED)
    cost.run(argparse.Namespace(milliseconds=None, memory=1769))
    result = json.loads((tmp_path / "cost.json").read_text())
    assert result["milliseconds"] == pytest.approx(3.6)
    assert result["init_milliseconds"] == 400
    assert result["commit"] == "abc1234"
    assert "<sub>commit abc1234, Python 3.13.0, a CPU, 2026-11-21</sub>" in (tmp_path / "cost.md").read_text()


def test_a_memory_size_that_was_not_measured_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(tmp_path, monkeypatch, MEASURED)
    with pytest.raises(Missing, match="no measurement at 512 MB, expected one") as raised:
        cost.run(argparse.Namespace(milliseconds=None, memory=512))
    assert "run `python -m bench memory`" in str(raised.value)


def test_the_published_tables_are_what_the_prices_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = json.loads((RESULTS / "cost.json").read_text())
    measured(tmp_path, monkeypatch, json.loads((RESULTS / "memory.json").read_text()))
    cost.run(argparse.Namespace(milliseconds=None, memory=published["memory"]))
    for name in ("cost", "cost_extras", "cost_places"):
        assert (tmp_path / f"{name}.md").read_text() == (RESULTS / f"{name}.md").read_text()


def test_s3_vectors_costs_what_amazons_own_example_says() -> None:
    # https://aws.amazon.com/s3/pricing/: 40 indexes of 250,000 vectors of 6.17 KB, of which 5.17 KB are searched, and a
    # million queries of one index each; a sixth of the vectors are written anew. Amazon's sum is $11.38.
    stored = 10_000_000 * 6.17 / 2**20
    queries = 1_000_000 * places.query_dollars(250_000, round(5.17 * 1024))
    written = stored / 6 * places.WRITTEN_GIGABYTE
    assert stored * places.VECTORS_GIGABYTE + written + queries == pytest.approx(11.38, abs=0.05)


def test_places_cost_what_pen_and_paper_say() -> None:
    columns, rows = places.places_table()
    million = dict(zip(columns, rows[1], strict=True))
    assert million["texts"] == "1,000,000"
    assert million["image"] == "$0.14"  # 1.436 GB
    assert million["S3 Vectors, stored"] == f"${1e6 * 2_661 / 2**30 * 0.06:.2f}" == "$0.15"
    # 2.5 dollars and 1,661 bytes of 100,000 vectors at 0.004 dollars a TiB, of 900,000 at 0.002
    assert million["1,000,000 queries"] == f"${2.5 + 1e6 * 1_661 / 2**40 * (400 + 1_800):.2f}"
    assert rows[-1][1:3] == ("too large", "too large")


def test_extras_cost_what_pen_and_paper_say() -> None:
    _, rows = cost.extras(6.2, 422.4, 1769)
    dollars = {extra: amount for extra, amount, _ in rows}
    month = 2_628_000 * 1.727539  # seconds and gigabytes
    assert dollars["a cold start of 422 ms"] == f"${0.423 * 1.727539 * 0.0000166667:.6f}"
    assert (
        dollars["ReservedConcurrency=1 of 1,769 MB, computing all the time"]
        == f"${month * 0.0000166667:.2f}"
        == "$75.67"
    )
    assert dollars["one provisioned environment of 1,769 MB"] == f"${month * 0.0000041667:.2f}" == "$18.92"
    assert dollars["SnapStart's snapshot of 1,769 MB"] == f"${month * 0.0000015046:.2f}" == "$6.83"
    # the first of each second and a twentieth of the others, $5 a million
    assert dollars["Tracing=Active at 1 requests/s"] == "$13.14"
    assert dollars["Tracing=Active at 10 requests/s"] == f"${2.628 * 1.45 * 5:.2f}"
    assert dollars["Tracing=Active at 100 requests/s"] == f"${2.628 * 5.95 * 5:.2f}"
    assert rows[0][2] == "each; as much as 60 warm requests"  # 423 billed milliseconds to 7


def test_the_template_has_as_many_alarm_metrics_and_dashboards_as_are_priced() -> None:
    resources = load_template(ROOT / "template.yaml")["Resources"].values()
    alarms = Stack(load_template(ROOT / "template.yaml")).of_type("AWS::CloudWatch::Alarm").values()
    metrics = [sum("MetricStat" in metric for metric in alarm.get("Metrics", [])) or 1 for alarm in alarms]
    assert sum(metrics) == cost.ALARM_METRICS
    assert sum(resource["Type"] == "AWS::CloudWatch::Dashboard" for resource in resources) == 1


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
    api = Stack(load_template(ROOT / "template.yaml")).of_type("AWS::Serverless::HttpApi")["Api"]
    line = api["AccessLogSettings"]["Format"]
    values = {
        "requestTime": "21/Nov/2026:11:47:47 +0000",
        "requestId": "JKJaXmPLvHcESHA=",
        "routeKey": "POST /similar",
        "status": "200",
        "error.message": "-",
        "integration.requestId": IDENTIFIER,
        "integration.error": "-",
        "authorizer.error": "-",
        "identity.userArn": "arn:aws:sts::123456789012:assumed-role/application-of-some-team/session-of-some-caller",
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
from bench.sample_event import sample_event
from function.handler import handler
for text in ("goose", "baker"):
    handler(sample_event("/similar", {{"text": text}}), SimpleNamespace(aws_request_id={IDENTIFIER!r}))
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
