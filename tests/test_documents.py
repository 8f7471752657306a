"""README.md and docs/ agree with the code: figures are the measured ones, commands, links and settings exist."""

import asyncio
import json
import re
import shlex
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from collections.abc import Callable
from dataclasses import fields
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any

import cyclopts
import pytest
from cfnlint.decode import cfn_yaml
from starlette.routing import Route

from bench import RESULTS
from bench.__main__ import program as bench
from bench.tables import TABLE, fill_page, pages
from export.__main__ import program as export
from semsearch.app.app import App
from semsearch.app.settings import Settings, read_settings
from semsearch.commands.main import app
from semsearch.engine import bundle as layout
from semsearch.indexing.bundles import take_model
from tests.commands.test_suggestions import problem_of
from tests.notebook import NOTEBOOK, as_notebook
from tests.project import ROOT

PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in pages(ROOT)}
README = PAGES["README.md"]

BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
VARIABLES = re.compile(r"""^(?:[A-Z_]+=(?:"[^"]*"|\S+)\s+)+""")  # before a command
EXPORT = " ".join(["python", "-m", "export"])


def shown_code(text: str) -> list[str]:
    """Return the lines of a page's code blocks and the code within its sentences; not what was measured."""
    text = TABLE.sub("", text)
    return [line for block in BLOCK.findall(text) for line in block.splitlines()] + CODE.findall(BLOCK.sub("", text))


def commands(program: str) -> list[str]:
    """Return the commands of this program that the pages show, without comments, variables and redirections."""
    found = set()
    for text in PAGES.values():
        for line in shown_code(text):
            command = VARIABLES.sub("", line.partition("#")[0].partition(" > ")[0].strip()).removeprefix(".venv/bin/")
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


def test_the_site_of_the_documents_is_called_what_readme_is_called() -> None:
    (name,) = re.findall(r"^site_name: (.+)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert HEADING.findall(README)[0] == name


def test_each_marked_table_and_figure_is_what_was_measured() -> None:
    stale: list[str] = []
    for page, text in PAGES.items():
        measured = fill_page(ROOT / page, RESULTS)
        stale += unified_diff(text.splitlines(), measured.splitlines(), page, "as measured", n=0, lineterm="")
    assert not stale, "\n".join(["run `python -m bench tables`", *stale])


# Commands


@pytest.mark.parametrize(("name", "program"), [("semsearch", app), (EXPORT, export), ("python -m bench", bench)])
def test_each_command_has_options_that_exist(name: str, program: cyclopts.App) -> None:
    problems = {command: problem_of(program, words(command, name)) for command in commands(name)}
    assert problems
    assert {command: problem for command, problem in problems.items() if problem is not None} == {}


def test_each_make_target_exists() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {command.split()[-1] for command in commands("make")} <= set(targets)


# Links and settings


def leads_somewhere(page: str, target: str) -> bool:
    file, _, anchor = target.partition("#")
    path = (ROOT / page).parent / file if file else ROOT / page
    return target.startswith("https://") or (path.exists() and (not anchor or anchor in anchors(path)))


def test_each_link_leads_somewhere() -> None:
    links = [(page, target) for page, text in PAGES.items() for target in LINK.findall(text)]
    assert [link for link in links if not leads_somewhere(*link)] == []


ROOMS = ("function", "export", "semsearch", "deploy", "docs", "tests")  # pages also name benches of earlier commits
TOP_FILES = r"[A-Za-z][\w.-]*\.(?:py|md|yaml|toml|txt)|Dockerfile|Makefile"


def judged(name: str) -> list[dict[str, Any]]:
    lines = (ROOT / "bench" / "judged" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_each_judged_question_has_an_answer_that_is_there() -> None:
    products = {product["id"] for product in judged("products")}
    assert [entry for entry in judged("shop") if not products.issuperset(entry["relevant"])] == []
    sections = [section for entry in judged("docs") for section in entry["relevant"]]
    assert [section for section in sections if not leads_somewhere("docs/index.md", section)] == []


def paths(text: str) -> list[str]:
    """Return what a page's code names of this repository: paths that begin with one of ROOMS, and files at the top."""
    code = " ".join(shown_code(text))
    found = re.findall(rf"(?<![\w./-])((?:{'|'.join(ROOMS)})/[\w./*-]*|(?:{TOP_FILES})(?![\w/]))", code)
    return sorted(
        set(found)
        - {
            "headlines.csv",
            "docs/javascripts/search-box.mjs",
            "zensical.toml",
            "conf.py",
            "packaged.yaml",
            "bundle.md",
            "documents.md",
            layout.MANIFEST,
            layout.TOKENIZER,
            layout.RERANK_TOKENIZER,
            layout.SOURCE,
            "function/",
        }
    )


def test_each_file_that_is_named_is_there() -> None:
    missing = [
        (page, path) for page, text in PAGES.items() for path in paths(text) if not list(ROOT.glob(path.rstrip("/")))
    ]
    assert missing == []


def test_each_function_that_is_named_is_in_its_file() -> None:
    for path, name in re.findall(r"`([\w/]+\.py)::(\w+)`", PAGES["docs/architecture.md"]):
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^ *((async )?def|class) {name}\b|^ *{name} = ", source, re.MULTILINE), (path, name)


def test_the_readme_or_the_page_of_tasks_links_to_each_page() -> None:
    linked = {f"docs/{target.partition('#')[0]}" for target in LINK.findall(PAGES["docs/index.md"])}
    assert set(PAGES) - {"README.md"} <= set(LINK.findall(README)) | linked


@pytest.mark.usefixtures("quick_commands")
def test_the_python_examples_run_one_after_the_other(
    tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bundle").mkdir()
    take_model(bundle, tmp_path / "bundle")  # so that `index` uses the model of the tests
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown = []
    for code in re.findall(r"^```python\n(.*?)^```$", PAGES["docs/python.md"], re.DOTALL | re.MULTILINE):
        running = eval(compile(code, "python.md", "exec", flags=PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if running is not None:  # a cell with await
            asyncio.run(running)
        shown.append(capsys.readouterr().out.splitlines())
    _, searched, listed, several, read, embedded, *evaluated, awaited, updated, changed, own, by_parts = shown
    assert searched == [
        "c-1 A warm coat for the mountain guide 90",
        "[{'value': 'Ferry', 'count': 1}, {'value': 'North', 'count': 1}] 2",
    ]
    assert listed[-3:] == ["c-2 140", "c-1 90", "c-3 20"]
    assert several == ["c-1", "c-3", "2", "1", "3"]
    assert read[0] == "c-1 A warm coat for the mountain guide {'price': 90, 'brand': 'North'}"
    assert read[3] == "(3, 48)"
    assert [line.split() for line in read[4:8]] == [
        ["id", "string"],
        ["text", "string"],
        ["brand", "string"],
        ["price", "Int64"],
    ]
    assert embedded == ["(2, 48) float32"]
    assert evaluated == [[]] * 5  # tables and a plot
    assert awaited == ["An angry goose on a red shirt"]
    assert updated == ["['c-3', 'c-4', 'c-1']"]
    assert changed == ["2"]  # c-3 and c-5: the coat for 90 and the raincoat are gone
    assert own == ["openai/text-embedding-3-small 3", "['c-2', 'c-1'] ['c-1']"]
    assert len(by_parts) == 2


def test_the_notebook_is_the_page_about_python() -> None:
    """`python -m tests.notebook` writes it again."""
    assert NOTEBOOK.read_text(encoding="utf-8") == as_notebook(PAGES["docs/python.md"])


def test_the_settings_are_all_described_with_their_defaults() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([^|]*)\|", PAGES["docs/api.md"], re.MULTILINE)
    described = {name.lower(): default.strip(" `") for name, default in rows}
    set_by_lambda = {"aws_lambda_initialization_type"}
    from_bundle_dir, into_bundle_dir = {"bundle_url"}, {"local_bundle_dir"}
    names = {field.name for field in fields(Settings)}
    assert set(described) == names - set_by_lambda - from_bundle_dir | into_bundle_dir
    assert (described.pop("api_keys"), Settings().api_keys) == ("none", ())
    assert described.pop("bundle_dir") == described.pop("local_bundle_dir") == "bundle/` beside `function/"
    without_default = ("mcp_origins", "cors_origins", "allowed_hosts", "api_keys_arn", "jwt_filter")
    assert {described.pop(name) for name in without_default} == {""}
    assert described == {name: str(getattr(read_settings({}), name)) for name in described}


PARAMETERS, PARAMETERS_OF_ROLES = (
    cfn_yaml.load(str(ROOT / name))["Parameters"] for name in ("template.yaml", "deploy/github.yaml")
)


RESOURCES = cfn_yaml.load(str(ROOT / "template.yaml"))["Resources"]


def test_each_parameter_of_the_deployment_exists() -> None:
    named = {name for text in PAGES.values() for name in re.findall(r"`([A-Z][a-z]+[A-Za-z]*)=[^`\s]+`", text)}
    assert named <= PARAMETERS.keys() | PARAMETERS_OF_ROLES.keys()


def test_each_parameter_of_the_deployment_is_described_with_its_default() -> None:
    (table,) = re.findall(r"^## All parameters\n(.*)", PAGES["docs/deploy.md"], re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \| (?:`([^`]*)`)? ?\| \S", table, re.MULTILINE)
    assert dict(rows) == {name: str(parameter["Default"]) for name, parameter in PARAMETERS.items()}


def test_each_alarm_of_the_deployment_is_described() -> None:
    (table,) = re.findall(r"^## The alarms\n(.*?)^## ", PAGES["docs/operate.md"], re.DOTALL | re.MULTILINE)
    alarms = {name for name, one in RESOURCES.items() if one["Type"] == "AWS::CloudWatch::Alarm"}
    assert sorted(re.findall(r"^\| (\w+Alarm) \| \S", table, re.MULTILINE)) == sorted(alarms)


def routes_in(page: str) -> list[str]:
    """Return the routes in the first columns of a page's tables, such as "GET /health"."""
    cells = re.findall(r"^\| (`(?:GET|POST) /[^|]*) \|", PAGES[page], re.MULTILINE)
    return sorted(set(re.findall(r"`((?:GET|POST) /[^`]*)`", " ".join(cells))))


def test_the_routes_are_those_of_the_app(make_app: Callable[..., App]) -> None:
    app = make_app().fastapi
    of_the_app = [
        f"{method} {route.path_format}"
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    ]
    assert routes_in("docs/api.md") == sorted(of_the_app)
