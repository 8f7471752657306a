"""A lazy module is as good as its own when something is asked of it, and costs nothing until then."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from function.quick_start import lazy
from function.quick_start.lazy import lazy_modules


@pytest.fixture
def noisy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that tells when its code runs, to be imported lazily."""
    (tmp_path / "noisy.py").write_text(
        "import sys\nsys.noise.append(__name__)\nanswer = 42\ndef ask(): return answer\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "noise", [], raising=False)
    monkeypatch.setattr(lazy, "NAMES", frozenset({"noisy"}))
    monkeypatch.delitem(sys.modules, "noisy", raising=False)
    return "noisy"


def test_a_lazy_module_is_loaded_when_something_is_asked_of_it(noisy: str) -> None:
    with lazy_modules():
        import noisy as module  # type: ignore[import-not-found]
    assert sys.noise == []  # type: ignore[attr-defined]
    assert module.answer == 42
    assert sys.noise == [noisy]  # type: ignore[attr-defined]
    assert module.ask() == 42
    assert sys.noise == [noisy]  # type: ignore[attr-defined]


def test_importing_it_again_does_not_load_it(noisy: str) -> None:
    with lazy_modules():
        __import__(noisy)
        __import__(noisy)
    __import__(noisy)
    assert sys.noise == []  # type: ignore[attr-defined]


def test_importing_a_name_from_it_loads_it(noisy: str) -> None:
    with lazy_modules():
        from noisy import answer
    assert answer == 42


def test_what_it_does_not_have_is_an_attribute_error(noisy: str) -> None:
    with lazy_modules():
        module = __import__(noisy)
    with pytest.raises(AttributeError, match="nothing"):
        _ = module.nothing


def test_a_module_imported_afterwards_is_loaded_at_once(noisy: str) -> None:
    with lazy_modules():
        pass
    __import__(noisy)
    assert sys.noise == [noisy]  # type: ignore[attr-defined]


def test_threads_that_ask_at_once_all_get_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noisy: str
) -> None:
    (tmp_path / "noisy.py").write_text("import time\nearly = 1\ntime.sleep(0.2)\nlate = 2\n")
    with lazy_modules():
        module = __import__(noisy)
    barrier = threading.Barrier(4)

    def ask(name: str) -> int:
        barrier.wait()
        return int(getattr(module, name))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, ["late", "early", "late", "late"])) == [2, 1, 2, 2]


def test_a_value_set_before_its_first_use_stays(noisy: str) -> None:
    with lazy_modules():
        module = __import__(noisy)
    setattr(module, "answer", 5)  # noqa: B010  mypy knows no such name
    assert module.ask() == 5


def test_one_whose_code_fails_fails_again_when_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noisy: str
) -> None:
    (tmp_path / "noisy.py").write_text("raise OSError('no such thing')\n")
    with lazy_modules():
        module = __import__(noisy)
    for _ in range(2):
        with pytest.raises(OSError, match="no such thing"):
            _ = module.answer


STILL_LAZY = """
import json, sys
import function.handler
from function.quick_start.lazy import NAMES, _LazyModule
print(json.dumps({name: type(sys.modules[name]) is _LazyModule for name in NAMES if name in sys.modules}))
"""


def test_every_lazy_module_is_imported_by_a_library_and_not_used_by_a_start(
    in_a_new_process: Callable[..., Any], bundle: Path
) -> None:
    found = in_a_new_process(STILL_LAZY, BUNDLE_DIR=str(bundle), POWERTOOLS_DEV="0")
    assert all(found.values()), found
    if sys.version_info[:2] == (3, 11):  # later versions of the standard library do without some themselves
        assert found.keys() == lazy.NAMES


WORKS = """
import json
import function.handler
import hashlib, pickle, ssl, http.client, csv, calendar, locale, http.cookies, numpy as np
print(json.dumps([
    hashlib.sha256(b"").hexdigest()[:8],
    pickle.loads(pickle.dumps(5)),
    ssl.create_default_context().check_hostname,
    http.client.HTTPSConnection("example.com").port,
    csv.QUOTE_ALL,
    calendar.isleap(2028),
    http.cookies.SimpleCookie("a=b")["a"].value,
    np.lib.format.magic(1, 0).hex(),
]))
"""


def test_lazy_modules_of_the_libraries_work_when_they_are_used_after_all(
    in_a_new_process: Callable[..., Any], bundle: Path
) -> None:
    found = in_a_new_process(WORKS, BUNDLE_DIR=str(bundle))
    assert found == ["e3b0c442", 5, True, 443, 1, True, "b", "934e554d50590100"]
