"""Libraries imported from one file are the libraries; an archive of another place is not used."""

import marshal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from function.quick_start.archive import Archive, use_archive

ARCHIVE = "function/quick_start/modules.bin"


BEFORE = """
import json, sys
import function.stopwatch, function.quick_start.archive
print(json.dumps(sorted(sys.modules)))
"""

ASK = """
import json, sys
import function.handler
from function.quick_start.archive import Archive
event = {"version": "2.0", "routeKey": "", "rawPath": "/similar", "rawQueryString": "",
         "headers": {"content-type": "application/json"}, "isBase64Encoded": False, "body": '{"text": "angry goose"}',
         "requestContext": {"http": {"method": "POST", "path": "/similar", "sourceIp": "127.0.0.1"}}}
reply = function.handler.handler(event, None)
origins = {}
for name, module in sys.modules.items():
    spec = getattr(module, "__spec__", None)
    if spec is not None and spec.origin and spec.origin.endswith(".py"):
        is_archived = isinstance(getattr(spec.loader, "_archive", None), Archive)
        origins[name] = [is_archived, spec.origin, bool(getattr(module, "__file__", None))]
print(json.dumps([reply["body"], origins]))
"""


def test_a_start_takes_every_library_from_the_archive_and_answers_the_same(
    in_a_new_process: Callable[..., Any], shipped: Path, bundle: Path
) -> None:
    before = set(in_a_new_process(BEFORE))
    body, origins = in_a_new_process(ASK, shipped, BUNDLE_DIR=str(bundle))
    plain_body, plain_origins = in_a_new_process(ASK, BUNDLE_DIR=str(bundle))
    assert body == plain_body
    assert origins.keys() == plain_origins.keys()
    libraries = {name for name in origins if name.partition(".")[0] != "function"} - before
    assert len(libraries) > 300
    # `python -m`, which made the archive, had imported these two before
    assert {name for name in libraries if not origins[name][0]} <= {"contextlib", "importlib._abc"}
    assert {name: origin[1:] for name, origin in origins.items() if name in libraries} == {
        name: origin[1:] for name, origin in plain_origins.items() if name in libraries
    }


def test_a_traceback_through_the_archive_shows_the_source(
    in_a_new_process: Callable[..., Any], shipped: Path, bundle: Path
) -> None:
    script = """
import json, traceback
import function.handler
import mangum
try:
    mangum.Mangum(None)({}, None)
except RuntimeError:
    print(json.dumps(traceback.format_exc()))
"""
    assert "self.infer(event, context)" in in_a_new_process(script, shipped, BUNDLE_DIR=str(bundle))


@pytest.fixture
def finders(monkeypatch: pytest.MonkeyPatch) -> Sequence[object]:
    """Have the list of finders back as it was."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    return sys.meta_path


def test_without_an_archive_imports_stay_as_they_are(finders: Sequence[object], tmp_path: Path) -> None:
    before = list(finders)
    assert use_archive(str(tmp_path / "none.bin")) is None
    assert list(finders) == before


def head(file: Path) -> list[Any]:
    """Give the version, the folder of the packages, their distributions, the index and the snippets."""
    whole = file.read_bytes()
    return list(marshal.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")]))


def test_an_archive_made_here_is_used(finders: Sequence[object], shipped: Path) -> None:
    archive = use_archive(str(shipped / ARCHIVE))
    assert isinstance(archive, Archive)
    assert finders[0] is archive


@pytest.mark.parametrize(
    ("place", "other"),
    [(0, "3.13.0 (of another day)"), (1, "/another/place"), (2, frozenset({"fastapi-0.1.0.dist-info"}))],
)
def test_an_archive_made_by_another_python_or_of_other_packages_is_not_used(
    finders: Sequence[object], shipped: Path, tmp_path: Path, place: int, other: object
) -> None:
    parts = head(shipped / ARCHIVE)
    assert type(parts[place]) is type(other)
    parts[place] = other
    changed = marshal.dumps(tuple(parts))
    (tmp_path / "modules.bin").write_bytes(len(changed).to_bytes(8, "little") + changed)
    before = list(finders)
    assert use_archive(str(tmp_path / "modules.bin")) is None
    assert list(finders) == before


def test_the_archive_names_the_versions_it_was_made_of(shipped: Path) -> None:
    import fastapi
    import numpy

    distributions = head(shipped / ARCHIVE)[2]
    assert {f"fastapi-{fastapi.__version__}.dist-info", f"numpy-{numpy.__version__}.dist-info"} <= distributions


def test_no_module_of_this_project_is_in_the_archive(shipped: Path) -> None:
    _, _, _, index, _ = head(shipped / ARCHIVE)
    assert not [name for name in index if name.partition(".")[0] == "function"]
    assert {"numpy", "fastapi", "pydantic", "mangum", "onnxruntime", "tokenizers"} <= index.keys()


SNIPPETS = """
import json
from function.quick_start import archive
compiled, found = [], []
ask = archive.Archive.run_snippet
def watch(self, source, names, local_names):
    (found if source in self._snippets else compiled).append(source)
    ask(self, source, names, local_names)
archive.Archive.run_snippet = watch
import function.handler
import dataclasses
print(json.dumps([compiled, len(found), hasattr(dataclasses, "exec")]))
"""


def test_the_methods_of_dataclasses_are_not_compiled_again(
    in_a_new_process: Callable[..., Any], shipped: Path, bundle: Path
) -> None:
    compiled, found, is_left = in_a_new_process(SNIPPETS, shipped, BUNDLE_DIR=str(bundle))
    assert compiled == []
    assert found > 250
    assert is_left is False


def test_a_source_that_is_no_snippet_is_compiled() -> None:
    names: dict[str, Any] = {}
    Archive({}, {}, memoryview(b"")).run_snippet("answer = 42", {}, names)
    assert names == {"answer": 42}


LATER = """
import json
import function.handler
import email.message, email.policy, importlib.resources, pkgutil
import numpy.ma, numpy.lib.recfunctions
import fastapi
email.message.EmailMessage()
print(json.dumps([
    pkgutil.get_data("fastapi", "py.typed") is not None,
    importlib.resources.files("fastapi").joinpath("py.typed").read_text() is not None,
    "class FastAPI" in fastapi.applications.__loader__.get_source("fastapi.applications"),
    bool(email.message.Message.__doc__),
]))
"""


def test_libraries_that_compute_with_docstrings_or_read_their_data_do_so(
    in_a_new_process: Callable[..., Any], shipped: Path, bundle: Path
) -> None:
    assert in_a_new_process(LATER, shipped, BUNDLE_DIR=str(bundle)) == [True, True, True, True]
