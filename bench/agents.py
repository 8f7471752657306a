"""Several agents with `semsearch mcp` of one index: how much memory they take together, and how soon one answers.

Memory is the proportional set size: pages that several processes have mapped are divided between them. The first answer
is that of the tool `search`, from the start of the process on; the files are in the page cache.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.report import Missing, make_provenance, report
from semsearch.engine.bundle import is_bundle

AGENTS = 5
SEARCH = {"name": "search", "arguments": {"query": "keep the texts private"}}
MESSAGE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": SEARCH}).encode() + b"\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="default: that of `make demo`")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    if not is_bundle(options.bundle):
        raise Missing(f"{options.bundle}: is no bundle; run `make demo`")
    agents, seconds = [], []
    for _ in range(AGENTS):
        begin = time.perf_counter()
        command = [sys.executable, "-m", "semsearch", "mcp", str(options.bundle)]
        agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        ask(agent)
        seconds.append(time.perf_counter() - begin)
        agents.append(agent)
    megabytes = [memory_of(agent.pid) for agent in agents]
    for agent in agents:
        agent.communicate()
    rows = [
        ("seconds to the first answer, median", f"{statistics.median(seconds):.2f}"),
        (f"MB of {AGENTS} agents together", f"{sum(megabytes):.0f}"),
    ]
    report("agents", ("what", "measured"), rows, {"results": rows}, make_provenance(options.bundle.name))
    return 0


def ask(agent: "subprocess.Popen[bytes]") -> None:
    """Search once, and wait for the reply."""
    assert agent.stdin is not None
    assert agent.stdout is not None
    agent.stdin.write(MESSAGE)
    agent.stdin.flush()
    while b'"id"' not in agent.stdout.readline():
        pass


def memory_of(process: int) -> float:
    """Return the proportional set size of a process in megabytes."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    found = re.search(r"^Pss: *(\d+) kB", rollup, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024 / 1e6
