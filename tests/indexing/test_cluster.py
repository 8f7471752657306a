"""What goes to a Ray cluster and comes back, with a stand-in for Ray. tests/cluster has a real cluster."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from semsearch.engine.bundle import BY_CORES
from semsearch.engine.embedder import Embedder
from semsearch.indexing import cluster
from semsearch.indexing.cluster import SENT_PACKAGE, Cluster, SentModel, ShardEmbedder
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.embedding import EmbedderChoice
from semsearch.indexing.errors import ClusterError, PackagesError
from semsearch.indexing.models.modules import Step
from semsearch.indexing.models.source import Source
from semsearch.indexing.vectors import embed
from semsearch.indexing.vectors.device import Device
from semsearch.indexing.vectors.embed import Cores, embed_on_cores
from semsearch.indexing.vectors.shards import Shard

NONE: Any = None


class Data:
    """The rows of tables, of which a pool of one actor makes others."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self.tables = tables

    def map_batches(self, actor: Any, *, fn_constructor_args: Any, **options: Any) -> "Data":
        made = actor(*fn_constructor_args)
        mapped = Data(made(table) for table in reversed(list(self.tables)))  # in any order
        calls.append(options)
        return mapped

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        return (row for table in self.tables for row in table.to_pylist())


calls: list[Any] = []


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module that stands in for Ray. Its objects are stored nowhere, and its cluster has two nodes with 3 cores."""
    module: Any = ModuleType("ray")
    module.put = module.get = lambda value: value
    module.nodes = lambda: [{"Alive": True}, {"Alive": False}, {"Alive": True}]
    module.cluster_resources = lambda: {"CPU": 3.0, "memory": 1e9}
    module.init = lambda address, **options: calls.append((address, options))
    module.shutdown = lambda: calls.append("shutdown")
    module.data = ModuleType("ray.data")
    module.data.ActorPoolStrategy = lambda size: f"{size} actors"
    module.data.from_arrow_refs = Data
    monkeypatch.setitem(sys.modules, "ray", module)
    monkeypatch.setitem(sys.modules, "ray.data", module.data)
    monkeypatch.setattr(embed, "TEXTS_PER_SHARD", 4)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "1")
    calls.clear()
    return module


def cluster_of(
    bundle: Path, embedder: Embedder, address: str = "", device: str = "cpu", dtype: str | None = None
) -> Cluster:
    return Cluster(address, bundle, embedder.model, device, dtype, lambda: NONE)


def same(first: Shard, second: Shard) -> bool:
    arrays = ("codes", "scales", "is_truncated")
    return (first.begin, first.embedded_by) == (second.begin, second.embedded_by) and all(
        np.array_equal(getattr(first, name), getattr(second, name)) for name in arrays
    )


def test_a_cluster_makes_the_shards_that_this_machine_makes(
    ray: Any, bundle: Path, embedder: Embedder, corpus: Corpus
) -> None:
    texts = [*corpus.texts[:9], "the goose " * 30]
    of_cluster, counts = cluster_of(bundle, embedder), list[int]()
    assert of_cluster.describe() == "0 workers on 0 nodes of Ray"
    shards = list(of_cluster.embed(iter(texts), counts.append))
    assert counts == [2, 4, 4]
    assert [shard.begin for shard in shards] == [8, 4, 0]
    assert all(
        same(shard, embed_on_cores(embedder, shard.begin, texts[shard.begin : shard.begin + 4])) for shard in shards
    )
    assert shards[0].is_truncated.tolist() == [False, True]
    assert shards[0].embedded_by == BY_CORES
    assert of_cluster.describe() == "3 workers on 2 nodes of Ray"
    environment = {"py_modules": [str(SENT_PACKAGE)], "env_vars": {"TOKENIZERS_PARALLELISM": "false"}}
    options = {"batch_size": 1, "batch_format": "pyarrow", "compute": "3 actors", "num_cpus": 1}
    assert calls == [(None, {"runtime_env": environment}), options, "shutdown"]
    assert SENT_PACKAGE.name == "semsearch"


def test_no_more_workers_start_than_there_are_shards(ray: Any, bundle: Path, embedder: Embedder) -> None:
    ray.nodes = lambda: [{"Alive": True}]
    of_cluster = cluster_of(bundle, embedder, "ray://[::1]:none")
    assert len(list(of_cluster.embed(iter(["a goose"]), lambda done: None))) == 1
    assert of_cluster.describe() == "1 worker on 1 node of Ray"
    assert calls[0][0] == "ray://[::1]:none"
    ray.cluster_resources = dict
    assert len(list(of_cluster.embed(iter(["a goose"] * 9), lambda done: None))) == 3
    assert of_cluster.workers == 1


def test_a_cluster_is_left_when_there_is_no_text_or_an_error(ray: Any, bundle: Path, embedder: Embedder) -> None:
    assert list(cluster_of(bundle, embedder).embed(iter(()), lambda done: None)) == []
    with pytest.raises(ClusterError, match="--ray: found no device cuda in the cluster, expected cuda and nodes with"):
        list(cluster_of(bundle, embedder, device="cuda").embed(iter(["a"]), lambda done: None))
    assert [call for call in calls if not isinstance(call, tuple)] == ["shutdown"] * 2


def test_a_cluster_that_does_not_answer_is_named(
    ray: Any, bundle: Path, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(address: str | None, **options: object) -> None:
        raise ConnectionError("nobody there")

    ray.init = refuse
    for stated, of_environment, named in (("", "", "this machine"), ("", "head", "head"), ("other", "head", "other")):
        monkeypatch.setenv("RAY_ADDRESS", of_environment)
        with pytest.raises(ClusterError) as caught:
            list(cluster_of(bundle, embedder, stated).embed(iter(["a"]), lambda done: None))
        assert str(caught.value) == f"--ray: no cluster at {named} (nobody there), expected one; see docs/cluster.md"
        assert caught.value.__cause__ is None
    connected: list[Any] = []

    def connect(place: tuple[str, int], seconds: float) -> Any:
        connected.append(place)
        raise OSError("refused")

    monkeypatch.setattr("socket.create_connection", connect)
    for address in ("10.0.0.1:6379", "ray://[::1]:10001"):
        with pytest.raises(ClusterError, match=r"\(refused\)"):
            list(cluster_of(bundle, embedder, address).embed(iter(["a"]), lambda done: None))
    assert connected == [("10.0.0.1", 6379), ("::1", 10001)]


@pytest.mark.parametrize(
    ("device", "dtype", "gpus", "chosen"),
    [
        ("cpu", None, 2, ("CPU", None)),
        ("cpu", "float32", 0, ("CPU", ("cpu", "float32"))),
        ("auto", None, 0, ("CPU", None)),
        ("auto", "float32", 0, ("CPU", ("cpu", "float32"))),
        ("auto", None, 1, ("GPU", ("cuda", "float16"))),
        ("auto", "float32", 1, ("GPU", ("cuda", "float32"))),
        ("cuda", None, 1, ("GPU", ("cuda", "float16"))),
        ("cuda", None, 0.5, None),
        ("cuda:1", None, 2, None),
        ("mps", None, 2, None),
    ],
)
def test_the_device_and_the_numbers_of_the_workers(
    device: str, dtype: str | None, gpus: float, chosen: tuple[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SentModel, "read", lambda source, *sent: (source, sent))
    of_cluster = Cluster("", Path(), NONE, device, dtype, lambda: NONE)
    resources: Mapping[str, float] = {"CPU": 4.0, "GPU": gpus} if gpus else {"CPU": 4.0}
    if chosen is None:
        with pytest.raises(ClusterError, match=f"found no device {device} in the cluster"):
            of_cluster._choose(resources)
        return
    resource, sent = chosen
    assert of_cluster._choose(resources) == (resource, sent and (None, sent))


def test_a_float_model_is_sent_with_the_files_of_each_folder(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "below").mkdir(parents=True)
        (folder / "model.bin").write_text(folder.name)
    source = Source(
        first,
        "a",
        None,
        "0",
        "mean",
        32,
        False,
        {},
        8,
        2,
        "bert",
        10,
        8,
        steps=(Step("Dense", second, 8), Step("Dense", first, 8)),
    )
    sent = SentModel.read(source, "cuda", "float16")
    assert (sent.device, sent.dtype) == ("cuda", "float16")
    assert sent.files == {folder: {"model.bin": folder.name.encode()} for folder in (first, second)}
    (tmp_path / "worker").mkdir()
    written = sent.write(tmp_path / "worker")
    folders = [written.folder, *(step.folder for step in written.steps)]
    assert [(folder / "model.bin").read_text() for folder in folders] == ["first", "second", "first"]
    assert {folder.parent for folder in folders} == {tmp_path / "worker"}
    assert replace(written, folder=first, steps=source.steps) == source


@pytest.mark.usefixtures("ray")
def test_a_worker_embeds_with_the_float_model_that_it_was_sent(
    bundle: Path, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Any] = []

    def work(task: str, source: Any, dtype: str, device: str, ids: Any, lengths: Any) -> Any:
        done.append((task, source, dtype, device, len(ids), lengths.tolist()))
        return np.eye(len(lengths), 48, dtype=np.float32)

    monkeypatch.setattr(cluster, "resolve_name", lambda name: work)
    sent: Any = SimpleNamespace(device="cpu", dtype="float32", write=lambda folder: folder)
    model = {name: (bundle / name).read_bytes() for name in ("model.ort", "tokenizer.txt")}
    worker = ShardEmbedder(model, embedder.model, sent)
    (row,) = worker(pa.table({"begin": [5], "texts": [["a goose", "the goose and"]]})).to_pylist()
    assert done == [("embed", Path(worker._folder.name), "float32", "cpu", 9, [5, 4])]
    assert (row["begin"], row["embedded_by"], len(row["codes"])) == (5, "cpu float32", 96)
    assert np.frombuffer(row["codes"], np.int8).reshape(2, 48).argmax(axis=1).tolist() == [1, 0]  # the longest first
    worker._folder.cleanup()


@pytest.mark.parametrize(
    ("ray_address", "device", "dtype", "kind"),
    [
        (None, "cpu", None, Cores),
        (None, "cpu", "int8", Cores),
        (None, "cpu", "float32", Device),
        (None, "auto", None, Device),
        (None, "cuda", "float16", Device),
        ("auto", "cpu", None, Cluster),
        ("head:6379", "cuda", "float16", Cluster),
    ],
)
def test_the_options_choose_who_embeds(
    ray_address: str | None, device: str, dtype: str | None, kind: type, bundle: Path, embedder: Embedder
) -> None:
    models: Any = SimpleNamespace(documents_folder=bundle)
    found = EmbedderChoice(None, ray_address, device, dtype).passage_embedder(models, embedder)
    assert type(found) is kind
    if isinstance(found, Cluster):
        expected = ("" if ray_address == "auto" else ray_address, bundle, embedder.model, device, dtype)
        assert (found._address, found._bundle, found._model, found._device, found._dtype) == expected


@pytest.mark.parametrize(
    ("choice", "missing"),
    [
        ((None, "cpu", None), None),
        ((None, "cpu", "int8"), None),
        ((None, "auto", None), None),
        ((None, "auto", "float32"), "--device: the package torch"),
        ((None, "cpu", "float32"), "--device: the package torch"),
        ((None, "mps", None), "--device: the package torch"),
        (("auto", "cpu", None), "--ray: the package ray"),
    ],
)
def test_who_embeds_needs_packages(
    choice: tuple[str | None, str, str | None], missing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ray", "torch"):
        monkeypatch.setitem(sys.modules, name, None)
    embedder = EmbedderChoice(None, *choice)
    if missing is None:
        embedder.require_packages()
        return
    with pytest.raises(PackagesError, match=f"{missing} is not installed"):
        embedder.require_packages()
