"""Switching to a newer bundle in S3 while requests are answered."""

import gc
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from semsearch.publishing.store import Store
from tests.aws.s3.asking import Behind, Start, ask, fetched, left
from tests.stand_ins.faults import Proxy
from tests.stand_ins.fixtures import Publish


def test_a_poll_switches_to_a_newer_bundle_and_back_and_removes_the_older(
    behind: Behind, store: Store, bundles: list[Path], environment: dict[str, str], proxy: Proxy
) -> None:
    switch, client, old, new = behind
    assert ask(client)[0] == old[:12]
    switch.poll()
    assert ask(client) == (new[:12], "Edition 1")
    assert ask(client, mode="hybrid") == (new[:12], "Edition 1")
    assert ask(client, filter={"chapter": 15})[0] == new[:12]
    assert left(environment) == [new]
    store.switch(old, store.pointer())
    switch.poll()
    assert ask(client) == (old[:12], "")
    assert left(environment) == [old]
    assert [path for path, _, _ in proxy.asked].count(
        f"/{'/'.join(store.url.split('/')[2:])}/bundles/{new}/model.ort"
    ) == 0
    assert switch.status.switches == 2


def test_a_newer_bundle_is_taken_after_the_folder_for_what_is_fetched_was_removed(
    behind: Behind, environment: dict[str, str]
) -> None:
    shutil.rmtree(fetched(environment))  # as systemd-tmpfiles does to old folders below /tmp
    behind.switch.poll()
    assert ask(behind.client)[0] == behind.new[:12]


def test_an_unchanged_pointer_costs_one_request(start: Start, publish: Publish, bundle: Path, proxy: Proxy) -> None:
    publish(bundle)
    switch, _ = start()
    proxy.asked.clear()
    switch.poll()
    ((path, _, condition),) = proxy.asked
    assert path.endswith("/current.json")
    assert condition


def test_a_request_that_has_begun_ends_with_the_bundle_it_began_with(
    behind: Behind, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    switch, client, old, new = behind
    executor = switch._executor
    assert executor is not None
    tokenize = executor.tokenize

    async def tokenize_and_switch(*arguments: Any, **options: Any) -> Any:
        found = await tokenize(*arguments, **options)
        switch.poll()
        return found

    monkeypatch.setattr(executor, "tokenize", tokenize_and_switch)
    # the keywords are opened late, from a folder that is not the current one any more
    assert ask(client, mode="hybrid", filter={"chapter": 15}) == (old[:12], "")
    assert ask(client) == (new[:12], "Edition 1")
    gc.collect()
    assert left(environment) == [new]


def polls() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "poll"]


def test_a_request_starts_one_poll_when_it_is_due_such_as_after_a_restore_and_does_not_wait_for_it(
    start: Start, publish: Publish, bundles: list[Path], proxy: Proxy
) -> None:
    versions = [publish(bundles[0])]
    switch, client = start(by_requests=True, seconds=3600)
    versions.append(publish(bundles[1]))
    proxy.may_pass.clear()  # S3 does not answer
    ask(client)
    assert not polls()
    for _ in range(3):
        switch.make_poll_due()
        assert ask(client)[0] == versions[0][:12]
    (poll,) = polls()
    assert poll.daemon  # it keeps no process from its end
    proxy.may_pass.set()
    poll.join(30)
    assert ask(client)[0] == versions[1][:12]
