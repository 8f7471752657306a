"""What a small caller waits beside a bulk request, in batches, and how many of its requests are refused.

The server has one worker. A request to /v1/embeddings has some hundred thousand tokens. Until it is answered, a caller
of /similar sends four words every tenth of a second.
"""

import json
import re
import statistics
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.server.servers import ServerCommand, running, this_server

BULK_TEXTS = 800  # texts of about 128 tokens
SECONDS_BETWEEN = 0.1
TIMEOUT = 600  # seconds
BATCHES = re.compile(r"^semantic_search_batch_tokens_count (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fairness:
    """What the small caller saw. The milliseconds of a batch are those of the bulk request over all batches."""

    statuses: dict[str, int]  # replies by status
    batch: float  # milliseconds
    p50: float  # milliseconds of the replies with status 200
    p95: float

    def rows(self) -> list[tuple[str, str]]:
        """Return the rows of a table: what was measured, and the figure."""
        refused = f"{self.statuses.get('429', 0)} of {sum(self.statuses.values())}"
        case = "/similar beside a request of some 100,000 tokens"
        return [
            (f"{case}: 429", refused),
            (f"{case}: p50, in batches", f"{self.p50 / self.batch:.1f}"),
            (f"{case}: p95, in batches", f"{self.p95 / self.batch:.1f}"),
        ]


def measure_fairness(bundle: Path, work: Path, long: Sequence[str], short: Sequence[str]) -> Fairness:
    """Return what a caller with short texts sees while a request with long ones is answered."""
    server = this_server(bundle, "--workers", "1")
    with running(server, work / "fairness.log"):
        _post(server, "/similar", {"text": short[0]})
        bulk = threading.Thread(target=_post, args=(server, "/v1/embeddings", {"input": long[:BULK_TEXTS]}))
        batches, begin = _batches(server), time.perf_counter()
        bulk.start()
        statuses: Counter[str] = Counter()
        milliseconds = []
        while bulk.is_alive():
            asked = time.perf_counter()
            status = _post(server, "/similar", {"text": short[statuses.total() % len(short)]})
            statuses[str(status)] += 1
            if status == 200:
                milliseconds.append((time.perf_counter() - asked) * 1e3)
            bulk.join(SECONDS_BETWEEN)
        batch = (time.perf_counter() - begin) * 1e3 / (_batches(server) - batches)
    quantiles = statistics.quantiles(milliseconds, n=20)
    return Fairness(dict(statuses), batch, quantiles[9], quantiles[18])


def _post(server: ServerCommand, path: str, body: dict[str, Any]) -> int:
    """Return the status of the reply. Raises OSError if there is none."""
    address, headers = f"http://127.0.0.1:{server.port}{path}", {"content-type": "application/json"}
    try:
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as reply:
            reply.read()
            return int(reply.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def _batches(server: ServerCommand) -> float:
    """Return the number of batches that the server has counted."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=TIMEOUT) as reply:
        found = BATCHES.search(reply.read().decode())
    assert found is not None
    return float(found[1])
