"""semsearch query: what /similar would find, on a terminal, in a pipe and as JSON."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from semsearch.commands.cards import _snippet
from semsearch.commands.console import suggested
from semsearch.commands.query import _print_found, _print_lines, _query, _texts
from semsearch.indexing.corpus import Corpus
from semsearch.search.query import SearchError
from semsearch.search.request import LocalRequest, RerankOptions
from tests.command_line import error_line, run
from tests.commands.options_page import search_page
from tests.project import ROOT, needs_linux, run_in_a_shell
from tests.world import add_floor, write_bundle

TEXT = "angry goose"


def printed(bundle: Path, *arguments: object) -> str:
    """Return what a query that must succeed prints."""
    done = run("query", bundle, *arguments)
    assert done.code == 0, done.err
    return done.out


@pytest.fixture
def ask(bundle: Path) -> Callable[..., str]:
    return partial(printed, bundle)


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ([], {}),
        (["--mode", "hybrid", "--exact"], {"mode": "hybrid", "exact": True}),
        (["--filter", '{"chapter": {"$lt": 3}}'], {"filter": {"chapter": {"$lt": 3}}}),
        (["--without", "angry", "--without", "the ferry"], {"without": ["angry", "the ferry"]}),
        (["--boost", '{"chapter": {"log": true, "weight": 1}}'], {"boost": {"chapter": {"log": True, "weight": 1}}}),
        (["--fields", "metadata", "--fields", "source"], {"include": ["metadata", "source"]}),
        (["--facet", "who", "--facets-of", "results"], {"facets": ["who"], "facets_of": "results"}),
        (["--queries", "model", "--num-results", "2"], {"queries": "model", "num_results": 2}),
        (["--highlights", "--min-score", "0.1"], {"highlights": True, "min_score": 0.1}),
    ],
)
def test_json_is_the_reply_of_similar_with_the_query(
    ask: Callable[..., str], client: httpx.Client, options: list[str], body: dict[str, Any]
) -> None:
    (line,) = ask(TEXT, "--json", *options).splitlines()
    assert json.loads(line) == {"query": TEXT} | client.post("/similar", json={"text": TEXT} | body).json()


@pytest.mark.parametrize("form", [[], ["--oneline"], ["--json"]])
def test_standard_error_says_that_nothing_relevant_was_found_and_the_texts_are_printed(
    ask: Callable[..., str], bundle_copy: Path, form: list[str]
) -> None:
    best = json.loads(ask(TEXT, "--num-results", "1", "--json"))["results"][0]["score"]
    for above, said in ((0.0, False), (0.01, True)):
        note = f"nothing relevant: the best score {best:.2f} is below {best + 0.01:.2f}\n" if said else ""
        bundle = add_floor(bundle_copy, {"hybrid": best + above})
        done = run("query", bundle, TEXT, *form)
        assert (done.code, done.out, done.err) == (0, ask(TEXT, *form), note)
        assert run("query", bundle, TEXT, *form, "--min-score", "floor").err == ""


def test_each_line_of_a_file_that_finds_nothing_relevant_is_named(bundle_copy: Path) -> None:
    bundle = add_floor(bundle_copy, {"hybrid": 2.0})
    (queries := bundle_copy.with_name("queries")).write_text("goose\ngoose \x1b[2J\n")
    first, second = run("query", bundle, "--file", queries).err.splitlines()
    assert first.startswith("goose: nothing relevant: the best score 0.")
    assert second.startswith("goose \\x1b[2J: nothing relevant: ")


def test_a_number_that_no_search_takes_is_refused_before_a_search(bundle: Path) -> None:
    models: dict[str, type[BaseModel]] = {"": LocalRequest, "rerank.": RerankOptions}
    schemas = {
        prefix + name: form
        for prefix, model in models.items()
        for name, schema in model.model_json_schema()["properties"].items()
        for form in schema.get("anyOf", [schema])
    }
    limits = {name.removesuffix(".candidates"): each for name, each in schemas.items() if "minimum" in each}
    assert {"num_results", "offset", "rerank"} <= limits.keys()
    for name, form in limits.items():
        option = f"--{name.replace('_', '-')}"
        for value in (form["minimum"] - 1, *([form["maximum"] + 1] if "maximum" in form else [])):
            done = run("query", bundle, TEXT, option, value)
            assert (done.code, f"{option}. Must be" in done.err) == (2, True), (option, value)


def test_the_page_of_options_is_what_the_signature_of_search_says() -> None:
    assert (ROOT / "docs" / "search-options.md").read_text(encoding="utf-8") == search_page()


def test_a_field_that_cards_need_is_shown_although_json_would_leave_it_out(ask: Callable[..., str]) -> None:
    assert ask(TEXT, "--fields", "metadata") == ask(TEXT)


def test_in_a_pipe_each_hit_is_a_plain_line_with_its_whole_text(ask: Callable[..., str], client: httpx.Client) -> None:
    results = client.post("/similar", json={"text": TEXT, "num_results": 2}).json()["results"]
    assert ask(TEXT, "--num-results", "2").splitlines() == [
        f"{result['score']:6.2f}  {result['id']}  {result['text']}" for result in results
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("--num-results", "1", "--json", "--", "--angry goose"),
        ("--", "--angry goose", "--num-results", "1", "--json"),
        ("--json", "--", "--angry goose", "--num-results=1"),
    ],
)
def test_a_text_after_two_dashes_begins_with_a_dash_and_options_stand_before_or_after_it(
    ask: Callable[..., str], words: tuple[str, ...]
) -> None:
    found = json.loads(ask(*words))
    assert (found["query"], len(found["results"])) == ("--angry goose", 1)


def test_an_option_that_does_not_exist_may_be_a_text_and_the_error_says_how_to_search_for_it(bundle: Path) -> None:
    for text in ("--dry run", "-v"):
        done = run("query", bundle, text, "--json")
        assert done.code == 2
        assert f"Unknown option: {text}" in done.err
        again = suggested("query", bundle, "--json", "--", text)
        assert f"; to search for this text, write `{again}`" in done.err
        assert json.loads(run(*shlex.split(again)[1:]).out)["query"] == text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((TEXT, "--jsn"), "Unknown option: --jsn. Did you mean --json?; see"),
        (("--fil", "questions"), "Unknown option: --fil. Did you mean --file?; see"),
        (("--", "--angry", "goose", "--json"), "Unused Tokens: ['goose']; see"),
        (("--", "--angry goose", "--jsn"), "Unknown option: --jsn. Did you mean --json?; see"),
        (("--jsn", "--", "--angry goose"), "error: Unknown option: --jsn. Did you mean --json?; see"),
    ],
)
def test_a_wrong_option_beside_a_text_is_not_taken_for_a_text(
    bundle: Path, words: tuple[str, ...], message: str
) -> None:
    done = run("query", bundle, *words)
    assert done.code == 2
    assert message in done.err


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semsearch.commands.query._is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.usefixtures("terminal")
def test_on_a_terminal_words_are_bold_and_lines_as_wide_as_it(ask: Callable[..., str]) -> None:
    lines = ask("Angry GOOSE", "--num-results", "3", "--mode", "keyword", "--oneline").splitlines()
    assert all("\x1b[1mangry\x1b[0m \x1b[1mgoose\x1b[0m" in line for line in lines)
    plain = [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in lines]
    assert max(map(len, plain)) == 60
    assert any(line.endswith("…") for line in plain)


DOCUMENT_METADATA = {
    "path": "guide.md",
    "url": "guide.md#birds.goose",
    "title": "Guide",
    "headings": ["Guide", "Birds", "goose(angry=True)"],
}


@pytest.mark.usefixtures("terminal")
def test_on_a_terminal_a_result_is_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["The angry goose\nchased " + "a very long line of ducks and " * 9 + "sailors.", "A calm duck."]
    lines = [json.dumps(DOCUMENT_METADATA), json.dumps({"path": "b.md", "title": "Ducks"})]
    columns = {"path": "string", "url": "string", "title": "string", "headings": "list"}
    corpus = Corpus(texts, ["guide.md#birds.goose:1", "b.md:1"], lines, columns=columns)
    bundle = write_bundle(tmp_path / "bundle", corpus)
    monkeypatch.setenv("NO_COLOR", "1")
    card, other = printed(bundle, TEXT).split("\n\n")
    assert re.sub(r"^ *[\d.]+", "score", card).splitlines() == [
        "score  goose(angry=True)",
        "        Guide > Birds > guide.md#birds.goose:1",
        "        The angry goose chased a very long line of ducks",
        "        and a very long line of ducks and a very long line…",
    ]
    assert other.splitlines()[0].endswith("  Ducks")
    monkeypatch.delenv("NO_COLOR")
    assert "The \x1b[1mangry\x1b[0m \x1b[1mgoose\x1b[0m chased" in printed(bundle, TEXT)


def test_dots_of_a_snippet_say_which_ends_are_cut() -> None:
    text = "one two three four five six seven eight nine ten eleven"
    snippet = {"text": text[4:-7], "start": 4, "end": len(text) - 7, "highlights": []}
    assert list(_snippet({"text": text, "snippet": snippet}, 26)) == [
        "…two three four five six",
        "seven eight nine ten…",
    ]
    whole = {"text": text, "start": 0, "end": len(text), "highlights": []}
    assert list(_snippet({"text": text, "snippet": whole}, 60)) == [text]


@pytest.mark.usefixtures("terminal")
def test_a_card_of_a_table_begins_with_the_id(ask: Callable[..., str]) -> None:
    first, text, *_ = ask(TEXT, "--num-results", "1").splitlines()
    assert re.search(r"\d\.\d\d  \x1b\[1mstory-\d+", first)
    assert text.startswith(" " * 8)


def test_without_a_text_texts_are_listed_in_order_and_their_values_counted(ask: Callable[..., str]) -> None:
    options = ["--filter", '{"chapter": {"$exists": true}}', "--num-results", "4"]
    up = json.loads(ask(*options, "--sort", "chapter", "--json"))
    down = json.loads(ask(*options, "--sort", "chapter:desc", "--json"))
    chapters = [[hit["metadata"]["chapter"] for hit in reply["results"]] for reply in (up, down)]
    assert chapters[0] == sorted(chapters[0]) != chapters[1] == sorted(chapters[1], reverse=True)
    counts = json.loads(ask(*options, "--facet", "true", "--json"))["facets"]["true"]
    last = ask(*options, "--facet", "true").splitlines()[-1]
    assert last == "true: " + ", ".join(f"{each['value']} ({each['count']})" for each in counts)


def test_ranges_of_facets_are_printed_with_both_ends(tmp_path: Path) -> None:
    metadata = [json.dumps({"price": price}) for price in range(101)]
    texts = [f"{TEXT} {row}" for row in range(101)]
    corpus = Corpus(texts, texts, metadata, columns={"price": "number"})
    bundle = write_bundle(tmp_path / "bundle", corpus)
    last = printed(bundle, "--facet", "price", "--num-results", "1").splitlines()[-1]
    assert last == "price: 0 to 20 (20), 20 to 40 (20), 40 to 60 (20), 60 to 80 (20), 80 to 100 (20), 100 to 120 (1)"


def test_groups_are_indented_below_their_best_text(ask: Callable[..., str]) -> None:
    lines = ask(TEXT, "--group-by", "who", "--group-size", "2", "--num-results", "2").splitlines()
    reply = json.loads(ask(TEXT, "--group-by", "who", "--group-size", "2", "--num-results", "2", "--json"))
    shown = [hit["id"] for result in reply["results"] for hit in (result, *result["other_passages"])]
    assert [line.split()[1] for line in lines] == shown


ODD_TEXT = (
    "An angry goose żółć 🦆 \x1b[31mred\x1b]0;title\x07 \x9b31m \u202egnp.exe\u202c one\ttwo\nthree\u2028four \x7f"
)
ODD_METADATA = r"""{"infinite": 1e400, "half": "\ud800x", "control": "\u009bż"}"""


@pytest.fixture(scope="module")
def odd_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with characters that control a terminal, and metadata that JSON and UTF-8 cannot write as they are."""
    corpus = Corpus([ODD_TEXT], ["id\x1b[2J\n1"], [ODD_METADATA])
    return write_bundle(tmp_path_factory.mktemp("odd") / "bundle", corpus)


def test_no_character_of_a_text_or_an_id_controls_the_terminal(odd_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("angry \x1b[1m goose", encoding="utf-8")
    first, second = printed(odd_bundle, "--file", tmp_path / "queries.txt").splitlines()
    text = r"An angry goose żółć 🦆 \x1b[31mred\x1b]0;title\x07 \x9b31m \u202egnp.exe\u202c one two three four \x7f"
    assert first == r"angry \x1b[1m goose"
    assert second.endswith(rf"  id\x1b[2J 1  {text}")
    missing = run("query", "/none\x1b[31m", "goose")
    assert error_line(missing).startswith(r"error: /none\x1b[31m: is not a folder")


def test_json_has_no_such_characters_either_and_null_for_what_json_has_not(odd_bundle: Path) -> None:
    (line,) = printed(odd_bundle, "goose", "--json").splitlines()
    assert line.isascii()
    assert line.isprintable()
    (hit,) = json.loads(line, parse_constant=pytest.fail)["results"]
    assert (hit["id"], hit["text"]) == ("id\x1b[2J\n1", ODD_TEXT)
    assert hit["metadata"] == json.loads(ODD_METADATA) | {"infinite": None}


def test_each_line_of_a_file_is_a_query(ask: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("\ufeffangry goose\r\n\n  \nsilver key\n", encoding="utf-8")
    file = str(tmp_path / "queries.txt")
    assert [json.loads(line)["query"] for line in ask("--file", file, "--json").splitlines()] == [TEXT, "silver key"]
    first, second = ask("--file", file, "--num-results", "1").split("\n\n")
    assert [first.splitlines()[0], second.splitlines()[0]] == [TEXT, "silver key"]


def test_a_misspelled_word_is_shown_with_what_replaces_it(ask: Callable[..., str]) -> None:
    first, *hits = ask("the gooze", "--mode", "keyword").splitlines()
    assert first == "no text has 'gooze'; searched for goose"
    assert [hit.split()[1] for hit in hits] == [
        hit.split()[1] for hit in ask("the goose", "--mode", "keyword").splitlines()
    ]


def test_no_hit_and_a_text_that_was_cut_are_told(ask: Callable[..., str]) -> None:
    assert ask("zeppelin", "--mode", "keyword") == "no text was found\n"
    assert ask("goose " * 30).endswith("the text is longer than the search reads; its end was left out\n")


def test_what_cannot_be_searched_for_is_told(bundle: Path) -> None:
    line = error_line(run("query", bundle, "goose", "--filter", '{"where": 1}'))
    assert "found 'where'; the columns are: id (string), chapter (number)" in line


def test_a_bundle_in_s3_is_refused_with_what_to_do_instead() -> None:
    expected = "found an address, expected a folder; `semsearch serve s3://tests/prefix` serves"
    line = error_line(run("query", "s3://tests/prefix", "goose"))
    assert line.startswith(f"error: s3://tests/prefix: {expected}")


def test_a_query_imports_no_server_and_nothing_that_makes_an_index(
    in_a_new_process: Callable[..., Any], bundle: Path
) -> None:
    script = f"""
import json, sys
from semsearch.commands.main import dispatch
dispatch(["query", {str(bundle)!r}, "goose"])
print(json.dumps(sorted(sys.modules)))
"""
    modules = in_a_new_process(script)
    assert not {"fastapi", "starlette", "pydantic", "mangum", "uvicorn", "torch"}.intersection(modules)
    rooms = ("semsearch.indexing", "semsearch.app", "semsearch.server", "semsearch.conversion")
    light = {
        "semsearch.indexing",
        "semsearch.indexing.cache",
        "semsearch.indexing.file_choice",
        "semsearch.indexing.folder_names",
        "semsearch.indexing.walking",
    }  # for folders
    assert not [name for name in modules if name.startswith(rooms) and name not in light]


def run_query_in_a_shell(command: str, **environment: str) -> tuple[int, str, str]:
    """Run a command of bash, in which "query" means ours; return its exit code, stdout and stderr."""
    return run_in_a_shell(command.replace("query", f"{sys.executable} -m semsearch query"), **environment)


def test_a_reader_that_stops_early_ends_it_silently_as_sigpipe_does(bundle: Path) -> None:
    command = f"yes goose | head -300 | {{ query {bundle} --file - --json; echo $? >&2; }} | head -1"
    _, out, err = run_query_in_a_shell(command)
    assert json.loads(out)["query"] == "goose"
    assert err == "141\n"


@needs_linux("/dev/full")
def test_a_stream_that_is_full_is_an_error_in_one_line(bundle: Path) -> None:
    full = (1, "", "error: standard output: No space left on device\n")
    assert run_query_in_a_shell(f"query {bundle} goose >/dev/full") == full


def test_a_file_that_is_not_there_is_an_error_in_one_line(bundle: Path) -> None:
    missing = run("query", bundle, "--file", "/none.txt")
    assert error_line(missing) == "error: /none.txt: No such file or directory"


def test_ctrl_c_ends_it_without_a_trace(bundle: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "queries")
    command = [sys.executable, "-m", "semsearch", "query", str(bundle), "--file", str(tmp_path / "queries")]
    with (
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as query,
        (tmp_path / "queries").open("wb"),  # waits until the query opens it too
    ):
        query.send_signal(signal.SIGINT)
        out, _ = query.communicate(timeout=60)
    assert (query.returncode, out) == (130, b"")


def test_texts_come_from_a_word_from_a_file_or_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _texts(" two\nlines \r", None) == [" two\nlines "]
    (file := tmp_path / "texts").write_bytes(b"one\r\n \n\x0ctwo\x0cstill two\nthree")
    assert _texts(None, str(file)) == ["one", "\x0ctwo\x0cstill two", "three"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("ü\n".encode())))
    assert _texts(None, "-") == ["ü"]
    file.write_bytes(b"\xff")
    with pytest.raises(SearchError, match=f"^{file}: .*; write it in UTF-8$"):
        _texts(None, str(file))
    for text, place in ((" ", None), (None, "-")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n \n")))
        with pytest.raises(
            SearchError, match=f"^{place or 'text'}: found no words, expected a text to search for; wri"
        ):
            _texts(text, place)


def test_a_column_to_sort_by_can_have_a_colon_and_a_way() -> None:
    asked = _query({"sort": ["a:desc", "b:asc", "c", "d:e", ":desc", "f:g:desc"], "top_k": 3})
    ways = {"a": "desc", "b": "asc", "c": "asc", "d:e": "asc", ":desc": "asc", "f:g": "desc"}
    assert (asked.sort, asked.num_results) == (ways, 3)


def hit(id: str, text: str, score: float | None = None, **other: Any) -> dict[str, Any]:
    snippet = {"text": text, "start": 0, "end": len(text), "highlights": []}
    return {"id": id, "text": text, "score": score, "snippet": snippet} | other


def test_lines_of_hits_are_aligned_and_as_wide_as_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hits = [hit("a", "one  two", 0.125, other_passages=[hit("b\x07", "x" * 50, -1.5)]), hit("long", "y" * 50)]
    _print_lines(hits)
    assert capsys.readouterr().out.splitlines() == [
        "  0.12  a        one two",
        " -1.50    b\\x07  " + "x" * 50,
        "        long     " + "y" * 50,
    ]
    for columns, room in ((43, 26), (10, 20)):
        monkeypatch.setattr("semsearch.commands.query._is_terminal", lambda: True)
        monkeypatch.setenv("COLUMNS", str(columns))
        _print_lines(hits)
        assert capsys.readouterr().out.splitlines()[1:] == [
            f" -1.50    b\\x07  {'x' * (room - 1)}…",
            f"        long     {'y' * (room - 1)}…",
        ]
    _print_lines([])
    assert capsys.readouterr().out == ""


def test_all_that_was_found_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    reply = {"corrected": {"gooze": ["goose", "booze"]}}
    facets = {
        "year": [{"from": 1, "to": 2, "count": 1_000}, {"to": 5, "count": 1}, {"from": 9, "count": 0}],
        "who": [{"value": "\x07", "count": 2}],
    }
    found: Any = SimpleNamespace(reply=lambda: reply, results=[], facets=facets, is_truncated=True)
    _print_found(found, is_oneline=True)
    lines = [
        "no text has 'gooze'; searched for goose and booze",
        "no text was found",
        "year: 1 to 2 (1,000),  to 5 (1), 9 to  (0)",
        "who: \\x07 (2)",
        "the text is longer than the search reads; its end was left out",
    ]
    assert capsys.readouterr().out.splitlines() == lines
    found.results, found.facets, found.is_truncated = [hit("a", "one", metadata={})], None, False
    monkeypatch.setenv("NO_COLOR", "1")
    _print_found(found, is_oneline=False)
    assert capsys.readouterr().out.splitlines() == [lines[0], "        a", "        one"]


def test_texts_are_listed_without_a_text_only_if_something_says_which(bundle: Path) -> None:
    for words in (["--filter", '{"chapter": 3}'], ["--sort", "chapter"], ["--facet", "who"]):
        assert run("query", bundle, *words).code == 0
    done = run("query", bundle, "--group-by", "who")
    assert (done.code, done.out) == (2, "")
    assert "missing; expected a text, --file or --like, or --filter, --sort or --facet alone" in done.err


@pytest.mark.usefixtures("terminal")
def test_cards_of_documents_are_grouped_by_path_unless_they_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    metadata = [json.dumps({"path": path}) for path in ("a.md", "a.md", "b.md")]
    texts = ["an angry goose", "a goose", "a calm goose"]
    corpus = Corpus(texts, ["a:1", "a:2", "b:1"], metadata, columns={"path": "string"})
    folder = write_bundle(tmp_path / "bundle", corpus)
    assert printed(folder, "angry goose").count("· ") == 1
    assert printed(folder, "angry goose", "--oneline").count("· ") == 0
    for listed in (["--sort", "path"], ["--facet", "path"]):
        assert "· " not in printed(folder, *listed)
    (queries := tmp_path / "queries").write_text("goose\ncalm")
    lines = printed(folder, "--file", queries).splitlines()
    assert (lines[0], lines.count("calm"), lines[lines.index("calm") - 1]) == ("goose", 1, "")
