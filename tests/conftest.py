"""Settings of all tests, and the fixtures that they share."""

import asyncio
import inspect
import os

import hypothesis
import pytest

os.environ.pop("COLUMNS", None)  # pytest-xdist sets it, and rich would wrap what the tests read
os.environ["OMP_NUM_THREADS"] = "1"  # a second thread of PyTorch only spins: the models of the tests are tiny

from tests.app_fixtures import answer, image_environment, in_a_new_process, rerank_bundle, shipped
from tests.export_fixtures import (
    calibration,
    documentation,
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
from tests.project import ROOT
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Assign the tests of each file to one worker, for `--dist loadgroup`: they share fixtures of the module."""
    for item in items:
        path = item.path.relative_to(ROOT / "tests").as_posix()
        group = "converting" if path.startswith(CONVERTING) else path
        item.add_marker(pytest.mark.xdist_group(group))


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
