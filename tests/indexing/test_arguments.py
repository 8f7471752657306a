"""The command is the first word; wrong options end in one line that says what to do."""

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from semsearch.commands.export_arguments import COMMANDS, content_options, parse_arguments

from semsearch.engine.bundle import MANIFEST, read_manifest
from tests.command_line import run

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
    "--separator": ";",
    "--exclude": "drafts/*",
    "--decimal-comma": None,
    "--id-column": "number",
    "--column": "year=number",
    "--split": None,
    "--passage-tokens": "100",
    "--overlap": "10",
    "--base-url": "https://example.org",
    "--anchors": "mkdocs",
    "--no-keywords": None,
    "--stem": "german",
    "--queries": "table",
    "--title-column": "headline",
    "--language-column": "language",
    "--fusion": "rrf",
    "--fusion-weight": "0.7",
    "--synonyms": str(Path(__file__).parents[1] / "data" / "synonyms.txt"),
    "--boost": '{"told": {"half_life": "30d", "weight": 0.2}}',
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
    "--questions": "a file of one machine",
    "--learn": "it learns the table of --queries again",
    "--remove-corpus": "it allows one command to remove texts",
    "--no-cache": "it converts a model again, with the same result",
}


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ([], "export"),
        (["index", "f", "--out", "b"], "corpus"),
        (["model", "corpus"], "model"),
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


def test_options_of_publish_may_stand_anywhere() -> None:
    options = parse_arguments(["publish", "bundle/", "--region", "eu", "s3://b/p"])
    assert (options.bundle, options.url, options.to, options.region) == (Path("bundle"), "s3://b/p", None, "eu")


def test_publish_to_s3_vectors_writes_the_small_bundle_beside_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for bundle, out in (("bundle", "bundle-s3vectors"), (".", f"{tmp_path}-s3vectors")):
        options = parse_arguments(["publish", "--to", "s3vectors", "bucket/index", bundle])
        assert (options.bundle, options.out) == (Path(bundle), Path(out))


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
        (f"--synonyms {CONTENT['--synonyms']} --title A", "--synonyms=", {"title": "A"}),
        (f"--synonyms {CONTENT['--synonyms']} --title A", "--no-keywords", {"keywords": False, "title": "A"}),
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
        ("corpus --corpus x.csv --calibration x.csv", "--calibration is for a new model, and the bundle's is kept"),
        ("--rerank-weight 0.5", "--rerank-weight: found no --rerank that it is for; add it"),
        ("corpus --corpus s3://bucket", "found 's3://bucket', expected s3://BUCKET/KEY of a file or a folder"),
        ("model --remove", "unrecognized arguments: --remove"),  # nothing is removed by an abbreviation
        ("model --calibration-column t", "--calibration-column: found no --calibration that it is for"),
        ("--split", "--split: found no --corpus that it is for"),
        ("--corpus f --overlap 200", "--overlap is 200, expected less than --passage-tokens 200"),
        ("--stem klingon", "argument --stem: found 'klingon', expected one of none, "),
        ("--fusion-weight 0.5 --fusion rrf", "--fusion-weight is for --fusion convex; rrf has no weight"),
        ("--pooling cls --update b", "--pooling is for a new model, and the bundle's is kept"),
        *(
            (f"--column {wrong}", f"found {wrong!r}, expected NAME=TYPE with a type of string, number, boolean, date,")
            for wrong in ("year", "=number", "year=Number")
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
