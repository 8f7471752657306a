"""Rows of a cluster whose nodes have another processor are compared with this machine's. No Ray is needed for that."""

from dataclasses import replace
from pathlib import Path

from export.cluster import Cluster
from export.corpus import Corpus
from export.index.embed import embed_shard
from function.engine.embedder import Embedder


def test_rows_that_another_processor_rounded_differently_are_counted(embedder: Embedder, corpus: Corpus) -> None:
    cluster = Cluster("", Path("bundle"))
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


def test_without_other_processors_the_summary_compares_nothing() -> None:
    assert "processors" not in Cluster("", Path("bundle")).describe()
