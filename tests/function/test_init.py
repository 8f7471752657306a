"""What INIT may do, guarded by what is the same on every machine: modules, files, bytes. Never by the clock."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from semsearch.engine.bundle import MODEL
from tests.function.events.event_makers import Event, http_api
from tests.project import needs_linux
from tests.world import add_table

pytestmark = needs_linux("/proc")
# a start imports these packages and no other; one more must earn its milliseconds
PACKAGES = {
    *("aws_lambda_powertools", "jmespath", "mangum", "numpy", "onnxruntime", "pydantic_core", "safetensors"),
    *("simsimd", "Stemmer", "tokenizers", "typing_extensions"),
}
# what is in no package, and would come with a careless change
STRANGERS = {"export", "bench", "tests", "unittest", "multiprocessing", "sqlite3", "xml", "tkinter", "distutils"}
LIBRARIES_MODULES = 155  # modules of the packages above; a lazy one counts as one although its code does not run

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
seen["init"] = list(sys.modules)
reply = function.handler.handler(EVENT, None)
assert reply["statusCode"] == 200, reply
seen["later"] = sorted(set(sys.modules) - set(seen["init"]))
print(json.dumps(seen))
""".replace("EVENT", repr(http_api("POST", "/similar", '{"text": "angry goose"}')))

# What a start and later requests of each kind import, with the key if one is needed. BROKEN is a module whose import
# fails, "" for none.
WATCH_OTHERS = """
import json, os, sys
from types import SimpleNamespace
if os.environ["BROKEN"]:
    sys.modules[os.environ["BROKEN"]] = None
import function.handler
init = set(sys.modules)
replies = [function.handler.handler(event, SimpleNamespace(aws_request_id="a")) for event in EVENTS]
seen = {"init": sorted(init), "later": sorted(set(sys.modules) - init)}
seen["statuses"] = [reply["statusCode"] for reply in replies]
seen["phases"] = [*function.handler.cold_start.phases]
print(json.dumps(seen))
"""
KEY = "sixteen-letters!"
SEARCH_TOOL = {"name": "search", "arguments": {"query": "angry gosling"}}
OTHERS = [
    http_api("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})),
    http_api("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": SEARCH_TOOL})),
    http_api("POST", "/similar", '{"text": 5}'),
    http_api("POST", "/v1/embeddings", '{"input": "goose"}'),
    http_api("POST", "/embed", '{"inputs": "goose"}'),
    http_api("GET", "/", None),
    http_api("POST", "/similar", '{"text": "goosse", "highlights": true, "facets": ["who"]}'),
    http_api("POST", "/similar", '{"text": "goose", "filter": {"who": "an angry goose"}}'),
]
for event in OTHERS:
    event["headers"]["authorization"] = f"Bearer {KEY}"

# modules that only some functions or some requests need
LATE = (
    *("semsearch.aws.requests", "semsearch.aws.s3", "semsearch.server", "semsearch.app.fastapi_app"),
    *("semsearch.app.routes.clients", "semsearch.app.mcp", "semsearch.app.access", "semsearch.app.routes.page"),
    "semsearch.app.routes.documents",
    *("semsearch.engine.metadata", "semsearch.engine.pages", "semsearch.engine.rerank"),
    *("semsearch.engine.keyword.corrections", "semsearch.engine.keyword.highlights", "semsearch.search.refinements"),
    *("numpy.ma.", "asyncio."),
)
Seen = dict[str, Any]


@pytest.fixture(scope="module")
def read_only(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the bundle that cannot be written, as in an image."""
    copy = Path(shutil.copytree(bundle, tmp_path_factory.mktemp("image") / "bundle"))
    for path in [*copy.iterdir(), copy]:
        path.chmod(path.stat().st_mode & ~0o222)
    yield copy
    copy.chmod(0o755)


@pytest.fixture(scope="module")
def start(
    in_a_new_process: Callable[..., Any], read_only: Path, shipped: Path, image_environment: dict[str, str]
) -> Callable[..., Seen]:
    """Return what starts the function as it ships, sends it a request and returns what was seen of both."""

    def start_and_watch(**environment: str) -> Seen:
        variables = {"BUNDLE_DIR": str(read_only)} | image_environment | environment
        found: Seen = in_a_new_process(WATCH, shipped, **variables)
        return found

    return start_and_watch


@pytest.fixture(scope="module")
def with_telemetry(start: Callable[..., Seen]) -> Seen:
    """The first start, which compiles what pip has not, in an environment that turns telemetry on."""
    return start(ORT_DISABLE_TELEMETRY="0")


@pytest.fixture(scope="module")
def seen(with_telemetry: Seen, start: Callable[..., Seen]) -> Seen:
    return start()


def test_init_imports_the_packages_of_the_list_and_no_other(seen: Seen) -> None:
    modules = seen["modules"]
    tops = {name.partition(".")[0] for name in modules}
    installed = tops & packages_distributions().keys()
    assert installed - {"snapshot_restore_py", "function", "semsearch"} <= PACKAGES
    assert {"onnxruntime", "numpy", "tokenizers", "mangum", "aws_lambda_powertools"} <= tops
    assert not tops & STRANGERS
    assert not [name for name in modules if name.startswith(LATE)]
    assert sum(name.partition(".")[0] in installed for name in modules) <= LIBRARIES_MODULES


def test_init_opens_few_files_and_reads_little(seen: Seen, read_only: Path) -> None:
    opened = [Path(name) for name in seen["opened_by_init"]]
    of_the_bundle = [path.name for path in opened if path.parent == read_only]
    names = ["index.safetensors", "keywords.safetensors", "manifest.json", "manifest.json", "passages.safetensors"]
    assert sorted(of_the_bundle) == [*names, "tokenizer.txt"]
    assert len(opened) <= 18  # without the archive some 450
    # mapped files are not counted: of the archive, the model and the index only what is used is read
    assert seen["bytes"] <= 3_000_000


def test_init_and_a_request_compile_nothing_and_the_request_imports_nothing(seen: Seen) -> None:
    by_anyio = ("anyio/__init__.py", "anyio/abc/__init__.py")  # it reads its own imports, to make them lazily
    assert [name for name in seen["compiled"] if not name.endswith(by_anyio)] == []
    assert seen["later"] == []


def test_init_and_a_request_write_no_file_ask_nothing_of_the_network_and_start_no_program(
    seen: Seen, bundle: Path, read_only: Path
) -> None:
    assert (seen["written"], seen["network"]) == ([], [])
    before, after = ({path.name: path.read_bytes() for path in each.iterdir()} for each in (bundle, read_only))
    assert after == before


def test_the_telemetry_of_onnxruntime_is_off_before_it_is_imported(seen: Seen, with_telemetry: Seen) -> None:
    assert seen["telemetry"] == with_telemetry["telemetry"] == ["1"]


def test_a_start_without_a_model_imports_neither_onnxruntime_nor_tokenizers(
    start: Callable[..., Seen], no_model: Path
) -> None:
    seen = start(BUNDLE_DIR=str(no_model))
    assert not [name for name in seen["init"] if name.startswith((*LATE, "onnxruntime", "tokenizers"))]
    assert seen["later"] == []
    of_the_bundle = [path.name for path in map(Path, seen["opened_by_init"]) if path.parent == no_model]
    names = ["index.safetensors", "keywords.safetensors", "manifest.json", "manifest.json", "passages.safetensors"]
    assert sorted(of_the_bundle) == names


def test_a_search_with_a_query_table_imports_no_onnxruntime_and_reads_no_byte_of_the_model(
    start: Callable[..., Seen], bundle_copy: Path
) -> None:
    add_table(bundle_copy)
    model = bundle_copy / MODEL
    model.write_bytes(bytes(model.stat().st_size))  # zeros: whoever reads them fails
    seen = start(BUNDLE_DIR=str(bundle_copy))
    assert not [name for name in seen["init"] if name.startswith("onnxruntime")]
    assert seen["later"] == []


@pytest.fixture(scope="module")
def start_and_answer(
    in_a_new_process: Callable[..., Any], read_only: Path, shipped: Path, image_environment: dict[str, str]
) -> Callable[..., Seen]:
    """Return what starts the function as it ships, sends it requests and returns what both have imported."""

    def run(events: Sequence[Event], broken: str = "", **environment: str) -> Seen:
        variables = {"BUNDLE_DIR": str(read_only), "BROKEN": broken} | image_environment | environment
        found: Seen = in_a_new_process(WATCH_OTHERS.replace("EVENTS", repr(events)), shipped, **variables)
        return found

    return run


def test_by_default_the_first_other_request_imports_fastapi(start_and_answer: Callable[..., Seen]) -> None:
    for event in OTHERS[:3:2]:  # the first one of MCP, and a 422
        seen = start_and_answer([event], AWS_LAMBDA_INITIALIZATION_TYPE="on-demand", WARM_UP_ALL_ROUTES="0")
        assert not {"fastapi", "semsearch.app.mcp", "asyncio.events"} & {*seen["init"]}
        assert {"fastapi", "semsearch.app.mcp.messages", "asyncio.events"} <= {*seen["later"]}
        assert "other-routes" not in seen["phases"]


@pytest.mark.parametrize(
    "environment",
    [
        {"WARM_UP_ALL_ROUTES": "1"},
        {"WARM_UP_ALL_ROUTES": "1", "API_KEYS": KEY},
        {"AWS_LAMBDA_INITIALIZATION_TYPE": "provisioned-concurrency"},
        {"AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start"},
    ],
    ids=["setting", "setting and keys", "provisioned concurrency", "SnapStart"],
)
def test_where_no_request_waits_for_a_start_or_by_a_setting_it_imports_all_that_other_requests_need(
    start_and_answer: Callable[..., Seen], environment: dict[str, str]
) -> None:
    seen = start_and_answer(OTHERS, **environment)
    assert seen["statuses"] == [200, 200, 422, 200, 200, 200, 200, 200]
    assert seen["later"] == []
    assert {"fastapi", "semsearch.engine.keyword.corrections", "semsearch.engine.keyword.highlights"} <= {*seen["init"]}
    assert {"semsearch.engine.metadata.columns", "semsearch.engine.metadata.facets"} <= {*seen["init"]}
    assert seen["phases"] == ["import-engine", "import-http", "model", "app", "warm-up", "other-routes"]


def test_an_import_that_fails_does_not_stop_a_start(start_and_answer: Callable[..., Seen]) -> None:
    search = http_api("POST", "/similar", '{"text": "angry goose"}')
    seen = start_and_answer([search, OTHERS[0]], "semsearch.app.mcp.messages", WARM_UP_ALL_ROUTES="1")
    assert seen["statuses"] == [200, 500]
    assert seen["phases"][-1] == "other-routes"
