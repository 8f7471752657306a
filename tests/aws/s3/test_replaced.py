"""A worker that replaces another one serves what that one served, although it begins with the server's first bundle."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from semsearch.app.reloading.s3 import BundleReloader
from semsearch.app.shared_memory import Handover
from semsearch.publishing.store import Store
from tests.aws.s3.asking import Start, ask, fetched
from tests.aws.s3.test_removed import GOOSE, ids
from tests.stand_ins.faults import Proxy, refuse
from tests.stand_ins.fixtures import Publish, object_at


class Workers(NamedTuple):
    """A worker, and one that will replace it. Both have begun with the same bundle, whose version is `old`."""

    first: BundleReloader
    next: BundleReloader
    client: httpx.Client  # sends requests to the second one
    handover: Handover
    old: str


@pytest.fixture
def workers(start: Start, publish: Publish, bundles: list[Path]) -> Workers:
    old = publish(bundles[0])
    (first, _), (second, client) = start(), start()
    handover = Handover()
    first.follow(handover)
    return Workers(first, second, client, handover, old)


def test_it_serves_the_first_bundle_if_nothing_newer_was_served(workers: Workers, proxy: Proxy) -> None:
    proxy.asked.clear()
    workers.next.follow(workers.handover)
    assert ask(workers.client)[0] == workers.old[:12]
    assert workers.next.status.switches == 0
    assert not proxy.asked


def test_it_lacks_removed_texts_without_asking_s3(workers: Workers, store: Store, proxy: Proxy) -> None:
    store.remove([GOOSE])
    workers.first.poll()
    proxy.asked.clear()
    workers.next.follow(workers.handover)
    assert GOOSE not in ids(workers.client)
    assert not proxy.asked


def test_it_serves_the_newer_bundle_of_the_disk_without_asking_s3(
    workers: Workers, publish: Publish, bundles: list[Path], store: Store, proxy: Proxy
) -> None:
    new = publish(bundles[1])
    store.remove([GOOSE])
    workers.first.poll()
    proxy.asked.clear()
    workers.next.follow(workers.handover)
    assert ask(workers.client) == (new[:12], "Edition 1")
    assert GOOSE not in ids(workers.client)
    assert not proxy.asked


def test_it_follows_a_pointer_that_is_again_that_of_the_start(
    workers: Workers, publish: Publish, bundles: list[Path], s3: Any, url: str
) -> None:
    first_pointer = s3.get_object(**object_at(url, "current.json"))["Body"].read()
    publish(bundles[1])
    workers.first.poll()
    workers.next.follow(workers.handover)
    s3.put_object(**object_at(url, "current.json"), Body=first_pointer)
    workers.next.poll()
    assert ask(workers.client)[0] == workers.old[:12]


def test_it_is_behind_while_the_files_are_gone_and_s3_is_away(
    workers: Workers, publish: Publish, bundles: list[Path], environment: dict[str, str], proxy: Proxy
) -> None:
    new = publish(bundles[1])
    workers.first.poll()
    shutil.rmtree(fetched(environment))
    proxy.fail("", refuse(503, "SlowDown"))
    workers.next.follow(workers.handover)
    assert workers.next.served.is_behind
    assert f"{new}: is gone" in str(workers.next.status.error)
    workers.next.poll()
    assert workers.next.served.is_behind
    assert "503 SlowDown" in str(workers.next.status.error)
    assert workers.next.info()["version"] == ""
    proxy.faults.clear()
    workers.next.poll()
    assert ask(workers.client) == (new[:12], "Edition 1")


def test_it_is_behind_until_it_has_read_the_pointer_if_the_first_one_died_while_it_noted_its_version(
    workers: Workers, store: Store
) -> None:
    store.remove([GOOSE])
    workers.handover.write(b"the beginning")
    workers.handover._memory[45:46] = b"?"
    workers.next.follow(workers.handover)
    assert workers.next.served.is_behind
    assert "the version that was served is not known; a poll takes the current" in str(workers.next.status.error)
    workers.next.poll()
    assert GOOSE not in ids(workers.client)


def test_it_serves_the_first_bundle_again_if_the_pointer_names_that(
    workers: Workers, publish: Publish, bundles: list[Path], environment: dict[str, str], store: Store
) -> None:
    publish(bundles[1])
    workers.first.poll()
    shutil.rmtree(fetched(environment))
    workers.next.follow(workers.handover)
    store.switch(workers.old, store.pointer())
    workers.next.poll()
    assert ask(workers.client)[0] == workers.old[:12]
