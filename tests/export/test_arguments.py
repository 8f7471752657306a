"""The command is the first word; wrong options end in one line that says what to do."""

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from export.arguments import COMMANDS, content_options, parse_arguments
from function.engine.bundle import MANIFEST, read_manifest
from tests.export.command_line import run

# values of the options that an update takes from its bundle
CONTENT = {
    "--revision": "v1",
    "--pooling": "cls",
    "--dimensions": "64",
    "--query-prompt": "",
    "--document-prompt": "passage: ",
    "--title": "Old stories",
    "--description": "Told by bakers.",
    "--text-column": "title",
    "--id-column": "number",
    "--column": "year=number",
    "--split": None,
    "--passage-tokens": "100",
    "--overlap": "10",
    "--base-url": "https://example.org",
    "--anchors": "mkdocs",
    "--no-keywords": None,
    "--stem": "german",
    "--title-column": "headline",
    "--language-column": "language",
    "--fusion": "rrf",
    "--fusion-weight": "0.7",
}
ONE_RUN = {
    "--out": "a folder of one machine",
    "--corpus": "a file of one machine; an update has other texts",
    "--calibration": "a file of one machine; the bundle has the model",
    "--calibration-column": "a column of that file",
    "--rerank": "the bundle has the reranker",
    "--rerank-revision": "the bundle has the reranker",
    "--rerank-weight": "the reranker's entry in the manifest has it",
    "--strict": "it stops the command, and changes no bundle",
    "--update": "it names the bundle whose options are used",
    "--ray": "it embeds elsewhere, with the same result",
    "--remove-corpus": "it allows one command to remove texts",
}


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ([], "export"),
        (["corpus", "--corpus", "f", "--out", "b"], "corpus"),
        (["--out", "corpus"], "export"),
        (["model", "corpus"], "model"),
        (["verify", "verify"], "verify"),
        (["some-model", "--corpus", "f"], "export"),
    ],
)
def test_the_command_is_the_first_word(words: list[str], command: str) -> None:
    assert parse_arguments(words).command == command


@pytest.mark.parametrize("name", COMMANDS)
def test_a_model_with_the_name_of_a_command_can_be_named(name: str) -> None:
    options = parse_arguments([f"./{name}"])
    assert (options.command, Path(options.model)) == ("export", Path(name))
    assert parse_arguments(["model", name, "--out", "b"]).model == name


def test_without_a_command_the_model_may_stand_anywhere() -> None:
    for words in (["m", "--out", "b"], ["--out", "b", "m"]):
        options = parse_arguments(words)
        assert (options.command, options.model, options.out) == ("export", "m", Path("b"))


@pytest.mark.parametrize(
    "words",
    [
        ["bundle/", "s3://b/p", "--region", "eu"],
        ["--region", "eu", "bundle/", "s3://b/p"],
        ["bundle/", "--region", "eu", "s3://b/p"],
    ],
)
def test_options_of_publish_may_stand_anywhere(words: list[str]) -> None:
    options = parse_arguments(["publish", *words])
    assert (options.bundle, options.url, options.to, options.region) == (Path("bundle"), "s3://b/p", None, "eu")


def test_options_of_rollback_may_stand_before_the_version() -> None:
    options = parse_arguments(["rollback", "s3://b/p", "--profile", "mine", "abcd"])
    assert (options.url, options.profile, options.version) == ("s3://b/p", "mine", "abcd")


@pytest.mark.parametrize(
    ("words", "bundle", "out"),
    [
        ([], "bundle", "bundle-s3vectors"),
        (["texts/news/"], "texts/news", "texts/news-s3vectors"),
        (["news", "--out", "small"], "news", "small"),
        (["."], ".", "{here}-s3vectors"),
    ],
)
def test_publish_to_s3_vectors_writes_the_small_bundle_beside_the_first(
    words: list[str], bundle: str, out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = parse_arguments(["publish", "--to", "s3vectors", "bucket/index", *words])
    assert (options.bundle, options.to) == (Path(bundle), ["s3vectors", "bucket/index"])
    assert options.out == Path(out.format(here=tmp_path))


def test_ray_takes_an_address_or_none() -> None:
    words = ["corpus", "--corpus", "texts.csv", "--ray"]
    assert [parse_arguments([*words, *address]).ray for address in ([], ["host:6379"])] == ["", "host:6379"]


def test_columns_may_be_typed_one_by_one_and_have_an_equals_sign_in_their_name() -> None:
    words = ["corpus", "--corpus", "f", "--column", "year=number", "--column=a=b=none"]
    assert parse_arguments(words).column == {"year": "number", "a=b": "none"}


def test_every_option_of_the_export_is_recorded_or_about_one_run() -> None:
    lines = re.findall(r"^  (--[a-z-]+)(?:, (--no-[a-z-]+))?", run("--help").out, re.MULTILINE)
    offered = {negative if negative in CONTENT else option for option, negative in lines}
    assert offered == CONTENT.keys() | ONE_RUN.keys()


@pytest.fixture
def recorded(bundle_copy: Path) -> Callable[..., Path]:
    """Return a function that records the options of a command line in the manifest of a bundle."""

    def record(*words: str) -> Path:
        options = content_options(parse_arguments(["m", "--corpus", "f", *words]))
        manifest = read_manifest(bundle_copy)
        assert manifest.index is not None
        described = replace(manifest, index=replace(manifest.index, options=options)).to_json()
        (bundle_copy / MANIFEST).write_text(described)
        return bundle_copy

    return record


@pytest.mark.parametrize(("option", "value"), CONTENT.items())
def test_an_update_uses_each_option_of_the_export(
    recorded: Callable[..., Path], option: str, value: str | None
) -> None:
    words = [option] if value is None else [option, value]
    bundle = recorded(*words)
    updated = parse_arguments(["--update", str(bundle), "--corpus", "g"])
    first = parse_arguments(["m", "--corpus", "f", *words])
    (name,) = content_options(first)
    assert getattr(updated, name) == getattr(first, name)
    assert content_options(updated) == content_options(first)


@pytest.mark.parametrize(
    ("before", "now", "kept"),
    [
        ("--title A --split", "--title B --no-split", {"title": "B"}),
        ("--title A --text-column t --stem german", "--title= --text-column=", {"stem": "german"}),
        ("--column a=date --column b=date", "--column b=none", {"column": {"a": "date", "b": "none"}}),
        ("--stem german --fusion-weight 0.5 --title A", "--no-keywords", {"keywords": False, "title": "A"}),
        ("--no-keywords", "--keywords --stem german", {"stem": "german"}),
        ("--fusion-weight 0.5", "--fusion rrf", {"fusion": "rrf"}),
    ],
)
def test_an_option_of_the_update_replaces_that_of_the_export(
    recorded: Callable[..., Path], before: str, now: str, kept: dict[str, object]
) -> None:
    bundle = recorded(*before.split())
    assert content_options(parse_arguments(["--update", str(bundle), "--corpus", "g", *now.split()])) == kept


def test_an_option_that_contradicts_a_recorded_one_is_an_error(recorded: Callable[..., Path]) -> None:
    done = run("--update", recorded("--overlap", "100"), "--corpus", "g", "--passage-tokens", "50")
    assert done.code == 2
    assert "--overlap is 100, expected less than --passage-tokens 50" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--no-such-option", "unrecognized arguments: --no-such-option"),
        ("--out", "argument --out: expected one argument"),
        ("--out b corpus", "corpus is a command: write it first, or ./corpus for a folder of that name"),
        ("--pooling lasttoken", "argument --pooling: invalid choice: 'lasttoken'"),
        ("verify", "the following arguments are required: bundle"),
        ("verify a b", "unrecognized arguments: b"),
        ("corpus", "the following arguments are required: --corpus"),
        ("corpus --corpus x.csv some-model", "unrecognized arguments: some-model"),
        ("corpus --corpus x.csv --calibration x.csv", "--calibration is for a new model, and the bundle's is kept"),
        ("--rerank-weight 0.5", "--rerank-weight: found no --rerank that it is for; add it"),
        ("--rerank-weight 2 --rerank m", "argument --rerank-weight: found '2', expected a number from 0 to 1"),
        ("corpus --corpus x.csv --remove-corpus", "unrecognized arguments: --remove-corpus"),
        ("corpus --corpus s3://bucket", "found 's3://bucket', expected s3://BUCKET/KEY of a file or a folder"),
        ("model --corpus x.csv", "unrecognized arguments: --corpus"),
        ("model --remove", "unrecognized arguments: --remove"),  # nothing is removed by an abbreviation
        ("model --calibration-column t", "--calibration-column: found no --calibration that it is for"),
        ("--split", "--split: found no --corpus that it is for"),
        ("--ray", "--ray: found no --corpus that it is for"),
        *(
            (f"{option}", f"{option.split()[0]} is for documents")
            for option in ("--strict", "--base-url u", "--overlap 1")
        ),
        ("--corpus f --overlap 200", "--overlap is 200, expected less than --passage-tokens 200"),
        ("--corpus f --passage-tokens 0", "--overlap is 0, expected less than --passage-tokens 0"),
        ("--passage-tokens x", "argument --passage-tokens: 'x', expected a whole number"),
        ("--stem klingon", "argument --stem: found 'klingon', expected one of none, "),
        ("--fusion-weight 1.5", "argument --fusion-weight: found '1.5', expected a number from 0 to 1"),
        ("--fusion-weight 0.5 --fusion rrf", "--fusion-weight is for --fusion convex; rrf has no weight"),
        ("--no-keywords --stem none", "--stem is about keywords, and --no-keywords leaves them out"),
        ("--no-keywords --fusion-weight 0", "--fusion-weight is about keywords, and --no-keywords leaves"),
        *(
            (f"{option} cls --update b", f"{option} is for a new model, and the bundle's is kept")
            for option in ("--revision", "--pooling", "--calibration")
        ),
        *(
            (f"--column {wrong}", f"found {wrong!r}, expected NAME=TYPE with a type of string, number, boolean, date,")
            for wrong in ("year", "year=", "=number", "year=int", "year=Number")
        ),
    ],
)
def test_unusable_arguments_end_with_exit_code_2_and_the_reason(words: str, message: str) -> None:
    done = run(*words.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("usage: python -m export")
    assert message in done.err


@pytest.mark.parametrize("step", ["", "model", "corpus", "verify"])
def test_the_help_of_each_step_has_an_example_that_can_be_used(step: str) -> None:
    done = run(*step.split(), "--help")
    assert done.code == 0
    words = f"python -m export {step}".strip()
    assert done.out.startswith(f"usage: {words} ")
    example = next(line for line in done.out.splitlines() if line.startswith(f"  {words} "))
    assert parse_arguments(shlex.split(example)[3:]).command == (step or "export")
