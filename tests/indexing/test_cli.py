"""semsearch index, as its user sees it: what is printed, what lies on disk, and the exit code."""

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from export.__main__ import program as export
from semsearch.commands.console import suggested
from semsearch.engine.bundle import (
    INDEX,
    MANIFEST,
    MODEL,
    PASSAGES,
    TOKENIZER,
    TRUNCATED,
    UPDATE,
    check_bundle,
    read_manifest,
)
from semsearch.engine.embedder import Embedder
from semsearch.engine.passages import Passages
from semsearch.engine.semantic.index import Index
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.verification import Check
from tests.command_line import STORY_COLUMNS, Run, contents, error_line, export_texts, names, run, summary
from tests.export_fixtures import TINY_BERT
from tests.project import ROOT

FILES = (
    *("model.ort", "tokenizer.txt", "index.safetensors", "passages.safetensors", "columns.safetensors"),
    *("keywords.safetensors", "truncated.jsonl"),
)


def test_one_command_makes_a_bundle_that_finds_each_text_by_itself(whole: tuple[Path, Run], corpus: Corpus) -> None:
    out, done = whole
    assert (done.code, done.err) == (0, "")
    manifest, passages = check_bundle(out), Passages(out / PASSAGES)
    assert names(out) == sorted(["manifest.json", "source.txt", "update.safetensors", *FILES])
    assert names(out.parent) == ["bundle"]
    assert (manifest.corpus.source, manifest.corpus.rows, manifest.model.name) == ("stories.csv", 147, "tiny-bert")
    passage = passages[3]  # row 3 of the file was empty
    assert (passage.id, passage.text, passage.metadata) == ("s4", corpus.texts[4], {"teller": "baker"})
    embedder, index = Embedder.open(out, manifest.model), Index.open(out / INDEX, None)
    queries = embedder.embed(embedder.tokenize([passages.text(row) for row in range(147)], role="document"))
    assert [index.search(query, 1)[0].row for query in queries] == list(range(147))


def test_an_export_that_failed_late_leaves_its_model_and_rows_to_the_next(
    whole: tuple[Path, Run], stories: Path, calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    out = tmp_path / "bundle"
    options = ("--model", TINY_BERT, "--calibration", calibration, "--out", out, "--verbose")
    command = ("index", stories, *STORY_COLUMNS, *options)
    with monkeypatch.context() as patch:
        patch.setattr("semsearch.indexing.steps.write_index", fail)
        line = error_line(run(*command))
    assert "No space left on device" in line
    assert line.endswith(f" ({out}/.partial keeps what is finished for the next try)")
    done = run(*command)
    assert summary(done, "model from").startswith(f"{out}/.partial/finished/tiny-bert-")
    assert summary(done, "embedded") == "0 texts, 147 rows taken over from a try that was stopped"
    assert contents(out) == contents(whole[0])
    assert names(out) == names(whole[0])


def test_counts_checks_accuracy_and_progress_are_printed(whole: tuple[Path, Run]) -> None:
    from transformers import AutoTokenizer

    out, done = whole
    assert summary(done, "texts") == "147 from stories.csv, 3 empty ones skipped"
    tokenizer = AutoTokenizer.from_pretrained(TINY_BERT)
    passages = Passages(out / PASSAGES)
    texts = [f"passage: {passages.text(row)}" for row in range(len(passages))]
    too_long = sum(len(ids) > 32 for ids in tokenizer(texts, truncation=False, padding=False)["input_ids"])
    assert 0 < too_long < len(texts)
    assert summary(done, "truncated") == f"{too_long} texts longer than 32 tokens, listed in {out / TRUNCATED}"
    assert len((out / TRUNCATED).read_text().splitlines()) == too_long
    accuracy = read_manifest(out).model.accuracy
    assert f"cosine mean {accuracy['cosine_mean']:g}" in done.out
    assert done.out.count(" ok\n") == 2
    assert f"{out}/ is ready. Try it: {suggested('serve', out)}\n" in done.out
    steps = ("read texts", "read calibration", "export graph", "quantize", "compare with float32")
    for step in (*steps, "embed texts", "write the index", "embed a sample again"):
        (line,) = [line for line in done.out.splitlines() if line.startswith(f"{step}:")]
        assert line.startswith(f"{step}: 100%, ")


def test_a_model_and_then_its_texts_are_the_bundle_of_the_one_command(
    whole: tuple[Path, Run], model_alone: tuple[Path, Run], stories: Path, tmp_path: Path
) -> None:
    out, done = model_alone
    assert done.code == 0
    assert names(out) == sorted([MANIFEST, MODEL, TOKENIZER])
    assert read_manifest(out).corpus_or_none is None
    assert f"Next: {suggested('index', 'PATH', '--out', out)}\n" in done.out
    both = Path(shutil.copytree(out, tmp_path / "bundle"))
    export_texts(stories, both, *STORY_COLUMNS)
    assert check_bundle(both).files == check_bundle(whole[0]).files


def test_a_damaged_bundle_fails_with_exit_code_1_and_the_check_is_named(story_bundle: Path) -> None:
    path = story_bundle / PASSAGES
    path.write_bytes(path.read_bytes().replace(b"The baker", b"\xff" * 9, 1))  # no UTF-8 now
    done = run("verify", story_bundle)
    failed = [line.partition("  ")[0] for line in done.out.splitlines() if "FAILED" in line]
    assert failed == [f"checksum of {PASSAGES}"]
    again = suggested("index", "PATH", "--model", "MODEL", "--out", story_bundle)
    assert error_line(done) == f"error: {story_bundle}: a check failed; index the texts again: {again}"


def test_an_export_whose_own_check_fails_ends_with_exit_code_1_and_leaves_the_old_bundle(
    story_bundle: Path, stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = [Check("recall@10 against exact search", "0.5", ">= 0.98", False)]
    monkeypatch.setattr("semsearch.indexing.steps.verify_new", lambda *arguments: iter(failing))
    before = contents(story_bundle)
    done = run("index", stories, *STORY_COLUMNS, "--out", story_bundle)
    assert "FAILED" in done.out
    line = error_line(done)
    assert "the new bundle failed a check; what was there before stays as it was" in line
    assert "keeps what is finished" not in line  # it may be what the check found wrong
    assert "is ready" not in done.out
    assert names(story_bundle) == sorted([*before, UPDATE])
    assert contents(story_bundle) == before


def test_with_its_source_a_bundle_is_compared_with_float32_again(
    whole: tuple[Path, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semsearch.conversion.convert.LEAST_QUANTIZED_COSINE", 0.9999999)
    done = run("verify", whole[0], "--model", TINY_BERT)
    assert done.code == 1
    (line,) = (line for line in done.out.splitlines() if line.startswith("model against float32"))
    assert 0.999 < float(line.split("cosine mean ")[1].split(",")[0]) < 1
    assert line.endswith("FAILED")


def test_a_bundle_is_not_compared_with_another_model(whole: tuple[Path, Run], tiny_copy: Path) -> None:
    weights = load_file(tiny_copy / "model.safetensors")
    weights["pooler.dense.bias"] += 1
    save_file(weights, tiny_copy / "model.safetensors", metadata={"format": "pt"})
    done = run("verify", whole[0], "--model", tiny_copy)
    assert "name the bundle's own model" in error_line(done)


def test_the_export_of_a_deployment_makes_the_bundle_of_index_and_prints_its_checks(
    story_bundle: Path, stories: Path
) -> None:
    before = contents(story_bundle)
    done = run("--corpus", stories, "--out", story_bundle, program=export)  # the bundle has the model and the columns
    assert (done.code, done.err) == (0, "")
    assert "rows in index, texts, manifest  " in done.out
    assert contents(story_bundle) == before


def test_the_export_of_a_deployment_hands_on_each_option_that_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[list[str], dict[str, object]]] = []
    monkeypatch.setattr("export.__main__.run_index", lambda data, **options: calls.append((data, options)))
    options = ("--text-column", "title", "--id-column", "number", "--base-url", "https://example.com/")
    models = ("--queries", "table", "--rerank", "cross-encoder", "--out", "texts")
    assert run("tiny-bert", "--corpus", "stories.csv", *options, *models, program=export).code == 0
    columns = {"text_column": "title", "id_column": "number", "base_url": "https://example.com/"}
    stated = {"model": "tiny-bert", "queries": "table", "rerank": "cross-encoder", "out": "texts", "verbose": True}
    assert calls == [(["stories.csv"], {**columns, **stated})]


@pytest.mark.parametrize("command", [["-m", "export"], ["-m", "semsearch", "index"]])
def test_help_as_a_command_loads_nothing_heavy(command: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", *command, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: ")
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "cyclopts" in loaded
    assert not loaded & {"torch", "transformers", "onnx", "polars", "optimum"}


def test_a_message_is_one_line_and_keeps_its_brackets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = tmp_path / f"[red]news[/red] [1] {'long' * 50}.csv"
    assert str(path) in error_line(run("index", path, "--out", tmp_path / "bundle"))


def test_a_model_alone_is_not_written_over_texts(story_bundle: Path) -> None:
    before = contents(story_bundle)
    line = error_line(run("model", "convert", TINY_BERT, "--out", story_bundle))
    assert line == f"error: {story_bundle}: holds texts, expected a folder without; choose another folder with --out"
    assert contents(story_bundle) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--dimensions", "0"), "--dimensions: found 0, expected 1 or more"),
        (("--rerank-weight", "0.3"), "--rerank-weight: has no effect without rerank; add it"),
        (("--calibration-column", "title"), "--calibration-column: has no effect without calibration; add it"),
    ],
)
def test_a_converted_model_has_the_options_of_an_index_that_are_checked(
    options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    done = run("model", "convert", TINY_BERT, "--out", tmp_path / "bundle", *options)
    assert (done.code, done.err) == (2, f"error: {message}\n")
    assert not (tmp_path / "bundle").exists()


def test_several_columns_are_the_text_and_the_first_one_is_its_title(bundle_copy: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "coats.csv"
    corpus.write_text(
        'name;details, in short;price;size\nCoat;"warm; of wool";1.234,50;4,2\nHat;;9,5;12\n;;7;0\n', encoding="utf-8"
    )
    words = ("index", corpus, "--out", bundle_copy, "--replace", "--separator", ";", "--decimal-comma")
    run(*words, "--text-column", "name,size")
    assert Passages(bundle_copy / PASSAGES).text(0) == "Coat\n4.2"
    run(*words, "--text-column", "details, in short")
    assert Passages(bundle_copy / PASSAGES).text(0) == "warm; of wool"
    corpus.write_text(corpus.read_text().replace("details, in short", "details"))
    run(*words, "--text-column", "name,details")
    passages, index = Passages(bundle_copy / PASSAGES), read_manifest(bundle_copy).corpus
    assert [passages.text(row) for row in range(len(passages))] == ["Coat\nwarm; of wool", "Hat"]
    assert passages.metadata(0) == {"name": "Coat", "price": "1234.50", "size": 4.2}
    assert index.columns == {"name": "string", "price": "number", "size": "number"}
    assert index.options["title_column"] == "name"
    assert "expected each column once" in error_line(run(*words, "--text-column", "name,name"))
