"""Settings of all tests, and the fixtures that they share."""

import asyncio
import inspect
import os
from typing import Any

import hypothesis
import pytest

os.environ.pop("COLUMNS", None)  # pytest-xdist sets it, and rich would wrap what the tests read
os.environ["OMP_NUM_THREADS"] = "1"  # a second thread of PyTorch only spins: the models of the tests are tiny

from tests.app_fixtures import answer, image_environment, in_a_new_process, rerank_bundle, shipped
from tests.export_fixtures import (
    calibration,
    model_alone,
    quick_commands,
    stories,
    story_bundle,
    tiny_copy,
    tiny_export,
    tiny_graph,
    tiny_source,
    tiny_tokens,
    whole,
)
from tests.no_model import no_model, no_model_no_words
from tests.promises.geese import geese, reranked
from tests.world import bundle, bundle_copy, client, connect, corpus, embedder, make_app, manifest

hypothesis.settings.register_profile("tests", derandomize=True, deadline=None, max_examples=50, database=None)
hypothesis.settings.register_profile("thorough", hypothesis.settings.get_profile("tests"), max_examples=2000)
# `make mutants` looks whether a test fails, not for the simplest example
found = tuple(phase for phase in hypothesis.Phase if phase.name not in ("shrink", "explain"))
hypothesis.settings.register_profile("mutants", hypothesis.settings.get_profile("tests"), phases=found)
hypothesis.settings.load_profile("tests")


# One worker of pytest-xdist runs the tests that convert models: each worker would need seconds to import PyTorch.
CONVERTING = (
    "conversion/",
    "indexing/models/test_placing.py",
    "indexing/models/test_source.py",
    "indexing/test_cli.py",
    "indexing/test_update.py",
    "indexing/vectors/test_device.py",
    "site/test_browser_model.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one worker run all tests of a file, which share fixtures. `--dist loadgroup` does not with pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class FileScheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0].removeprefix("tests/")
            return "converting" if path.startswith(CONVERTING) else path

    return FileScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine. asyncio.run would leave the thread without the event loop that Mangum uses."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters})
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(asyncio.wait_for(test, timeout=60))
    return True


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let no test read or write the user's cache of converted models."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
