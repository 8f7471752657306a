"""A lazy module is as good as its own when something is asked of it, and costs nothing until then."""

import sys
from collections.abc import Callable
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
    assert found == dict.fromkeys(lazy.NAMES, True)


WORKS = """
import json
import function.handler
import hashlib, pickle, ssl, http.client, zipfile, csv, html, calendar, locale, http.cookies, numpy as np
print(json.dumps([
    hashlib.sha256(b"").hexdigest()[:8],
    pickle.loads(pickle.dumps(5)),
    ssl.create_default_context().check_hostname,
    http.client.HTTPSConnection("example.com").port,
    zipfile.ZIP_STORED,
    csv.QUOTE_ALL,
    html.escape("<"),
    calendar.isleap(2028),
    http.cookies.SimpleCookie("a=b")["a"].value,
    np.lib.format.magic(1, 0).hex(),
]))
"""


def test_lazy_modules_of_the_libraries_work_when_they_are_used_after_all(
    in_a_new_process: Callable[..., Any], bundle: Path
) -> None:
    found = in_a_new_process(WORKS, BUNDLE_DIR=str(bundle))
    assert found == ["e3b0c442", 5, True, 443, 0, 1, "&lt;", True, "b", "934e554d50590100"]
