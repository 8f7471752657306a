"""README.md and docs/ say what is so: tables and figures are the measured ones, commands, files and links exist."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from safetensors.numpy import save_file
from starlette.routing import Route

from bench.documents import FIGURE, TABLE, documents, fill
from bench.folders import RESULTS
from export.arguments import COMMANDS, parse_arguments
from export.corpus import Corpus
from export.index.columns import TYPES, column_tensors
from function import query
from function.engine import bundle as layout
from function.engine.columns import PARTS, Columns
from function.engine.filters import allowed_rows
from function.errors import ERROR_TYPES, FAILED, REFUSED
from function.server import command as server_command
from function.settings import Settings, read_settings
from tests.cloudformation import load_template
from tests.conftest import write_bundle

PROJECT = Path(__file__).parents[1]
PAGES = {str(path.relative_to(PROJECT)): path.read_text(encoding="utf-8") for path in documents(PROJECT)}
README = PAGES["README.md"]

BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAME_WITH_NUMBERS = re.compile(
    r"(?<=\])\([^)\s]+\)|\b(?:doi|arXiv):\S+|\b(?:CC0|CC BY|CC BY-SA|ODC-By) \d\.\d|\b\d+(?:\.\d+){3}\b"
)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
VARIABLES = re.compile(r"""^(?:[A-Z_]+=(?:"[^"]*"|\S+)\s+)+""")  # before a command
PICTURE_LINE = "═"
UNITS = "ms|milliseconds?|µs|s|seconds?|minutes?|hours?|MB|GB|kB|KB|MiB|GiB|dollars|times|texts/s|requests/s"
MEASURED = re.compile(rf"[$€]\s?\d[\d,.]*|\b\d[\d,.]*\s?(?:%|\u00d7|(?:{UNITS})\b)|\b\d+[.]\d+\b")

# What looks like a measured figure and is none: where it comes from. Whatever is measured gets a marker instead.
NOT_MEASURED = {
    "Python 3.11": "pyproject.toml: requires-python",
    "weight of 0.6": "export/index/keywords.py: FUSION_WEIGHT",
    "`3.11`": "an example of a code",
    "ubuntu-24.04": "a name of GitHub's",
    "512 MB": "tests/image: the limit that the image is tested with",
    "1,769 MB": "https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html: one whole core",
    "512 KB": "https://aws.amazon.com/api-gateway/pricing/: how much of a request is billed as one",
    "least 0.9999": "export/model/reference.py: LEAST_COSINE",
    "95 %": "bench/ablation.py: from the 2.5th percentile to the 97.5th",
    "99 % of the ten best": "export/index/stages.py: RECALL_WITH_LISTS",
    "98 %": "export/index/recall.py: LEAST_RECALL",
    "99.8 % where": "export/index/stages.py: RECALL_WITHOUT_LISTS",
    "20 MiB": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-limitations.html, like 40 KB",
    "10 GB": "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html: of an image and of /tmp",
    "some 100 ms": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-best-practices.html",
    "40 KB": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-limitations.html, like the next",
    "2 KB": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-limitations.html",
    "recall of 0.98": "bench/scale_contest.py: TARGETS",
    "reach 0.99": "bench/scale_contest.py: TARGETS",
    "25 seconds": "function/server/serving.py: SECONDS_TO_FINISH",
    "0.4 to 0.7 seconds": "published restores of SnapStart: of one Python function whose INIT took 93 ms, 622 ms",
    "10 seconds": "https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html: the limit of INIT",
    "700 MB": "what 625 Mbit/s are in nine seconds, less than the limit of INIT",
    "20 ms": "bench/memory.py: PERIOD, over which Docker counts a share of a core",
}


def prose(text: str) -> str:
    """Return a page without its code blocks, addresses and licences, and without what a command has put in."""
    return NAME_WITH_NUMBERS.sub("", BLOCK.sub("", FIGURE.sub("", TABLE.sub("", text))))


def shown_code(text: str) -> list[str]:
    """Return the lines of a page's code blocks and the code within its sentences; not the demo, and no picture."""
    text = TABLE.sub("", text)
    blocks = [block for block in BLOCK.findall(text) if PICTURE_LINE not in block]
    return [line for block in blocks for line in block.splitlines()] + CODE.findall(BLOCK.sub("", text))


def commands(program: str) -> list[str]:
    """Return the commands of this program that the pages show, without their comments and their variables."""
    found = set()
    for text in PAGES.values():
        for line in shown_code(text):
            command = VARIABLES.sub("", line.partition("#")[0].strip())
            if command == program or command.startswith(f"{program} "):
                found.add(command)
    return sorted(found)


def words(command: str, program: str) -> list[str]:
    """Return a command's arguments; what may be left out, in brackets, is there."""
    return shlex.split(command.removeprefix(program).replace("[", "").replace("]", ""))


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives a page's headings."""
    headings = HEADING.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# Tables and figures


@pytest.mark.parametrize("page", PAGES)
def test_each_marked_table_and_figure_is_what_was_measured(page: str) -> None:
    assert PAGES[page] == fill(PAGES[page], RESULTS), "run `python -m bench documents`"


def test_each_measured_table_is_shown_on_one_page() -> None:
    shown = [match["name"] for text in PAGES.values() for match in TABLE.finditer(text)]
    assert sorted(set(shown)) == sorted(shown)
    assert {path.stem for path in RESULTS.glob("*.md")} <= set(shown)


@pytest.mark.parametrize("page", PAGES)
def test_no_measured_figure_is_typed(page: str) -> None:
    text = prose(PAGES[page])
    for known in NOT_MEASURED:
        text = text.replace(known, "")
    lines = [line for line in text.splitlines() if MEASURED.search(line)]
    assert lines == [], "mark these figures, or say in NOT_MEASURED where they come from"


@pytest.mark.parametrize(
    "figure",
    ["4.3 ms", "4ms", "98 %", "98%", "$1.95", "790 texts/s", "2 times", "2.1", "0.979", "1,769 MB", "3 seconds"],
)
def test_a_typed_figure_would_be_found(figure: str) -> None:
    assert MEASURED.search(f"A request takes {figure} here.")
    assert not MEASURED.search(prose(f"It takes <!-- figure warm/rows d -->{figure}<!-- /figure --> here.\n"))


def test_each_figure_that_is_called_not_measured_is_in_a_page() -> None:
    text = "".join(map(prose, PAGES.values()))
    assert [known for known in NOT_MEASURED if known not in text] == []


# Commands


def test_readme_and_pages_show_commands_of_every_program() -> None:
    assert len(commands("python -m export")) >= 6
    assert len(commands("python -m function")) >= 1
    assert len(commands("python -m bench")) >= 5
    assert len(commands("make")) >= 4


@pytest.mark.parametrize("command", commands("python -m export"))
def test_each_export_command_has_options_that_exist(command: str) -> None:
    assert parse_arguments(words(command, "python -m export")).command in ("export", *COMMANDS)


@pytest.mark.parametrize("command", commands("python -m function"))
def test_each_server_command_has_options_that_exist(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if words(command, "python -m function")[:1] == ["query"]:
        options = query.parse_arguments(words(command, "python -m function query"))
        assert options.text or options.file
        return
    # the server stops after it has read its arguments
    monkeypatch.setattr(server_command, "find_spec", lambda name: None)
    assert server_command.main(words(command, "python -m function")) == 1
    assert "uvicorn is not installed" in capsys.readouterr().err


@pytest.mark.parametrize("command", commands("python -m bench"))
def test_each_bench_command_has_options_that_exist(command: str) -> None:
    name, *options = words(command, "python -m bench")
    done = subprocess.run(
        [sys.executable, "-m", "bench", name, "--help"],
        cwd=PROJECT,
        env=os.environ | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [option for option in options if option.startswith("-") and option not in done.stdout] == []


@pytest.mark.parametrize("command", commands("make"))
def test_each_make_target_exists(command: str) -> None:
    targets = re.findall(r"^([\w-]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert command.split()[-1] in targets


def test_every_python_command_can_be_pasted_once_the_environment_is_activated() -> None:
    lines = [line for block in BLOCK.findall(TABLE.sub("", README)) for line in block.splitlines()]
    activated = next(number for number, line in enumerate(lines) if line.startswith(". .venv/bin/activate"))
    first = next(number for number, line in enumerate(lines) if line.startswith("python -m"))
    assert activated < first
    assert [line for line in lines if "python -m" in line and ".venv" in line] == []


# Files, links and names


@pytest.mark.parametrize(
    ("page", "target"), [(page, target) for page, text in PAGES.items() for target in sorted(set(LINK.findall(text)))]
)
def test_each_link_leads_somewhere(page: str, target: str) -> None:
    if target.startswith("https://"):
        return
    file, _, anchor = target.partition("#")
    path = (PROJECT / page).parent / file if file else PROJECT / page
    assert path.exists()
    assert not anchor or anchor in anchors(path)


ROOMS = ("function", "export", "bench", "deploy", "docs", "tests", "image", "events")  # the last two are no more
TOP_FILES = r"[A-Za-z][\w.-]*\.(?:py|md|yaml|toml|txt)|Dockerfile|Makefile"


def paths(text: str) -> list[str]:
    """Return what a page's code names of this repository: paths that begin with one of ROOMS, and files at the top."""
    code = " ".join(shown_code(text))
    found = re.findall(rf"(?<![\w./-])((?:{'|'.join(ROOMS)})/[\w./*-]*|(?:{TOP_FILES})(?![\w/]))", code)
    return sorted(set(found) - {"headlines.csv", "bundle.md", layout.MANIFEST, layout.TOKENIZER, "function/"})


@pytest.mark.parametrize(("page", "path"), [(page, path) for page, text in PAGES.items() for path in paths(text)])
def test_each_file_that_is_named_is_there(page: str, path: str) -> None:
    assert list(PROJECT.glob(path.rstrip("/")))


def test_each_name_in_the_picture_is_a_module_or_a_folder() -> None:
    (picture,) = [block for block in BLOCK.findall(README) if PICTURE_LINE in block]
    heading, rest = picture.split("\n", 1)
    assert "AWS Lambda" in heading
    for folder in ("function/engine/", "function/", "export/"):
        assert folder in rest
        assert (PROJECT / folder).is_dir()
        rest = rest.replace(folder, "")
    rooms = [PROJECT / room for room in ("export", "function", "function/engine")]
    known = {path.stem for room in rooms for path in room.iterdir() if path.is_dir() or path.suffix == ".py"}
    names = set(re.findall(r"\w+", rest.replace(PICTURE_LINE, "")))
    assert len(names) > 15
    assert names - known == set()


def test_the_readme_can_be_read_to_its_end() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("page", sorted(set(PAGES) - {"README.md"}))
def test_the_readme_links_to_each_page_which_says_first_what_it_answers(page: str) -> None:
    assert page in LINK.findall(README)
    title, first = PAGES[page].split("\n\n")[:2]
    assert title.startswith("# ")
    assert "this page" in first.partition(". ")[0].lower()


def test_the_settings_are_all_described_with_their_defaults() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([^|]*)\|", PAGES["docs/api.md"], re.MULTILINE)
    described = {name.lower(): default.strip(" `") for name, default in rows}
    set_by_lambda = {"aws_lambda_initialization_type"}
    from_bundle_dir, into_bundle_dir = {"bundle_url"}, {"local_bundle_dir"}
    names = {field.name for field in fields(Settings)}
    assert set(described) == names - set_by_lambda - from_bundle_dir | into_bundle_dir
    assert (described.pop("api_keys"), Settings().api_keys) == ("none", ())
    assert described.pop("bundle_dir") == described.pop("local_bundle_dir") == "bundle/` beside `function/"
    assert described.pop("mcp_origins") == ""
    assert described == {name: str(getattr(read_settings({}), name)) for name in described}


def test_each_variable_that_the_settings_read_is_described() -> None:
    class Environment(dict[str, str]):
        """An environment that keeps the names that were looked up."""

        def get(self, name: str, default: Any = None) -> Any:
            read.add(name)
            return super().get(name, default)

    read: set[str] = set()
    read_settings(Environment(BUNDLE_DIR="s3://bucket/prefix"))
    read -= {"AWS_LAMBDA_INITIALIZATION_TYPE"}  # set by Lambda itself
    assert len(read) > 10
    assert [name for name in sorted(read) if f"`{name}`" not in PAGES["docs/api.md"]] == []


def routes_in(page: str) -> list[str]:
    """Return the routes in the first columns of a page's tables, such as "GET /health"."""
    cells = re.findall(r"^\| (`(?:GET|POST) /[^|]*) \|", PAGES[page], re.MULTILINE)
    return sorted(set(re.findall(r"`((?:GET|POST) /[^`]*)`", " ".join(cells))))


@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_the_routes_are_those_of_the_app(page: str, make_app: Callable[..., FastAPI]) -> None:
    app = make_app()
    app.openapi()  # which adds the routes that a start leaves out
    of_the_app = [
        f"{method} {route.path_format}"
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    ]
    assert routes_in(page) == sorted(of_the_app)


def test_the_statuses_of_errors_are_those_of_the_app() -> None:
    described = re.findall(r"^\| (\d{3}(?:, \d{3})*) \|", PAGES["docs/api.md"], re.MULTILINE)
    assert {int(status) for cell in described for status in cell.split(", ")} == {*ERROR_TYPES, *REFUSED, *FAILED}


def test_the_phases_of_a_cold_start_are_those_that_are_timed() -> None:
    described = re.findall(r"^\| `([a-z-]+)` \|", PAGES["docs/cold-start.md"], re.MULTILINE)
    handler = (PROJECT / "function" / "handler.py").read_text(encoding="utf-8")
    assert described == re.findall(r"lap\(\"([^\"]+)\"\)", handler)


def test_the_bundles_files_and_format_are_those_of_the_code() -> None:
    page = PAGES["docs/bundle.md"]
    files = re.findall(r"^  (\S+)  ", page, re.MULTILINE)
    assert set(files) == {
        layout.MANIFEST,
        layout.MODEL,
        layout.TOKENIZER,
        layout.INDEX,
        layout.PASSAGES,
        layout.COLUMNS,
        layout.KEYWORDS,
        layout.TRUNCATED,
    }
    assert f"format version is {layout.FORMAT_VERSION}," in page


BOOKS = {"category": "string", "date": "date", "tags": "list", "year": "number"}
(FILTERS,) = re.findall(r"^## Filters\n(.*?)^## ", PAGES["docs/api.md"], re.DOTALL | re.MULTILINE)


@pytest.fixture
def books(tmp_path: Path) -> Columns:
    rows: list[dict[str, object]] = [
        {"category": "WORLD", "date": "2016-05-31", "tags": ["new"], "year": 2016},
        {"category": "ARTS", "date": "2014-05-31", "tags": ["draft"], "year": 2014},
        {},
    ]
    save_file(column_tensors(rows, BOOKS), tmp_path / "columns.safetensors")
    return Columns(tmp_path / "columns.safetensors", BOOKS, len(rows))


def test_each_filter_that_is_shown_keeps_some_rows_and_not_others(books: Columns) -> None:
    shown = [json.loads(code) for code in [*BLOCK.findall(FILTERS), *CODE.findall(FILTERS)] if code.startswith("{")]
    filters = [one.get("filter", one) for one in shown if "error" not in one and one != {"$exists": False}]
    assert len(filters) == 11
    for one in filters:
        kept = allowed_rows(one, books).sum()
        assert 0 < kept < 3 or one == {"year": {"$gte": 2014, "$lt": 2018}, "category": "ARTS"}, one


def test_the_refusal_of_a_filter_that_is_shown_is_the_real_one(
    connect: Callable[..., httpx.Client], tmp_path: Path
) -> None:
    metadata = json.dumps({"category": "WORLD", "year": 2014})
    columns = {"category": "string", "year": "number"}
    corpus = Corpus(["The baker"], ["a"], [metadata], empty_texts=0, columns=columns)
    client = connect(bundle=write_bundle(tmp_path / "bundle", corpus))
    (shown,) = [json.loads(block) for block in BLOCK.findall(FILTERS) if "error_type" in block]
    assert client.post("/similar", json={"text": "x", "filter": {"year": {"$gt": "2014"}}}).json() == shown


def test_the_types_and_tensors_of_columns_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `([a-z]+)` \|", PAGES["docs/bundle.md"], re.MULTILINE)
    assert rows == [*TYPES, *PARTS]


PARAMETERS = load_template(PROJECT / "template.yaml")["Parameters"]
PARAMETERS_OF_ROLES = load_template(PROJECT / "deploy" / "github.yaml")["Parameters"]


@pytest.mark.parametrize("page", PAGES)
def test_each_parameter_of_the_deployment_exists(page: str) -> None:
    named = set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*)=[^`\s]+`", PAGES[page]))
    assert named <= PARAMETERS.keys() | PARAMETERS_OF_ROLES.keys()


def test_each_parameter_of_the_deployment_is_described_with_its_default() -> None:
    (table,) = re.findall(r"^## All parameters\n(.*?)^## ", PAGES["docs/deploy.md"], re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \| (?:`([^`]*)`)? ?\| \S", table, re.MULTILINE)
    assert dict(rows) == {name: str(parameter["Default"]) for name, parameter in PARAMETERS.items()}
