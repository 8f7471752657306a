"""Libraries imported from one file are the libraries; an archive that does not fit is not used, and says so."""

import marshal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from function.archive import Archive

BEFORE = """
import json, sys
import function.archive
print(json.dumps(sorted(sys.modules)))
"""

ASK = """
import json, sys
import function.handler
event = {"version": "2.0", "routeKey": "", "rawPath": "/similar", "rawQueryString": "",
         "headers": {"content-type": "application/json"}, "isBase64Encoded": False, "body": '{"text": "angry goose"}',
         "requestContext": {"http": {"method": "POST", "path": "/similar", "sourceIp": "127.0.0.1"}}}
get = {**event, "body": None, "requestContext": {"http": {"method": "GET", "path": "/info", "sourceIp": "127.0.0.1"}}}
document = {**get, "requestContext": {"http": {"method": "GET", "path": "/openapi.json", "sourceIp": "127.0.0.1"}}}
reply, info, openapi = (function.handler.handler(one, None) for one in (event, get, document))
origins = {}
for name, module in sys.modules.items():
    spec = getattr(module, "__spec__", None)
    if spec is not None and spec.origin and spec.origin.endswith(".py"):
        origins[name] = [type(spec.loader).__module__ == "function.archive", spec.origin]
print(json.dumps([reply["body"], json.loads(info["body"])["archive"], openapi["body"], origins]))
"""


def test_a_start_takes_every_library_from_the_archive_and_answers_the_same(
    in_a_new_process: Callable[..., Any], shipped: Path, bundle: Path, image_environment: dict[str, str]
) -> None:
    before = set(in_a_new_process(BEFORE))
    body, status, document, origins = in_a_new_process(ASK, shipped, BUNDLE_DIR=str(bundle), **image_environment)
    plain_body, plain_status, plain_document, plain_origins = in_a_new_process(ASK, BUNDLE_DIR=str(bundle))
    assert (status, plain_status) == ("used", "not there")
    assert (body, document) == (plain_body, plain_document)
    libraries = {name for name in origins if name.partition(".")[0] not in ("function", "semsearch")} - before
    assert len(libraries) > 300
    # what only a request for the document or the versions imports is not in the archive
    later = {"pydantic._internal._dataclasses", "pydantic.dataclasses", "pydantic.root_model"}
    later |= {"email", "importlib.metadata", "platform"}
    missed = {name for name in libraries if not origins[name][0] and not name.startswith(tuple(later))}
    assert missed <= {"contextlib", "importlib._abc"}  # which building the archive had imported before
    assert {name: origins[name][1] for name in libraries & plain_origins.keys()} == {
        name: plain_origins[name][1] for name in libraries & plain_origins.keys()
    }


USE = """
import json, sys
from pathlib import Path
from function.archive import archive_status, use_archive
use_archive({file!r})
import fastapi, json
print(json.dumps([archive_status(), fastapi.FastAPI.__name__]))
"""


def test_an_archive_that_was_cut_off_is_not_used(
    in_a_new_process: Callable[..., Any], shipped: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "archive.bin"
    cut.write_bytes((shipped / "function" / "archive.bin").read_bytes()[:1000])
    status, name = in_a_new_process(USE.format(file=str(cut)), shipped)
    assert (status.startswith("not used: "), name) == (True, "FastAPI")


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
