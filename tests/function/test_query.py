"""python -m function query: what /similar would find, on a terminal, in a pipe and as JSON."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from function.query import main, mark_words
from tests.conftest import write_bundle

ROOT = Path(__file__).parents[2]
TEXT = "angry goose"


@pytest.fixture
def ask(bundle: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return what runs a query that must succeed, and returns what it prints."""

    def run(*arguments: str) -> str:
        assert main([*arguments, "--bundle", str(bundle)]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ([], {}),
        (["--num-results", "2"], {"num_results": 2}),
        (["--mode", "keyword"], {"mode": "keyword"}),
        (["--mode", "hybrid", "--exact"], {"mode": "hybrid", "exact": True}),
        (["--filter", '{"chapter": {"$lt": 3}}'], {"filter": {"chapter": {"$lt": 3}}}),
    ],
)
def test_json_is_the_reply_of_similar_with_the_query(
    ask: Callable[..., str], client: httpx.Client, options: list[str], body: dict[str, Any]
) -> None:
    (line,) = ask(TEXT, "--json", *options).splitlines()
    assert json.loads(line) == {"query": TEXT} | client.post("/similar", json={"text": TEXT} | body).json()


def test_in_a_pipe_each_hit_is_a_plain_line_with_its_whole_text(ask: Callable[..., str], client: httpx.Client) -> None:
    results = client.post("/similar", json={"text": TEXT, "num_results": 2}).json()["results"]
    assert ask(TEXT, "--num-results", "2").splitlines() == [
        f"{result['score']:6.2f}  {result['id']}  {result['text']}" for result in results
    ]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("function.query._is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.usefixtures("terminal")
def test_on_a_terminal_words_are_bold_and_lines_as_wide_as_it(ask: Callable[..., str]) -> None:
    lines = ask("Angry GOOSE", "--num-results", "3").splitlines()
    assert all("\x1b[1mangry\x1b[0m \x1b[1mgoose\x1b[0m" in line for line in lines)
    plain = [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in lines]
    assert max(map(len, plain)) == 60
    assert any(line.endswith("…") for line in plain)


@pytest.mark.usefixtures("terminal")
def test_no_color_leaves_words_unmarked(ask: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in ask(TEXT)


def test_words_are_marked_by_their_stems_and_only_whole() -> None:
    assert mark_words("Cars, scar; CAR.", "car", lambda word: word.removesuffix("s")) == (
        "\x1b[1mCars\x1b[0m, scar; \x1b[1mCAR\x1b[0m."
    )


def test_each_line_of_a_file_is_a_query(ask: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("\ufeffangry goose\r\n\n  \nsilver key\n", encoding="utf-8")
    file = str(tmp_path / "queries.txt")
    assert [json.loads(line)["query"] for line in ask("--file", file, "--json").splitlines()] == [TEXT, "silver key"]
    first, second = ask("--file", file, "--num-results", "1").split("\n\n")
    assert [first.splitlines()[0], second.splitlines()[0]] == [TEXT, "silver key"]


def test_a_dash_reads_standard_input(ask: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"silver key\n")))
    assert json.loads(ask("--file", "-", "--json"))["query"] == "silver key"


def test_no_hit_and_a_text_that_was_cut_are_told(ask: Callable[..., str]) -> None:
    assert ask("zeppelin", "--mode", "keyword") == "no text was found\n"
    assert ask("goose " * 30).endswith("the text is longer than the search reads; its end was left out\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["goose", "--filter", '{"where": 1}'], "found 'where'; the columns are: chapter (number), places (list)"),
        (["--file", "/none/queries.txt"], "error: /none/queries.txt: cannot be read (No such file or directory); name"),
        ([" "], "error: text: expected words, found none"),
        (["g\udcffoose"], "error: text: character 1 is not valid Unicode"),
    ],
)
def test_what_cannot_be_searched_for_is_told(
    bundle: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    assert main([*arguments, "--bundle", str(bundle)]) == 1
    assert expected in capsys.readouterr().err


def test_a_file_that_is_not_utf_8_is_told(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queries.txt").write_bytes(b"caf\xe9\n")
    assert main(["--file", str(tmp_path / "queries.txt"), "--bundle", str(bundle)]) == 1
    assert "byte 3 is not UTF-8; save the file as UTF-8" in capsys.readouterr().err


def test_a_bundle_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["goose", "--bundle", str(tmp_path / "none")]) == 1
    assert "none: is not a folder" in capsys.readouterr().err


def test_a_bundle_without_keywords_is_told(tmp_path: Path, corpus: Any, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = write_bundle(tmp_path / "bundle", corpus, keywords=None)
    assert main(["goose", "--mode", "keyword", "--bundle", str(bundle)]) == 1
    assert "this bundle has no keywords" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "expected one text or --file"),
        (["goose", "--file", "-"], "expected one text or --file"),
        (["goose", "--num-results", "0"], "'0', expected a whole number from 1 to 100"),
        (["goose", "--num-results", "101"], "expected a whole number from 1 to 100"),
        (["goose", "--filter", "{"], "argument --filter: not JSON"),
        (["goose", "--filter", "5"], "expected an object of JSON"),
        (["goose", "--mode", "magic"], "invalid choice: 'magic'"),
    ],
)
def test_unusable_arguments_end_it_with_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert expected in capsys.readouterr().err


def run_module(*arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "function", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_the_module_searches_serves_and_explains(bundle: Path, tmp_path: Path) -> None:
    assert "angry goose" in run_module("query", TEXT, "--bundle", str(bundle))
    assert 'python -m function query "self driving cars" --bundle bundle/' in run_module("query", "--help")
    none = str(tmp_path / "none")
    for serve in ([], ["serve"]):
        assert "none: is not a folder" in run_module(*serve, "--port", "0", "--bundle", none, code=1)


def test_a_query_imports_no_server(in_a_new_process: Callable[..., Any], bundle: Path) -> None:
    script = f"""
import json, sys
from function.query import main
main(["goose", "--bundle", {str(bundle)!r}])
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""
    assert not {"fastapi", "starlette", "pydantic", "mangum", "uvicorn", "asyncio"} & set(in_a_new_process(script))


def test_a_reader_that_stops_early_is_no_error(bundle: Path) -> None:
    command = f"yes goose | head -300 | {sys.executable} -m function query --file - --json --bundle {bundle} | head -1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert json.loads(done.stdout)["query"] == "goose"
    assert done.stderr == ""
