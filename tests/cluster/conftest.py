"""A Ray cluster of two nodes on this machine. `make test-cluster` makes the environment that has Ray.

Ray's warnings are its own, and each export is a process of its own, as for its users.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.project import ROOT
from tests.world import make_stories, write_bundle

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
TEXTS = 600
TEXTS_PER_SHARD = 5  # Ray takes some milliseconds for each, time enough to kill something; a second on a busy machine
MOST_SECONDS = int(os.environ.get("MOST_SECONDS", "300"))  # for an export; a killed worker or node may cost a minute


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests where Ray is not installed."""
    try:
        import ray
    except ModuleNotFoundError:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="ray is not installed: `make test-cluster` installs it"))


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Different texts of different lengths, with ids and a column."""
    stories = make_stories().texts
    texts = [f"{stories[number % 200].replace(',', '')[: 10 + number // 3]} {number}" for number in range(TEXTS)]
    rows = [f"{number},{text},{number % 7}\n" for number, text in enumerate(texts)]
    path = tmp_path_factory.mktemp("corpus") / "texts.csv"
    path.write_text("id,text,day\n" + "".join(rows), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose model the exports use."""
    return write_bundle(tmp_path_factory.mktemp("model") / "bundle", make_stories())


@pytest.fixture
def nodes() -> Iterator[Any]:
    """A cluster of two nodes with one core each; its second node may be killed."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.second = cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def start_export(model: Path, corpus_file: Path, tmp_path: Path) -> Callable[..., tuple[subprocess.Popen[str], Path]]:
    """Return what starts an export of the texts for a bundle of its own, with more options; it gives both."""

    def start(name: str, *options: str) -> tuple[subprocess.Popen[str], Path]:
        out = Path(shutil.copytree(model, tmp_path / name))
        script = Path(__file__).parent / "export_shards.py"
        variables = {
            "MOST_SECONDS": str(MOST_SECONDS),
            "TEXTS_PER_SHARD": str(TEXTS_PER_SHARD),
            "PYTHONPATH": str(ROOT),
        }
        process = subprocess.Popen(
            [sys.executable, script, "index", corpus_file, "--out", out, "--replace", *options],
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return process, out

    return start


@pytest.fixture
def local(start_export: Callable[..., tuple[subprocess.Popen[str], Path]]) -> Path:
    """The bundle that an export without Ray writes."""
    process, out = start_export("local")
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return out
