"""Switching to a newer bundle in S3 while requests are answered."""

import gc
import shutil
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from export.publishing.store import Store
from function.s3 import reloader
from function.s3.folders import SharedFolder
from tests.conftest import InProcess
from tests.function.s3.asking import Behind, Start, ask, left
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


def test_a_pointer_that_has_not_changed_costs_one_conditional_request(
    start: Start, publish: Publish, bundle: Path, proxy: Proxy
) -> None:
    publish(bundle)
    switch, _ = start()
    proxy.asked.clear()
    switch.poll()
    ((path, _, condition),) = proxy.asked
    assert path.endswith("/current.json")
    assert condition


def test_the_files_of_ended_requests_make_room_before_the_next_bundle_is_fetched(
    start: Start, publish: Publish, bundles: list[Path], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = [publish(bundles[0])]
    switch, _ = start()
    of_request = switch.served
    versions.append(publish(bundles[1]))
    switch.poll()
    assert left(environment) == sorted(versions)
    del of_request
    publish(bundles[2])
    there: list[list[str]] = []
    usage = shutil.disk_usage("/tmp")

    def look(path: Path) -> object:
        there.append(left(environment))
        return usage

    monkeypatch.setattr(shutil, "disk_usage", look)
    switch.poll()
    assert versions[0] not in there[0]
    assert versions[1] in there[0]


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


def test_a_request_whose_body_comes_after_a_switch_is_answered_by_the_bundle_it_began_with(behind: Behind) -> None:
    switch, client, old, new = behind
    app = client._transport.app  # type: ignore[attr-defined] # InProcess

    async def switch_before_the_body(scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_late() -> Message:
            switch.poll()
            return await receive()

        await app(scope, receive_late, send)

    late = httpx.Client(transport=InProcess(switch_before_the_body), base_url="http://tests")
    assert ask(late) == (old[:12], "")
    assert switch.served.version == new
    assert ask(late) == (new[:12], "Edition 1")


def test_requests_do_not_wait_for_a_switch(start: Start, publish: Publish, bundles: list[Path], proxy: Proxy) -> None:
    versions = [publish(bundles[0])]
    _, client = start(by_requests=True)
    versions.append(publish(bundles[1]))
    proxy.may_pass.clear()  # S3 does not answer
    for _ in range(3):
        assert ask(client)[0] == versions[0][:12]
    (poll,) = [thread for thread in threading.enumerate() if thread.name == "poll"]
    proxy.may_pass.set()
    poll.join(30)
    assert ask(client)[0] == versions[1][:12]


def test_after_a_restore_the_next_request_starts_a_poll(
    start: Start, publish: Publish, bundles: list[Path], proxy: Proxy
) -> None:
    publish(bundles[0])
    switch, client = start(by_requests=True, seconds=3600)
    version = publish(bundles[1])
    switch.polls.make_due()
    proxy.may_pass.clear()
    ask(client)
    (poll,) = [thread for thread in threading.enumerate() if thread.name == "poll"]
    proxy.may_pass.set()
    poll.join(30)
    assert ask(client)[0] == version[:12]


def test_no_poll_is_started_before_it_is_due(start: Start, publish: Publish, bundle: Path, proxy: Proxy) -> None:
    publish(bundle)
    _, client = start(by_requests=True, seconds=3600)
    proxy.asked.clear()
    ask(client)
    assert not proxy.asked
    assert not [thread for thread in threading.enumerate() if thread.name == "poll"]


def test_a_bundle_with_another_model_is_refused_although_another_server_has_fetched_it(
    start: Start, publish: Publish, bundle: Path, own_bundle: Path
) -> None:
    version = publish(bundle)
    switch, client = start()
    manifest = own_bundle / "manifest.json"
    manifest.write_text(manifest.read_text().replace("tests/mean-of-words", "tests/others"))
    publish(own_bundle)
    start()  # a new server takes any model
    switch.poll()
    assert "the bundle's model is tests/others or was exported otherwise" in str(switch.status.error)
    assert ask(client)[0] == version[:12]


def test_a_bundle_that_opens_without_a_search_is_closed_once_and_the_next_poll_serves_it(
    behind: Behind, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    switch, client, old, new = behind
    closed: list[Path] = []
    close = SharedFolder.close

    def remember(folder: SharedFolder) -> None:
        closed.append(folder.path)
        close(folder)

    def fail(*arguments: object) -> None:
        raise RuntimeError("no search")

    gc.collect()  # apps of other tests, which close their folders
    monkeypatch.setattr(SharedFolder, "close", remember)
    with monkeypatch.context() as broken:
        broken.setattr(reloader, "make_search", fail)
        switch.poll()
    gc.collect()
    assert switch.status.error is not None
    assert ask(client)[0] == old[:12]
    switch.poll()
    assert ask(client)[0] == new[:12]
    assert [path.name for path in closed].count(new) == 1
    assert left(environment) == [new]
