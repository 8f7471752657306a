"""What needs no Ray: the comparison of rows from other processors, and the error where Ray is not installed."""

import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from export.cluster import Cluster, _processor
from export.corpus import Corpus
from export.index.embed import embed_shard
from function.engine.embedder import Embedder
from tests.export.command_line import error_line, run

ADVICE = "expected the extra `cluster`; install it: pip install 'ray[data]'"


def test_rows_that_another_processor_rounded_differently_are_counted(embedder: Embedder, corpus: Corpus) -> None:
    cluster = Cluster("", Path("bundle"))
    assert "processors" not in cluster.describe()
    shard = embed_shard(embedder, 0, corpus.texts[:50])
    cluster._compare(embedder, shard, corpus.texts[:16])
    assert (cluster.compared, cluster.different) == (16, 0)
    codes, scales = shard.codes.copy(), shard.scales.copy()
    codes[3, 7] += 1
    scales[5] *= 1.001
    codes[40, 0] += 1  # beyond the rows that are compared
    cluster._compare(embedder, replace(shard, codes=codes, scales=scales), corpus.texts[:16])
    assert (cluster.compared, cluster.different) == (32, 2)
    assert cluster.describe().endswith("; 2 of 32 rows from other processors differ in their last bits")


def test_the_summary_says_when_the_first_shard_that_came_began(
    bundle: Path, embedder: Embedder, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stub of Ray yields the shards in another order; tests/cluster has the real one."""
    rows = []
    for number, began in ((1, 105.0), (0, 109.0), (2, 102.0)):
        shard = embed_shard(embedder, number, corpus.texts[10 * number : 10 * number + 10])
        columns = {name: getattr(shard, name).tobytes() for name in ("codes", "scales", "is_truncated")}
        rows.append({"number": number, "began": began, "processor": _processor(), **columns})
    ray = MagicMock()
    ray.nodes.return_value = [{"Alive": True}, {"Alive": False}]
    ray.cluster_resources.return_value = {"CPU": 2.0}
    ray.data.from_arrow_refs.return_value.map_batches.return_value.iter_rows.return_value = rows
    for name, module in (("ray", ray), ("ray.data", ray.data)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("export.cluster._connect", lambda address: None)
    monkeypatch.setattr("export.cluster._put_shards", lambda texts: range(3))
    monkeypatch.setattr("export.cluster.time.time", lambda: 100.0)
    cluster, told = Cluster("", bundle), list[int]()
    assert [shard.number for shard in cluster.embed(embedder, iter(corpus.texts), told.append)] == [1, 0, 2]
    assert told == [10, 10, 10]
    assert cluster.describe() == "2 workers on 1 node of Ray, which began after 5.0 s"
    ray.shutdown.assert_called_once()


@pytest.mark.parametrize(
    ("place", "option", "message"),
    [
        ("none.csv", "--ray", "--ray: the package ray is not installed"),  # reads no file
        ("s3://b/a.csv", "--strict", "s3://b/a.csv: the package pyarrow is not installed"),
    ],
)
def test_a_missing_package_of_the_cluster_is_named_with_its_extra(
    place: str, option: str, message: str, bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("ray", "pyarrow"):
        monkeypatch.setitem(sys.modules, module, None)
    line = error_line(run("corpus", "--corpus", place, "--out", bundle_copy, option))
    assert line == f"error: {message}, {ADVICE}"
