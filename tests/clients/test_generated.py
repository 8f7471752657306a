"""Clients that generators make of the OpenAPI document: openapi-python-client's and openapi-typescript's. And redocly.

Where npm is missing, `make test-clients` leaves its tools out, and their tests are skipped.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from tests.clients.conftest import KEY, on_the_server
from tests.project import ROOT

HERE = Path(__file__).parent
NODE_MODULES = ROOT / "build" / "client-tools" / "node_modules"
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}  # it asks no other host then
AUTHORIZED = {"authorization": f"Bearer {KEY}"}
QUESTION = {"text": "goose", "num_results": 2, "filter": {"chapter": {"$gte": 0}}, "facets": ["who"]}

needs_npm = pytest.mark.skipif(not NODE_MODULES.exists(), reason="npm is not installed")


def run(*words: object, folder: Path) -> str:
    """Run a command in a folder, and return what it printed; fail with that if it fails."""
    command = [str(word) for word in words]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | QUIET, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def save_document(address: str, folder: Path) -> Path:
    """Write a server's OpenAPI document into a folder, and return its file."""
    path = folder / "openapi.json"
    path.write_text(httpx.get(f"{address}/openapi.json", headers=AUTHORIZED).text)
    return path


def make_package(address: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Generate a package of Python for a server, without a warning, and import it."""
    (folder / "config.json").write_text(json.dumps({"post_hooks": []}))  # it is not formatted
    generator = Path(sys.executable).with_name("openapi-python-client")
    options = ("--meta", "none", "--output-path", "generated", "--config", "config.json", "--fail-on-warning")
    run(generator, "generate", "--path", save_document(address, folder), *options, folder=folder)
    monkeypatch.syspath_prepend(str(folder))
    return importlib.import_module("generated")


def call(client: Any, operation: str, body: dict[str, Any]) -> Any:
    """Call an operation, such as search.similar, with a body of this JSON."""
    module = importlib.import_module(f"generated.api.{operation}")
    models = importlib.import_module("generated.models")
    kind = {"search.similar": models.SimilarRequest, "embeddings.embeddings": models.EmbeddingsRequest}[operation]
    return module.sync(client=client, body=kind.from_dict(body))


def test_a_generated_client_of_python_searches_and_embeds_with_its_key(
    closed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generated = make_package(closed, tmp_path, monkeypatch)
    with generated.AuthenticatedClient(base_url=closed, token=KEY) as client:
        found = call(client, "search.similar", QUESTION)
        embedded = call(client, "embeddings.embeddings", {"input": ["one", "two"], "dimensions": 3})
    assert found.to_dict() == httpx.post(f"{closed}/similar", json=QUESTION, headers=AUTHORIZED).json()
    assert len(found.results) == 2
    assert [len(one.embedding) for one in embedded.data] == [3, 3]
    with generated.Client(base_url=closed) as client:
        assert call(client, "search.similar", QUESTION).error_type == "unauthorized"


@needs_npm
@on_the_server
def test_the_types_of_openapi_typescript_fit_what_the_routes_take_and_reply(address: str, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copyfile(HERE / "generated.ts", tmp_path / "generated.ts")
    tools = NODE_MODULES / ".bin"
    types = (save_document(address, tmp_path), "--default-non-nullable", "false", "--output", "schema.ts")
    run(tools / "openapi-typescript", *types, folder=tmp_path)
    options = ("--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom")
    run(tools / "tsc", *options, "generated.ts", folder=tmp_path)
    found = json.loads(run("node", "generated.js", address, folder=tmp_path))
    reply = httpx.post(f"{address}/similar", json=QUESTION | {"mode": "hybrid"}).json()
    assert found["ids"] == [result["id"] for result in reply["results"]]
    assert found["lengths"] == [3, 3]
    assert found["error"].startswith("text: ")


@needs_npm
@on_the_server
def test_the_documents_of_servers_with_and_without_keys_follow_redoclys_recommended_rules(
    address: str, closed: str, tmp_path: Path
) -> None:
    for server in (address, closed):
        document = save_document(server, tmp_path)
        command = (NODE_MODULES / ".bin" / "redocly", "lint", document, "--extends", "recommended", "--format", "json")
        assert json.loads(run(*command, folder=tmp_path))["problems"] == []
