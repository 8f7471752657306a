"""Libraries imported from one file are the libraries; an archive that does not fit is not used, and says so."""

import importlib
import marshal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from function import archive
from function.archive import Archive, archive_status, run_snippet, use_archive
from function.image.build_archive import own_modules, write_archive
from tests.function.events.event_makers import http_api

ASK = """
import json, sys
import function.archive
before = set(sys.modules)
import function.handler
reply, info, openapi = (function.handler.handler(event, None) for event in EVENTS)
origins = {}
for name in set(sys.modules) - before:
    spec = getattr(sys.modules[name], "__spec__", None)
    if spec is not None and spec.origin and spec.origin.endswith(".py"):
        origins[name] = [type(spec.loader).__module__ == "function.archive", spec.origin]
print(json.dumps([reply["body"], json.loads(info["body"])["archive"], openapi["body"], origins]))
"""
EVENTS = [
    http_api("POST", "/similar", '{"text": "angry goose"}'),
    http_api("GET", "/info", None),
    http_api("GET", "/openapi.json", None),
]


def test_a_start_takes_every_library_from_the_archive_and_answers_the_same(
    in_a_new_process: Callable[..., Any], shipped: Path, bundle: Path, image_environment: dict[str, str]
) -> None:
    ask = ASK.replace("EVENTS", repr(EVENTS))
    body, status, document, origins = in_a_new_process(ask, shipped, BUNDLE_DIR=str(bundle), **image_environment)
    plain_body, plain_status, plain_document, plain_origins = in_a_new_process(ask, BUNDLE_DIR=str(bundle))
    assert (status, plain_status) == ("used", "not there")
    assert (body, document) == (plain_body, plain_document)
    libraries = {name for name in origins if name.partition(".")[0] not in ("function", "semsearch")}
    assert len(libraries) > 300
    # what only a request for the document or the versions imports is not in the archive
    later = {"pydantic._internal._dataclasses", "pydantic._internal._serializers"}
    later |= {"pydantic.dataclasses", "pydantic.root_model"}
    later |= {"email", "importlib.metadata", "platform"}
    missed = {name for name in libraries if not origins[name][0] and not name.startswith(tuple(later))}
    assert missed <= {"contextlib", "importlib._abc"}  # which building the archive had imported before
    assert {name: origins[name][1] for name in libraries & plain_origins.keys()} == {
        name: plain_origins[name][1] for name in libraries & plain_origins.keys()
    }


def test_an_archive_that_was_cut_off_is_not_used(shipped: Path, tmp_path: Path) -> None:
    finders = list(sys.meta_path)
    cut = tmp_path / "archive.bin"
    cut.write_bytes((shipped / "function" / "archive.bin").read_bytes()[:1000])
    use_archive(str(cut))
    assert archive_status().startswith("not used: ")
    assert sys.meta_path == finders


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo the use of an archive in this process."""
    monkeypatch.setattr(archive, "_in_use", None)
    monkeypatch.setattr(archive, "_status", archive._status)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    for name in ("geese", "geese.goose"):
        monkeypatch.setitem(sys.modules, name, sys)  # so that it is removed afterwards
        del sys.modules[name]


def test_a_package_a_module_and_a_snippet_are_run_from_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imports: None
) -> None:
    file = tmp_path / "archive.bin"
    package, module = tmp_path / "geese" / "__init__.py", tmp_path / "geese" / "goose.py"
    package.parent.mkdir()
    (tmp_path / "geese-1.0.dist-info").mkdir()
    for source, text in ((package, "number = 1"), (module, "number = 2")):
        source.write_text(text, encoding="utf-8")
    modules = {"geese": (str(package), True), "geese.goose": (str(module), False)}
    assert write_archive(file, modules, ["number = 3", "number = 4"], tmp_path) == 2
    module.write_text("number = 5", encoding="utf-8")  # nobody reads it
    names = dict[str, Any]()
    run_snippet("number = 4", names, names)
    assert names["number"] == 4

    monkeypatch.syspath_prepend(tmp_path)
    use_archive(str(file))
    assert archive_status() == "used"
    assert isinstance(sys.meta_path[0], Archive)
    geese, goose = importlib.import_module("geese"), importlib.import_module("geese.goose")
    assert (geese.number, geese.__file__, [*geese.__path__]) == (1, str(package), [str(package.parent)])
    assert (goose.number, goose.__file__, hasattr(goose, "__path__")) == (2, str(module), False)
    loader: Any = goose.__loader__
    exec(loader.original_code("geese.goose"), names)
    assert names["number"] == 5
    snippets = sys.meta_path[0].snippets
    snippets["number = 6"] = snippets["number = 3"]  # otherwise one would not see whence it came
    for snippet, number in (("number = 6", 3), ("number = 4", 4), ("number = 7", 7)):
        run_snippet(snippet, names, names)
        assert names["number"] == number


def test_all_modules_of_the_package_are_in_an_archive(tmp_path: Path) -> None:
    package, module = tmp_path / "semsearch" / "app" / "__init__.py", tmp_path / "semsearch" / "app" / "http.py"
    package.parent.mkdir(parents=True)
    for source in (package, module, tmp_path / "other.py"):
        source.touch()
    assert own_modules(tmp_path) == {"semsearch.app": (str(package), True), "semsearch.app.http": (str(module), False)}


def test_the_build_of_an_archive_tells_its_modules_and_its_bytes(shipped: Path) -> None:
    file = shipped / "function" / "archive.bin"
    content = file.read_bytes()
    made = Archive(memoryview(content))
    assert (shipped / "printed").read_text("utf-8") == f"{file}: {len(made.modules)} modules, {len(content):,} bytes\n"
    assert {"semsearch.app.http", "numpy", "fastapi.routing"} <= made.modules.keys()
    assert len(made.snippets) > 30


def archive_with(version: str, packages: str, distributions: set[str]) -> memoryview:
    """Return the bytes of an empty archive."""
    head = marshal.dumps((version, packages, frozenset(distributions), {}, {}))
    return memoryview(len(head).to_bytes(8, "little") + head)


@pytest.mark.parametrize(
    ("version", "expected"),
    [("3.99.0 (main)", r"made by Python 3\.99\.0, this is 3\."), (sys.version, "made for other packages")],
)
def test_an_archive_of_another_python_or_another_folder_of_packages_is_refused(
    tmp_path: Path, version: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        Archive(archive_with(version, str(tmp_path), set()))


def test_an_archive_of_other_versions_of_packages_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "fastapi-0.141.0.dist-info").mkdir()
    Archive(archive_with(sys.version, str(tmp_path), {"fastapi-0.141.0.dist-info"}))
    with pytest.raises(ValueError, match="made for other packages"):
        Archive(archive_with(sys.version, str(tmp_path), {"fastapi-0.142.0.dist-info"}))
