"""An export on a real cluster of two nodes writes the bytes of one without, whatever is killed meanwhile."""

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from semsearch.engine.bundle import INDEX, read_manifest
from semsearch.engine.quantization import dequantize
from semsearch.engine.tensors import map_tensors
from tests.cluster.conftest import MOST_SECONDS, TEXTS, TEXTS_PER_SHARD
from tests.command_line import contents
from tests.export_fixtures import TINY_BERT

StartExport = Callable[..., tuple[subprocess.Popen[str], Path]]


def wait_for_shards(out: Path, process: subprocess.Popen[str], count: int) -> None:
    """Wait until this many shards are kept. Fails with the output of an export that ends before."""
    while len(list(out.rglob("finished/*.safetensors"))) < count:
        if process.poll() is not None:
            finish(process)
            raise AssertionError(f"the export ended before {count} shards were kept")
        time.sleep(0.01)


def finish(process: subprocess.Popen[str]) -> str:
    """Return what the export printed, once it has ended without an error."""
    output, _ = process.communicate()  # it ends itself when it takes too long
    hung = f"did not end within {MOST_SECONDS} s" if f"Timeout ({timedelta(seconds=MOST_SECONDS)})!" in output else ""
    assert process.returncode == 0, f"the export {hung or 'failed'}; the last that it printed:\n{output[-8_000:]}"
    return output


def test_two_nodes_write_the_bytes_of_an_export_without_ray(nodes: Any, start_export: StartExport, local: Path) -> None:
    process, out = start_export("cluster", "--ray", nodes.address)
    output = finish(process)
    assert contents(out) == contents(local)
    assert "2 workers on 2 nodes of Ray" in output
    assert f"{TEXTS:,} texts" in output


def test_a_killed_node_changes_no_byte(nodes: Any, start_export: StartExport, local: Path) -> None:
    process, out = start_export("cluster", "--ray", nodes.address)
    wait_for_shards(out, process, 2)
    nodes.remove_node(nodes.second, allow_graceful=False)  # SIGKILL of its raylet
    assert len(list(out.rglob("finished/*.safetensors"))) < TEXTS / TEXTS_PER_SHARD, "all shards were finished before"
    finish(process)
    assert contents(out) == contents(local)


def test_what_a_stopped_export_on_a_cluster_finished_is_taken_over_without_one(
    nodes: Any, start_export: StartExport, local: Path, corpus_file: Path
) -> None:
    process, out = start_export("cluster", "--ray", nodes.address)
    wait_for_shards(out, process, 5)
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    command = [sys.executable, "-m", "semsearch", "index"]
    done = subprocess.run(
        [*command, corpus_file, "--out", out, "--replace", "--verbose"], capture_output=True, text=True, check=True
    )
    assert "rows taken over from a try that was stopped" in done.stdout
    assert contents(out) == contents(local)


def test_an_address_without_a_cluster_is_an_error_in_one_line(start_export: StartExport) -> None:
    process, _ = start_export("none", "--ray", "127.0.0.1:1")
    output, _ = process.communicate()
    assert process.returncode == 1
    assert "error: --ray: no cluster at 127.0.0.1:1" in output
    assert "Traceback" not in output


def test_workers_embed_with_the_float_model_that_they_are_sent(
    nodes: Any, start_export: StartExport, corpus_file: Path
) -> None:
    model = ("--model", str(TINY_BERT), "--calibration", str(corpus_file), "--dtype", "float32")
    bundles = []
    for name, options in (("here", ()), ("cluster", ("--ray", nodes.address))):
        process, out = start_export(name, *model, *options)
        finish(process)
        assert read_manifest(out).corpus.embedded_by == ["cpu float32"]
        tensors = map_tensors(out / INDEX)
        bundles.append(dequantize(tensors["codes"], tensors["scales"]))
    assert (bundles[0] * bundles[1]).sum(axis=1).min() > 0.9999
    process, _ = start_export("gpu", *model[:4], "--device", "cuda", "--ray", nodes.address)
    output, _ = process.communicate()
    assert "error: --ray: found no device cuda in the cluster, expected cuda and nodes with GPUs" in output
