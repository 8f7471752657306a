"""The events in events/, one from each source that AWS has: what `sam local invoke` is given, through the handler.

Their fields are those of AWS's own examples, their values are not:
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
https://docs.aws.amazon.com/lambda/latest/dg/services-alb.html
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EVENTS = sorted((ROOT / "deploy" / "events").glob("*.json"))

ANSWER_ALL = """
import json, sys
from function.handler import handler
print(json.dumps([handler(event, None) for event in json.load(sys.stdin)]))
"""


@pytest.fixture(scope="module")
def replies(bundle: Path) -> dict[str, dict[str, object]]:
    """What a process of its own answers to all of them, as one that Lambda started would."""
    events = [json.loads(path.read_text(encoding="utf-8")) for path in EVENTS]
    done = subprocess.run(
        [sys.executable, "-c", ANSWER_ALL],
        cwd=ROOT,
        env=os.environ | {"BUNDLE_DIR": str(bundle)},
        input=json.dumps(events),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip([path.stem for path in EVENTS], json.loads(done.stdout.splitlines()[-1]), strict=True))


def test_there_is_one_event_from_each_source() -> None:
    assert {path.stem for path in EVENTS} >= {"http-api", "rest-api", "function-url", "load-balancer"}


@pytest.mark.parametrize("name", [path.stem for path in EVENTS if not path.stem.endswith("-health")])
def test_an_event_with_a_question_is_answered_with_texts(replies: dict[str, dict[str, object]], name: str) -> None:
    assert replies[name]["statusCode"] == 200
    results = json.loads(str(replies[name]["body"]))["results"]
    assert len(results) == 3
    assert all(result["text"] for result in results)


def test_an_event_that_asks_for_health_is_told(replies: dict[str, dict[str, object]]) -> None:
    assert (replies["http-api-health"]["statusCode"], replies["http-api-health"]["body"]) == (200, '{"status":"ok"}')
