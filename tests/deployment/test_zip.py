"""What `sam build -t template-zip.yaml` puts into the zip: small enough, whole, and nothing else."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deployment.conftest import ROOT

LARGEST = 250 * 1024 * 1024  # bytes unpacked; Lambda's limit for a zip

EVENT = {
    "version": "2.0",
    "routeKey": "$default",
    "rawPath": "/similar",
    "rawQueryString": "",
    "headers": {"content-type": "application/json"},
    "requestContext": {
        "http": {"method": "POST", "path": "/similar", "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7"},
        "domainName": "abc123.lambda-url.eu-central-1.on.aws",
        "stage": "$default",
    },
    "body": json.dumps({"text": "unpack all files of an archive", "num_results": 1}),
    "isBase64Encoded": False,
}


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "SAM_CLI_TELEMETRY": "0"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def runtime_python() -> str:
    """The Python 3.13 that the Makefile uses."""
    python = run("make", "--silent", "--eval", "show: ; @echo $(RUNTIME_PYTHON)", "show").strip()
    found = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
    if not found.stdout.startswith("Python 3.13"):
        pytest.skip(f"{python} is not Python 3.13, which the zip's bytecode is for; set RUNTIME_PYTHON")
    return python


@pytest.fixture(scope="session")
def package(runtime_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that becomes the zip: built by SAM if it is there, else by what SAM calls."""
    folder = tmp_path_factory.mktemp("sam")
    if shutil.which("sam"):
        run("sam", "build", "-t", "template-zip.yaml", "--build-dir", str(folder))
        return folder / "Function"
    run("make", "build-Function", f"ARTIFACTS_DIR={folder / 'Function'}")
    return folder / "Function"


def test_it_is_smaller_than_lambda_allows(package: Path) -> None:
    files = [path for path in package.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST


def test_it_answers_with_nothing_installed_but_itself(package: Path, runtime_python: str) -> None:
    script = f"import json, function.handler as module; print(json.dumps(module.handler({EVENT!r}, None)))"
    printed = run(runtime_python, "-S", "-c", script, cwd=package)  # -S: without the interpreter's own packages
    reply = json.loads(printed.splitlines()[-1])
    assert reply["statusCode"] == 200
    assert len(json.loads(reply["body"])["results"]) == 1


def test_nothing_of_the_project_is_in_it_but_function_and_bundle(package: Path) -> None:
    assert {path.name for path in package.iterdir()}.isdisjoint({"export", "bench", "tests", "torch", "boto3"})
    ours = {path.name for path in ROOT.iterdir()} & {path.name for path in package.iterdir()}
    assert ours == {"function", "bundle"}
    for folder in ours:
        sources = {path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.suffix != ".pyc"}
        packed = {path.relative_to(package) for path in (package / folder).rglob("*") if path.suffix != ".pyc"}
        assert {one for one in packed if one.name != "__pycache__"} == {
            one for one in sources if one.name != "__pycache__"
        }


def test_every_module_is_compiled_for_the_runtime_and_never_again(package: Path) -> None:
    sources = sorted(package.rglob("*.py"))
    assert len(sources) > 500
    for source in sources:
        (bytecode,) = source.parent.glob(f"__pycache__/{source.stem}.*.pyc")
        assert bytecode.name == f"{source.stem}.cpython-313.pyc"
        assert bytecode.read_bytes()[4:8] == b"\x01\0\0\0"  # PEP 552: by hash, and not compared


def test_everyone_may_read_all_of_it(package: Path) -> None:
    """Lambda runs functions as another user, and what the export wrote is for its owner alone."""
    assert [path for path in package.rglob("*") if path.stat().st_mode & 0o044 != 0o044] == []
