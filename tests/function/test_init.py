"""What INIT may do, guarded by what is the same on every machine: modules, files, bytes. Never by the clock."""

from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from semsearch.engine.bundle import MODEL
from tests.world import add_table

# a start imports these packages and no other; one more must earn its milliseconds
PACKAGES = {
    *("annotated_types", "aws_lambda_powertools", "jmespath", "mangum", "numpy", "onnxruntime", "pydantic"),
    *("pydantic_core", "safetensors", "simsimd", "Stemmer", "tokenizers", "typing_extensions", "typing_inspection"),
}
# what the export, the bench, the tests or a careless change would bring, and a cold start must not pay for
STRANGERS = {
    *("torch", "transformers", "optimum", "polars", "pandas", "scipy", "sympy", "onnx", "google", "yaml", "rich"),
    *("boto3", "botocore", "requests", "httpx", "urllib3", "huggingface_hub", "aws_xray_sdk", "idna"),
    *("uvicorn", "export", "cyclopts", "bench", "tests", "unittest", "multiprocessing", "sqlite3", "xml"),
    *("tkinter", "distutils"),
}
LIBRARIES_MODULES = 205  # modules of the packages above; a lazy one counts as one although its code does not run

WATCH = """
import json, os, sys
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink", "os.chmod")
seen = {"opened": [], "compiled": [], "written": [], "network": [], "telemetry": []}
def watch(event, args):
    if event == "open":
        seen["written" if isinstance(args[2], int) and args[2] & WRITES else "opened"].append(str(args[0]))
    elif event in CHANGES:
        seen["written"].append([event, str(args[0])])
    elif event == "compile" and str(args[1]).endswith(".py"):
        seen["compiled"].append(args[1])
    elif event in ("socket.connect", "socket.getaddrinfo", "socket.bind", "subprocess.Popen", "os.system"):
        seen["network"].append(event)
    elif event == "import" and args[0] == "onnxruntime.capi._pybind_state":
        seen["telemetry"].append(os.environ.get("ORT_DISABLE_TELEMETRY"))
def read():
    return int(open("/proc/self/io").read().split("rchar: ")[1].split()[0])
before, modules = read(), set(sys.modules)
sys.addaudithook(watch)
import function.handler
seen["bytes"] = read() - before
seen["modules"] = sorted(set(sys.modules) - modules)
seen["opened_by_init"] = list(seen["opened"])
event = {"version": "2.0", "routeKey": "", "rawPath": "/similar", "rawQueryString": "",
         "headers": {"content-type": "application/json"}, "isBase64Encoded": False, "body": '{"text": "angry goose"}',
         "requestContext": {"http": {"method": "POST", "path": "/similar", "sourceIp": "127.0.0.1"}}}
seen["init"] = list(sys.modules)
reply = function.handler.handler(event, None)
assert reply["statusCode"] == 200, reply
seen["later"] = sorted(set(sys.modules) - set(seen["init"]))
print(json.dumps(seen))
"""

# modules that only some functions or some requests need
LATE = (
    *("semsearch.aws.requests", "semsearch.aws.s3", "semsearch.server", "semsearch.app.fastapi_app"),
    *("semsearch.app.routes.clients", "semsearch.app.mcp", "semsearch.app.access", "semsearch.app.routes.page"),
    "semsearch.app.routes.documents",
    *("semsearch.engine.metadata", "semsearch.engine.pages", "semsearch.engine.rerank"),
    *("semsearch.engine.keyword.corrections", "semsearch.engine.keyword.highlights", "semsearch.search.refinements"),
    "numpy.ma.",
)
Seen = dict[str, Any]


@pytest.fixture(scope="module")
def start(
    in_a_new_process: Callable[..., Any], bundle: Path, shipped: Path, image_environment: dict[str, str]
) -> Callable[..., Seen]:
    """Return what starts the function as it ships, sends it a request and returns what was seen of both."""
    all_variables = {"BUNDLE_DIR": str(bundle)} | image_environment
    in_a_new_process(WATCH, shipped, **all_variables)  # compiles what pip has not

    def start_and_watch(**environment: str) -> Seen:
        found: Seen = in_a_new_process(WATCH, shipped, **all_variables | environment)
        return found

    return start_and_watch


@pytest.fixture(scope="module")
def seen(start: Callable[..., Seen]) -> Seen:
    return start()


def test_init_imports_the_packages_of_the_list_and_no_other(seen: Seen) -> None:
    modules = seen["modules"]
    tops = {name.partition(".")[0] for name in modules}
    installed = tops & packages_distributions().keys()
    assert installed - {"snapshot_restore_py", "function", "semsearch"} <= PACKAGES
    assert {"onnxruntime", "numpy", "tokenizers", "mangum", "aws_lambda_powertools"} <= tops
    # semsearch/app/routes/direct.py answers without them
    assert not tops & {"fastapi", "starlette"}
    assert not tops & STRANGERS
    assert not [name for name in modules if name.startswith(LATE)]
    assert sum(name.partition(".")[0] in installed for name in modules) <= LIBRARIES_MODULES


def test_init_opens_few_files_and_reads_little(seen: Seen, bundle: Path) -> None:
    opened = [Path(name) for name in seen["opened_by_init"]]
    of_the_bundle = [path.name for path in opened if path.parent == bundle]
    names = ["index.safetensors", "keywords.safetensors", "manifest.json", "manifest.json", "passages.safetensors"]
    assert sorted(of_the_bundle) == [*names, "tokenizer.txt"]
    assert len(opened) <= 18  # without the archive some 450
    # mapped files are not counted: of the archive, the model and the index only what is used is read
    assert seen["bytes"] <= 3_000_000


def test_init_and_a_request_compile_nothing(seen: Seen) -> None:
    by_anyio = ("anyio/__init__.py", "anyio/abc/__init__.py")  # it reads its own imports, to make them lazily
    assert [name for name in seen["compiled"] if not name.endswith(by_anyio)] == []


def test_init_and_a_request_ask_nothing_of_the_network_and_start_no_program(seen: Seen) -> None:
    assert seen["network"] == []


def test_the_telemetry_of_onnxruntime_is_off_before_it_is_imported(seen: Seen, start: Callable[..., Seen]) -> None:
    assert seen["telemetry"] == ["1"]
    assert start(ORT_DISABLE_TELEMETRY="0")["telemetry"] == ["1"]


def test_a_request_after_init_imports_nothing(seen: Seen) -> None:
    assert seen["later"] == []


def test_a_search_with_a_query_table_imports_no_onnxruntime_and_reads_no_byte_of_the_model(
    start: Callable[..., Seen], bundle_copy: Path
) -> None:
    add_table(bundle_copy)
    model = bundle_copy / MODEL
    model.write_bytes(bytes(model.stat().st_size))  # zeros: whoever reads them fails
    seen = start(BUNDLE_DIR=str(bundle_copy))
    assert not [name for name in seen["init"] if name.startswith("onnxruntime")]
    assert seen["later"] == []


def test_init_and_a_request_write_no_file(
    in_a_new_process: Callable[..., Any], bundle_copy: Path, shipped: Path
) -> None:
    before = {path.name: path.read_bytes() for path in bundle_copy.iterdir()}
    for path in [*bundle_copy.iterdir(), bundle_copy]:
        path.chmod(path.stat().st_mode & ~0o222)
    seen = in_a_new_process(WATCH, shipped, BUNDLE_DIR=str(bundle_copy), PYTHONDONTWRITEBYTECODE="1")
    bundle_copy.chmod(0o755)
    assert seen["written"] == []
    assert {path.name: path.read_bytes() for path in bundle_copy.iterdir()} == before
