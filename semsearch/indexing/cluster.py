"""Embed the shards of a corpus on a Ray cluster: `semsearch index PATH --ray ADDRESS`.

Ray Data hands each shard to a pool of actors, one worker for each core or GPU of the cluster. The model and this code
reach the nodes through Ray, so they need neither a shared disk nor a hub; they need the packages of requirements.txt. A
shard carries the place of its first text, because Ray returns shards in any order. Ray repeats the shards of a killed
worker or node.

Ray Data's own readers are left out: they guess types (the id 007 becomes 7), and the bundle would differ from that of
one machine. The machine that runs `semsearch index` reads the corpus, as it does without Ray.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from semsearch.engine.bundle import MODEL, TOKENIZER, ModelInfo
from semsearch.engine.embedder import Embedder
from semsearch.indexing.errors import ClusterError
from semsearch.indexing.models.source import Source
from semsearch.indexing.vectors import embed
from semsearch.indexing.vectors.device import WORK, FindSource, embed_on_device
from semsearch.indexing.vectors.embed import (
    OnEmbedded,
    PassageEmbedder,
    embed_on_cores,
    take_shards,
    tokenize_passages,
)
from semsearch.indexing.vectors.shards import Shard

if TYPE_CHECKING:
    import pyarrow as pa

SENT_PACKAGE = Path(__file__).parents[1]  # the nodes get it from here
SECONDS_TO_ANSWER = 10
ENVIRONMENT = {"TOKENIZERS_PARALLELISM": "false"}  # each actor has one core


class Cluster(PassageEmbedder):
    """A Ray cluster that embeds a corpus, and its figures for the summary."""

    def __init__(
        self, address: str, bundle: Path, model: ModelInfo, device: str, dtype: str | None, find_source: FindSource
    ) -> None:
        """Take the address, "" for Ray's own default, the folder that holds the model, and what describes the model.

        `find_source` returns the float model, which is used unless device is cpu and dtype is not float32. cuda is a
        GPU for each worker, and auto the same if the cluster has one.
        """
        self._address = address
        self._bundle = bundle
        self._model = model
        self._device, self._dtype, self._find_source = device, dtype, find_source
        self.nodes: int = 0
        self.workers: int = 0

    def embed(self, texts: Iterator[str], count: OnEmbedded) -> Iterator[Shard]:
        """Embed the texts on all cores or GPUs of the cluster; yield their shards as they come, in any order.

        Raises ClusterError if there is no such cluster, or if it has no GPU and one is wanted.
        """
        import ray
        from ray.data import ActorPoolStrategy

        _connect(self._address)
        try:
            shards = list(_put_shards(texts))
            if not shards:
                return
            self.nodes = sum(node["Alive"] for node in ray.nodes())
            resource, float_model = self._choose(ray.cluster_resources())
            self.workers = min(len(shards), max(1, int(ray.cluster_resources().get(resource, 0))))
            model = {name: (self._bundle / name).read_bytes() for name in (MODEL, TOKENIZER)}
            embedded = ray.data.from_arrow_refs(shards).map_batches(
                ShardEmbedder,
                fn_constructor_args=(ray.put(model), self._model, ray.put(float_model)),
                batch_size=1,  # a row is a whole shard
                batch_format="pyarrow",
                compute=ActorPoolStrategy(size=self.workers),
                **{f"num_{resource.lower()}s": 1},
            )
            for row in embedded.iter_rows():
                scales = np.frombuffer(row["scales"], np.float32)
                codes = np.frombuffer(row["codes"], np.int8).reshape(len(scales), self._model.dim)
                count(len(scales))
                yield Shard(row["begin"], codes, scales, np.frombuffer(row["is_truncated"], bool), row["embedded_by"])
        finally:
            ray.shutdown()

    def _choose(self, resources: Mapping[str, float]) -> "tuple[str, SentModel | None]":
        """Return Ray's name of the resource that a worker takes, and the float model if one is used."""
        device, dtype = self._device, self._dtype
        has_gpu = resources.get("GPU", 0) >= 1
        if device == "auto":
            device = "cuda" if has_gpu else "cpu"
        if device == "cpu":
            return "CPU", SentModel.read(self._find_source(), "cpu", "float32") if dtype == "float32" else None
        if not has_gpu or device != "cuda":
            raise ClusterError(f"--ray: found no device {device} in the cluster, expected cuda and nodes with GPUs")
        return "GPU", SentModel.read(self._find_source(), "cuda", dtype or "float16")

    def describe(self) -> str:
        """Return the line of the summary about the cluster."""
        return f"{self.workers} worker{'s' * (self.workers != 1)} on {self.nodes} node{'s' * (self.nodes != 1)} of Ray"


@dataclass(frozen=True, slots=True)
class SentModel:
    """A float model as it travels to the workers: its properties, the files of each of its folders, and how it runs."""

    source: Source
    files: dict[Path, dict[str, bytes]]
    device: str
    dtype: str

    @classmethod
    def read(cls, source: Source, device: str, dtype: str) -> "SentModel":
        """Read the files of a model."""
        folders = {source.folder, *(step.folder for step in source.steps)}
        files = {
            folder: {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} for folder in folders
        }
        return cls(source, files, device, dtype)

    def write(self, folder: Path) -> Source:
        """Write the files into a folder of this machine, and return the model that is there."""
        places = {}
        for number, (name, files) in enumerate(self.files.items()):
            places[name] = folder / str(number)
            places[name].mkdir()
            for file, content in files.items():
                (places[name] / file).write_bytes(content)
        steps = tuple(replace(step, folder=places[step.folder]) for step in self.source.steps)
        return replace(self.source, folder=places[self.source.folder], steps=steps)


class ShardEmbedder:
    """One open model in a worker process of Ray."""

    def __init__(self, model: Any, info: ModelInfo, float_model: Any) -> None:
        """Take the references to the model's files, and to the float model or None.

        The 8-bit model is mapped, so its folder can go at once; the other one is kept until the worker ends.
        """
        import ray

        self._float: SentModel | None = ray.get(float_model)
        if self._float is not None:
            self._folder = TemporaryDirectory()
            self._source = self._float.write(Path(self._folder.name))
            self._work = resolve_name(WORK)
        with TemporaryDirectory() as folder:
            for name, content in ray.get(model).items():
                (Path(folder) / name).write_bytes(content)
            self._embedder = Embedder.open(Path(folder), info)

    def __call__(self, batch: "pa.Table") -> "pa.Table":
        """Return the rows of the one shard of this batch."""
        import pyarrow as pa

        (row,) = batch.to_pylist()
        shard = self._embed(row["begin"], row["texts"])
        columns = {
            "begin": shard.begin,
            "codes": shard.codes.tobytes(),
            "scales": shard.scales.tobytes(),
            "is_truncated": shard.is_truncated.tobytes(),
            "embedded_by": shard.embedded_by,
        }
        return pa.table({name: [value] for name, value in columns.items()})

    def _embed(self, begin: int, texts: list[str]) -> Shard:
        sent = self._float
        if sent is None:
            return embed_on_cores(self._embedder, begin, texts)
        tokens = list(tokenize_passages(self._embedder, texts))
        run = partial(self._work, "embed", self._source, sent.dtype, sent.device)
        return embed_on_device(run, sent.device, sent.dtype, begin, tokens)


def _connect(address: str) -> None:
    """Connect to the cluster and send it this code. Raises ClusterError if it does not answer."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # without it, Ray sends reports to its makers
    import ray

    where = address or os.environ.get("RAY_ADDRESS") or "this machine"
    try:
        _check_answer(where)
        ray.init(address or None, runtime_env={"py_modules": [str(SENT_PACKAGE)], "env_vars": ENVIRONMENT})
    except (OSError, ValueError, RuntimeError) as error:
        # an OSError as the cause would count as an error of the disk
        raise ClusterError(f"--ray: no cluster at {where} ({error}), expected one; see docs/cluster.md") from None


def _check_answer(address: str) -> None:
    """Raise OSError if nothing listens at HOST:PORT: Ray itself would wait for minutes. Ray resolves other names."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_ANSWER).close()


def _put_shards(texts: Iterator[str]) -> Iterator[Any]:
    """Put each shard into Ray's object store, as a table of one row, which Ray never divides; yield the references."""
    import pyarrow as pa
    import ray

    for begin, shard in take_shards(texts, embed.TEXTS_PER_SHARD):
        yield ray.put(pa.table({"begin": [begin], "texts": pa.array([shard], pa.list_(pa.large_string()))}))
