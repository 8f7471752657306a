"""Embed the shards of a corpus on a Ray cluster: `semsearch index PATH --ray ADDRESS`.

Ray Data hands each shard to a pool of actors, one worker for each core of the cluster. The model and this code reach
the nodes through Ray, so they need neither a shared disk nor a hub; they need the packages of requirements.txt. A
shard carries its number, because Ray returns them in any order. Ray repeats the shards of a killed worker or node.

Ray Data's own readers are left out: they guess types (the id 007 becomes 7), and the bundle would differ from that of
an export on one machine. The machine that runs the export reads the corpus, as it does without Ray.
"""

import os
import socket
from collections.abc import Iterator
from itertools import count as numbers
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from semsearch.engine.bundle import MODEL, TOKENIZER, ModelInfo
from semsearch.engine.embedder import Embedder
from semsearch.indexing.errors import ClusterError
from semsearch.indexing.vectors.embed import OnEmbedded, Shard, embed_shard, take_shard

if TYPE_CHECKING:
    import pyarrow as pa

SENT_PACKAGE = Path(__file__).parents[1]  # the nodes get it from here
SECONDS_TO_ANSWER = 10
ENVIRONMENT = {"TOKENIZERS_PARALLELISM": "false"}  # each actor has one core


class Cluster:
    """A Ray cluster that embeds a corpus, and its figures for the summary."""

    def __init__(self, address: str, bundle: Path) -> None:
        """Take the address, "" for Ray's own default, and the folder that holds the model."""
        self._address = address
        self._bundle = bundle
        self.nodes: int = 0
        self.workers: int = 0

    def embed(self, embedder: Embedder, texts: Iterator[str], count: OnEmbedded) -> Iterator[Shard]:
        """Embed the texts on all cores of the cluster; yield their shards as they come, in any order.

        `count` gets the number of texts of each. Raises ClusterError if there is no such cluster.
        """
        import ray
        from ray.data import ActorPoolStrategy

        _connect(self._address)
        try:
            shards = list(_put_shards(texts))
            if not shards:
                return
            self.nodes = sum(node["Alive"] for node in ray.nodes())
            self.workers = min(len(shards), max(1, int(ray.cluster_resources().get("CPU", 0))))
            model = {name: (self._bundle / name).read_bytes() for name in (MODEL, TOKENIZER)}
            embedded = ray.data.from_arrow_refs(shards).map_batches(
                ShardEmbedder,
                fn_constructor_args=(ray.put(model), embedder.model),
                batch_size=1,  # a row is a whole shard
                batch_format="pyarrow",
                compute=ActorPoolStrategy(size=self.workers),
                num_cpus=1,
            )
            for row in embedded.iter_rows():
                scales = np.frombuffer(row["scales"], np.float32)
                codes = np.frombuffer(row["codes"], np.int8).reshape(len(scales), embedder.model.dim)
                count(len(scales))
                yield Shard(row["number"], codes, scales, np.frombuffer(row["is_truncated"], bool))
        finally:
            ray.shutdown()

    def describe(self) -> str:
        """Return the line of the summary about the cluster."""
        return f"{self.workers} worker{'s' * (self.workers != 1)} on {self.nodes} node{'s' * (self.nodes != 1)} of Ray"


class ShardEmbedder:
    """One open model in a worker process of Ray."""

    def __init__(self, model: Any, info: ModelInfo) -> None:
        """Take the reference to the model's files. They are mapped, so their folder can go at once."""
        import ray

        with TemporaryDirectory() as folder:
            for name, content in ray.get(model).items():
                (Path(folder) / name).write_bytes(content)
            self._embedder = Embedder.open(Path(folder), info)

    def __call__(self, batch: "pa.Table") -> "pa.Table":
        """Return the rows of the one shard of this batch."""
        import pyarrow as pa

        (row,) = batch.to_pylist()
        shard = embed_shard(self._embedder, row["number"], row["texts"])
        columns = {
            "number": shard.number,
            "codes": shard.codes.tobytes(),
            "scales": shard.scales.tobytes(),
            "is_truncated": shard.is_truncated.tobytes(),
        }
        return pa.table({name: [value] for name, value in columns.items()})


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

    for number in numbers():
        shard = list(take_shard(texts))
        if not shard:
            return
        yield ray.put(pa.table({"number": [number], "texts": pa.array([shard], pa.list_(pa.large_string()))}))
