"""python -m export, as its user sees it: what is printed, what lies on disk, and the exit code."""

import csv
import errno
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import huggingface_hub
import pytest
from safetensors.numpy import load_file, save_file

from export.arguments import parse_arguments
from export.cli import main
from export.corpus import Corpus
from export.files.disk_errors import DiskError
from export.index.verify import Check
from export.shell import python_module
from function.engine.bundle import (
    COLUMNS,
    INDEX,
    KEYWORDS,
    MANIFEST,
    MODEL,
    PASSAGES,
    TOKENIZER,
    TRUNCATED,
    BundleError,
    describe_file,
    open_bundle,
    read_manifest,
)
from function.engine.embedder import Embedder
from function.engine.passages import Passages
from function.engine.semantic.index import Index
from tests.export.conftest import TINY_BERT
from tests.export.disks import Usage, mounted, small_disk
from tests.passage_files import write_passages

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run left behind: its exit code and what it printed."""

    code: int | str | None
    out: str
    err: str


def run(*arguments: object) -> Run:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code: int | str | None = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
    return Run(code, out.getvalue(), err.getvalue())


@pytest.fixture(autouse=True, scope="module")
def wide_terminal() -> Iterator[None]:
    """Make the console so wide that tables are printed whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "300")
        yield


def write_csv(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def calibration(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibration") / "calibration.csv"
    return write_csv(path, [{"text": text} for text in corpus.texts[:100]])


@pytest.fixture(scope="module")
def stories(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """150 stories under "title", among them 3 empty ones and 2 that the model cannot read to their end."""
    rows = [
        {"number": f"s{row}", "title": text, "teller": text.split()[1]} for row, text in enumerate(corpus.texts[:150])
    ]
    for row in (3, 70, 149):
        rows[row]["title"] = " "
    for row in (5, 71):
        rows[row]["title"] = " ".join(corpus.texts[row : row + 6])
    return write_csv(tmp_path_factory.mktemp("stories") / "stories.csv", rows)


@pytest.fixture(scope="module")
def whole(stories: Path, calibration: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """The bundle of one command that does everything, and what that printed."""
    out = tmp_path_factory.mktemp("whole") / "bundle"
    columns = ("--text-column", "title", "--id-column", "number")
    return out, run(TINY_BERT, "--corpus", stories, *columns, "--calibration", calibration, "--out", out)


@pytest.fixture(scope="module")
def model_alone(calibration: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    out = tmp_path_factory.mktemp("model") / "bundle"
    return out, run("model", TINY_BERT, "--calibration", calibration, "--out", out)


@pytest.fixture
def bundle_of_stories(whole: tuple[Path, Run], tmp_path: Path) -> Path:
    """A copy of the whole bundle, to be broken or replaced."""
    return Path(shutil.copytree(whole[0], tmp_path / "out" / "bundle"))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a bundle, without the folder of an export that was stopped."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# The whole way


def test_one_command_makes_a_bundle_that_opens(whole: tuple[Path, Run]) -> None:
    out, done = whole
    assert (done.code, done.err) == (0, "")
    manifest = open_bundle(out)
    names = [MANIFEST, MODEL, TOKENIZER, INDEX, PASSAGES, COLUMNS, KEYWORDS, TRUNCATED]
    assert sorted(path.name for path in out.iterdir()) == sorted(names)
    assert manifest.index is not None
    assert (manifest.index.corpus, manifest.index.rows, manifest.model.name) == ("stories.csv", 147, "tiny-bert")
    assert sorted(path.name for path in out.parent.iterdir()) == ["bundle"]


def test_the_same_command_writes_the_same_bytes(
    whole: tuple[Path, Run], stories: Path, calibration: Path, tmp_path: Path
) -> None:
    columns = ("--text-column", "title", "--id-column", "number")
    options = ("--calibration", calibration, "--out", tmp_path / "bundle")
    assert run(TINY_BERT, "--corpus", stories, *columns, *options).code == 0
    assert contents(tmp_path / "bundle") == contents(whole[0])


def test_an_export_that_failed_late_leaves_its_model_and_rows_to_the_next(
    whole: tuple[Path, Run], stories: Path, calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "bundle" / INDEX))

    columns = ("--text-column", "title", "--id-column", "number")
    options = ("--calibration", calibration, "--out", tmp_path / "bundle")
    with monkeypatch.context() as patch:
        patch.setattr("export.index.indexer.write_index", fail)
        line = error_line(run(TINY_BERT, "--corpus", stories, *columns, *options))
    assert "No space left on device" in line
    assert "keeps what is finished for the next export; delete it to start afresh)" in line
    done = run(TINY_BERT, "--corpus", stories, *columns, *options)
    assert "The model is taken over from an export that was stopped." in done.out
    assert "0 texts, 147 rows taken over from an export that was stopped" in done.out
    assert contents(tmp_path / "bundle") == contents(whole[0])
    assert [path for path in (tmp_path / "bundle").iterdir() if path.is_dir()] == []


def test_the_bundle_finds_each_text_by_itself(whole: tuple[Path, Run]) -> None:
    out, _ = whole
    embedder, index = Embedder.open(out, open_bundle(out).model), Index.open(out / INDEX, None)
    passages = Passages(out / PASSAGES)
    queries = embedder.embed(embedder.tokenize([passages.text(row) for row in range(147)], role="document"))
    assert [index.search(query, 1)[0].row for query in queries] == list(range(147))


def test_columns_become_text_id_and_metadata(whole: tuple[Path, Run], corpus: Corpus) -> None:
    passage = Passages(whole[0] / PASSAGES)[3]  # row 3 of the file was empty
    assert (passage.id, passage.text, passage.metadata) == ("s4", corpus.texts[4], {"teller": "baker"})


def test_counts_of_texts_of_empty_and_of_truncated_ones_are_printed(whole: tuple[Path, Run]) -> None:
    out, done = whole
    assert "147 from stories.csv, 3 empty ones skipped" in done.out
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(TINY_BERT)
    passages = Passages(out / PASSAGES)
    texts = [f"passage: {passages.text(row)}" for row in range(len(passages))]
    too_long = sum(len(ids) > 32 for ids in tokenizer(texts, truncation=False, padding=False)["input_ids"])
    assert 0 < too_long < len(texts)
    assert f"{too_long} texts longer than 32 tokens, listed in {out / TRUNCATED}" in done.out
    assert len((out / TRUNCATED).read_text().splitlines()) == too_long
    assert "tiny-bert, 32 dimensions, mean pooling, 32 tokens" in done.out


def test_sizes_accuracy_and_checks_are_printed(whole: tuple[Path, Run]) -> None:
    out, done = whole
    accuracy = read_manifest(out).model.accuracy
    assert f"cosine mean {accuracy['cosine_mean']:g}" in done.out
    assert f"recall at 10 {accuracy['recall_at_10']:g}" in done.out
    for name in (MODEL, TOKENIZER, INDEX, PASSAGES, COLUMNS, KEYWORDS, TRUNCATED):
        assert f"checksum of {name}" in done.out
        assert f"{name} {(out / name).stat().st_size / 1e6:.1f} MB" in done.out
    assert done.out.count(" ok\n") == 13
    assert "FAILED" not in done.out
    assert f"{out}/ is ready. Try it: {python_module('function', '--bundle', out)}\n" in done.out


def test_each_step_is_shown_with_its_progress(whole: tuple[Path, Run]) -> None:
    steps = ("read texts", "read calibration", "export graph", "quantize", "compare with float32")
    for step in (*steps, "embed texts", "write the index", "check files", "embed a sample again", "measure recall"):
        (line,) = [line for line in whole[1].out.splitlines() if line.startswith(f"{step}:")]
        assert line.startswith(f"{step}: 100%, ")


def test_without_a_corpus_the_texts_are_pythons_own_documentation(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.corpus.python_documentation.python_documentation", lambda: corpus)
    done = run(TINY_BERT, "--out", tmp_path / "bundle")
    assert done.code == 0
    assert "200 from Python's own documentation, 0 empty ones skipped" in done.out
    index = open_bundle(tmp_path / "bundle").index
    assert index is not None
    assert index.corpus == "Python's own documentation"


def test_without_calibration_the_documentation_calibrates_whatever_the_corpus(
    stories: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = Corpus(corpus.texts[:64], corpus.ids[:64], corpus.metadata[:64], 0)
    monkeypatch.setattr("export.corpus.python_documentation.python_documentation", lambda: texts)
    assert run(TINY_BERT, "--corpus", stories, "--text-column", "title", "--out", tmp_path / "bundle").code == 0
    assert open_bundle(tmp_path / "bundle").model.accuracy["texts"] == 32


def test_the_bundle_is_called_bundle_unless_told_otherwise(
    calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("model", TINY_BERT, "--calibration", calibration).code == 0
    assert read_manifest(tmp_path / "bundle").index is None


# Step by step


def test_the_model_alone_has_no_texts_and_says_what_comes_next(model_alone: tuple[Path, Run]) -> None:
    out, done = model_alone
    assert done.code == 0
    assert sorted(path.name for path in out.iterdir()) == sorted([MANIFEST, MODEL, TOKENIZER])
    assert read_manifest(out).index is None
    assert f"Next: {python_module('export', 'corpus', '--corpus', 'FILE', '--out', out)}\n" in done.out


def test_a_corpus_given_to_a_model_makes_it_whole(model_alone: tuple[Path, Run], stories: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(model_alone[0], tmp_path / "bundle"))
    done = run("corpus", "--corpus", stories, "--text-column", "title", "--out", out)
    assert done.code == 0
    assert "147 from stories.csv, 3 empty ones skipped" in done.out
    assert len(Index.open(out / INDEX, None)) == open_bundle(out).index.rows == 147  # type: ignore[union-attr]


def test_a_new_corpus_leaves_the_model_byte_for_byte(bundle_of_stories: Path, corpus: Corpus, tmp_path: Path) -> None:
    before = contents(bundle_of_stories)
    other = write_csv(tmp_path / "other.csv", [{"text": text} for text in corpus.texts[100:]])
    assert run("corpus", "--corpus", other, "--out", bundle_of_stories).code == 0
    after = contents(bundle_of_stories)
    assert [name for name in after if after[name] == before[name]] == [
        name for name in after if name in (MODEL, TOKENIZER)
    ]
    assert Passages(bundle_of_stories / PASSAGES).text(0) == corpus.texts[100]
    assert open_bundle(bundle_of_stories).model == read_manifest(bundle_of_stories).model


def test_the_steps_make_the_same_rows_as_the_one_command(
    whole: tuple[Path, Run], model_alone: tuple[Path, Run], stories: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(model_alone[0], tmp_path / "bundle"))
    run("corpus", "--corpus", stories, "--text-column", "title", "--id-column", "number", "--out", out)
    assert describe_file(out / PASSAGES) == describe_file(whole[0] / PASSAGES)
    assert describe_file(out / INDEX) == describe_file(whole[0] / INDEX)


def test_a_good_bundle_is_verified_with_exit_code_0(whole: tuple[Path, Run]) -> None:
    done = run("verify", whole[0])
    assert (done.code, done.err) == (0, "")
    assert done.out.count(" ok\n") == 12
    assert "least cosine of 147 rows to their texts" in done.out


def test_a_damaged_bundle_fails_with_exit_code_1_and_the_check_is_named(bundle_of_stories: Path) -> None:
    content = bytearray((bundle_of_stories / PASSAGES).read_bytes())
    content[content.index(b"s0s1s2")] ^= 1
    (bundle_of_stories / PASSAGES).write_bytes(content)
    done = run("verify", bundle_of_stories)
    assert done.code == 1
    (failed,) = [line for line in done.out.splitlines() if "FAILED" in line]
    assert failed.startswith(f"checksum of {PASSAGES}")
    again = python_module("export", "MODEL", "--corpus", "FILE", "--out", bundle_of_stories)
    assert f"{bundle_of_stories}: a check failed; export the model and the texts again: {again}\n" in done.out


def cut_the_passages(bundle: Path) -> None:
    write_passages(bundle / PASSAGES, ["a b"] * 3, ["1", "2", "3"], ["{}"] * 3)
    manifest = json.loads((bundle / MANIFEST).read_text())
    manifest["files"][PASSAGES] = {"bytes": (bundle / PASSAGES).stat().st_size, "sha256": "0" * 64}
    (bundle / MANIFEST).write_text(json.dumps(manifest))


def spoil(name: str) -> Callable[[Path], None]:
    def spoil_the_beginning(bundle: Path) -> None:
        content = bytearray((bundle / name).read_bytes())
        content[:8] = b"\xff" * 8
        (bundle / name).write_bytes(content)

    return spoil_the_beginning


def spoil_a_letter(bundle: Path) -> None:
    content = bytearray((bundle / PASSAGES).read_bytes())
    content[content.index(b"The baker")] ^= 0x80  # no UTF-8 any more
    (bundle / PASSAGES).write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (spoil(MODEL), f"checksum of {MODEL}"),
        (spoil(TOKENIZER), f"checksum of {TOKENIZER}"),
        (spoil(INDEX), f"checksum of {INDEX}"),
        (spoil_a_letter, f"checksum of {PASSAGES}"),
        (cut_the_passages, "rows in index, texts, manifest"),
    ],
)
def test_damage_that_stops_the_checks_is_reported_after_the_checks_before_it(
    bundle_of_stories: Path, damage: Callable[[Path], None], named: str
) -> None:
    damage(bundle_of_stories)
    done = run("verify", bundle_of_stories)
    assert done.code == 1
    assert any(line.startswith(named) and "FAILED" in line for line in done.out.splitlines())


def test_an_export_whose_own_check_fails_ends_with_exit_code_1_and_leaves_the_old_bundle(
    bundle_of_stories: Path, stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = [Check("recall@10 against exact search", "0.5", ">= 0.98", False)]
    monkeypatch.setattr("export.index.verify.verify_export", lambda *arguments: iter(failing))
    before = contents(bundle_of_stories)
    done = run("corpus", "--corpus", stories, "--text-column", "title", "--out", bundle_of_stories)
    assert done.code == 1
    assert "FAILED" in done.out
    assert "the new bundle failed a check above; what was there before stays as it was" in error_line(done)
    assert "is ready" not in done.out
    assert "keeps what is finished" not in done.err  # it may be what the check found wrong
    assert len(list(bundle_of_stories.iterdir())) == len(before)
    assert contents(bundle_of_stories) == before
    assert [path.name for path in bundle_of_stories.parent.iterdir()] == ["bundle"]


def test_with_its_source_a_bundle_is_held_against_float32_again(whole: tuple[Path, Run]) -> None:
    done = run("verify", whole[0], "--model", TINY_BERT)
    assert done.code == 0
    (line,) = (line for line in done.out.splitlines() if line.startswith("model against float32"))
    found = float(line.split("cosine mean ")[1].split(",")[0])
    assert 0.999 < found < 1
    assert line.endswith("ok")


def test_a_model_that_strays_from_its_source_fails(
    bundle_of_stories: Path, calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.model.export_model.LEAST_QUANTIZED_COSINE", 0.9999999)
    done = run("verify", bundle_of_stories, "--model", TINY_BERT)
    assert done.code == 1
    assert any(line.startswith("model against float32") and "FAILED" in line for line in done.out.splitlines())


def test_a_bundle_is_not_held_against_another_model(whole: tuple[Path, Run], tmp_path: Path) -> None:
    other = shutil.copytree(TINY_BERT, tmp_path / "other")
    weights = load_file(other / "model.safetensors")
    weights["pooler.dense.bias"] += 1
    save_file(weights, other / "model.safetensors", metadata={"format": "pt"})
    done = run("verify", whole[0], "--model", other)
    assert "name the model that it was exported from" in error_line(done)


def test_a_model_without_texts_can_be_verified(model_alone: tuple[Path, Run]) -> None:
    done = run("verify", model_alone[0])
    assert done.code == 0
    assert done.out.count("checksum of") == 2


# Texts of one's own


@pytest.mark.parametrize("step", [["model", "{tiny}"], ["{tiny}"], ["model", "{here}/no/model"], []])
def test_texts_are_not_removed_unless_that_is_asked_for(
    step: list[str], bundle_of_stories: Path, tmp_path: Path
) -> None:
    before = contents(bundle_of_stories)
    places = {"tiny": TINY_BERT, "here": tmp_path}
    line = error_line(run(*[word.format(**places) for word in step], "--out", bundle_of_stories))
    assert f"{bundle_of_stories}: holds an index of 147 texts from stories.csv; this command would remove" in line
    assert line.endswith("choose another folder with --out, or add --remove-corpus")
    assert ("--corpus FILE" in line) == (step[:1] != ["model"])
    assert contents(bundle_of_stories) == before
    assert [path.name for path in bundle_of_stories.parent.iterdir()] == ["bundle"]


@pytest.mark.parametrize("manifest", ["", '{"format_version": 1}', None])
def test_texts_without_a_readable_manifest_are_not_removed(manifest: str | None, bundle_of_stories: Path) -> None:
    if manifest is None:
        (bundle_of_stories / MANIFEST).unlink()
    else:
        (bundle_of_stories / MANIFEST).write_text(manifest)
    before = contents(bundle_of_stories)
    line = error_line(run(TINY_BERT, "--out", bundle_of_stories))
    assert f"holds {INDEX} and {PASSAGES}, and no manifest that says which texts they hold" in line
    assert contents(bundle_of_stories) == before


def test_a_new_model_removes_the_texts_when_that_is_asked_for(bundle_of_stories: Path, calibration: Path) -> None:
    options = ("--calibration", calibration, "--out", bundle_of_stories, "--remove-corpus")
    assert run("model", TINY_BERT, *options).code == 0
    assert read_manifest(bundle_of_stories).index is None
    assert sorted(contents(bundle_of_stories)) == sorted([MANIFEST, MODEL, TOKENIZER])


def test_a_corpus_file_replaces_other_texts_without_a_question(bundle_of_stories: Path, calibration: Path) -> None:
    options = ("--calibration", calibration, "--corpus", calibration, "--out", bundle_of_stories)
    assert run(TINY_BERT, *options).code == 0
    assert open_bundle(bundle_of_stories).index.corpus == calibration.name  # type: ignore[union-attr]


def test_pythons_own_documentation_is_replaced_by_itself_but_not_removed(
    bundle_of_stories: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.corpus.python_documentation.python_documentation", lambda: corpus)
    assert run(TINY_BERT, "--out", bundle_of_stories, "--remove-corpus").code == 0
    assert run(TINY_BERT, "--out", bundle_of_stories).code == 0
    line = error_line(run("model", TINY_BERT, "--out", bundle_of_stories))
    assert "holds an index of 200 texts from Python's own documentation" in line


# Options


def test_another_pooling_and_the_commit_of_the_hub_are_recorded(
    calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "snapshots" / "c9745ed1"
    shutil.copytree(TINY_BERT, snapshot)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, **options: str(snapshot))
    options = ("--pooling", "cls", "--revision", "v2", "--calibration", calibration)
    done = run("model", "owner/tiny-bert", *options, "--out", tmp_path / "bundle")
    assert done.code == 0
    assert "cls pooling" in done.out
    model = read_manifest(tmp_path / "bundle").model
    assert (model.name, model.pooling, model.revision) == ("owner/tiny-bert", "cls", "c9745ed1")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--no-such-option"],
        ["model", "--corpus", "x.csv"],
        ["corpus", "--calibration", "x.csv"],
        ["corpus", "--corpus", "x.csv", "some-model"],
        ["verify"],
        ["verify", "a", "b"],
        ["--pooling", "lasttoken"],
        ["--out"],
        ["--text-column", "title"],
        ["corpus", "--id-column", "number"],
        ["model", "--calibration-column", "title"],
    ],
)
def test_unusable_arguments_end_with_exit_code_2(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert "usage: python -m export" in done.err


@pytest.mark.parametrize(
    ("step", "mentions"),
    [
        (
            (),
            ["MODEL", "--corpus", "--text-column", "--id-column", "--out", "--pooling", "--revision", "--calibration"],
        ),
        (("model",), ["MODEL", "--out", "--pooling", "--revision", "--calibration", "--remove-corpus"]),
        (("corpus",), ["--corpus", "--text-column", "--id-column", "--out"]),
        (("verify",), ["bundle", "--model"]),
    ],
)
def test_each_steps_help_has_its_options_and_an_example(step: tuple[str, ...], mentions: list[str]) -> None:
    done = run(*step, "--help")
    assert done.code == 0
    words = " ".join(["python -m export", *step])
    assert done.out.startswith(f"usage: {words}")
    assert [option for option in mentions if option not in done.out] == []
    example = next(line for line in done.out.splitlines() if line.startswith(f"  {words} "))
    parse_arguments(shlex.split(example)[3:])


def test_help_as_a_command_mentions_every_step_and_loads_nothing_heavy() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "export", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for step in ("python -m export --corpus", "python -m export model", "python -m export corpus --corpus"):
        assert step in done.stdout
    assert "python -m export verify" in done.stdout
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "argparse" in loaded
    assert not loaded & {"torch", "transformers", "onnx", "onnxruntime", "polars", "optimum"}


# Errors


def error_line(done: Run) -> str:
    """Return the one line that was printed as an error."""
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tiny}", "--corpus", "{here}/none.csv"], "none.csv: found no file, expected a file ending in .csv"),
        (
            ["{tiny}", "--corpus", "{stories}"],
            "found the columns 'number', 'title', 'teller', expected one named 'text'",
        ),
        (["{tiny}", "--corpus", "{stories}", "--text-column", "titel"], "did you mean --text-column 'title'?"),
        (["{tiny}", "--corpus", "{few}", "--calibration", "{few}"], "3 calibration texts; expected at least 64"),
        (["{tiny}", "--corpus", "{few}", "--calibration", "{here}/none.csv"], "none.csv: found no file"),
        (["{here}/no/model", "--corpus", "{few}", "--calibration", "{few}"], "no/model: is not a folder"),
        (["{here}", "--corpus", "{few}", "--calibration", "{few}"], "config.json: is missing"),
        (["model", "{here}/no/model", "--calibration", "{few}", "--remove-corpus"], "no/model: is not a folder"),
        (["corpus", "--corpus", "{here}/none.csv"], "none.csv: found no file"),
        (["corpus", "--corpus", "{stories}"], "expected one named 'text'"),
    ],
)
def test_an_error_is_one_line_and_leaves_the_old_bundle_byte_for_byte(
    arguments: list[str], message: str, bundle_of_stories: Path, stories: Path, tmp_path: Path
) -> None:
    few = write_csv(tmp_path / "few.csv", [{"text": text} for text in ("one", "two", "three")])
    before = contents(bundle_of_stories)
    places = {"tiny": TINY_BERT, "here": tmp_path, "stories": stories, "few": few}
    done = run(*[argument.format(**places) for argument in arguments], "--out", bundle_of_stories)
    assert message in error_line(done)
    assert contents(bundle_of_stories) == before
    assert [path.name for path in bundle_of_stories.parent.iterdir()] == ["bundle"]


def test_an_error_late_in_the_export_leaves_the_old_bundle_byte_for_byte(
    bundle_of_stories: Path, stories: Path, calibration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(bundle_of_stories)

    def fail(*arguments: object) -> None:
        raise BundleError("the disk: is full")

    monkeypatch.setattr("export.index.indexer.write_index", fail)
    options = ("--corpus", stories, "--text-column", "title", "--calibration", calibration)
    line = error_line(run(TINY_BERT, *options, "--out", bundle_of_stories))
    kept = f"{bundle_of_stories}/.partial keeps what is finished for the next export; delete it to start afresh"
    assert line == f"error: the disk: is full ({kept})"
    assert contents(bundle_of_stories) == before
    assert [path.name for path in bundle_of_stories.parent.iterdir()] == ["bundle"]


def test_an_interruption_leaves_the_old_bundle_byte_for_byte(
    bundle_of_stories: Path, stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(bundle_of_stories)

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("export.index.embed.embed_corpus", interrupt)
    done = run("corpus", "--corpus", stories, "--text-column", "title", "--out", bundle_of_stories)
    assert (done.code, done.err) == (130, "interrupted: nothing was changed\n")
    assert contents(bundle_of_stories) == before
    assert [path.name for path in bundle_of_stories.parent.iterdir()] == ["bundle"]


def test_an_interruption_after_the_replacement_says_that_the_new_bundle_is_there(
    bundle_of_stories: Path, stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_manifest(bundle_of_stories)

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("export.cli.print_bundle_summary", interrupt)
    done = run("corpus", "--corpus", stories, "--text-column", "title", "--out", bundle_of_stories)
    expected = f"interrupted: {bundle_of_stories} was replaced before that, and is complete\n"
    assert (done.code, done.err) == (130, expected)
    assert open_bundle(bundle_of_stories) != before


def test_an_error_after_the_replacement_says_that_the_new_bundle_is_there(
    bundle_of_stories: Path, stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_manifest(bundle_of_stories)

    def fail(*arguments: object) -> None:
        raise DiskError("standard output: No space left on device")

    monkeypatch.setattr("export.cli.print_bundle_summary", fail)
    done = run("corpus", "--corpus", stories, "--text-column", "title", "--out", bundle_of_stories)
    expected = "error: standard output: No space left on device "
    expected += f"({bundle_of_stories} was replaced before that, and is complete)\n"
    assert (done.code, done.err) == (1, expected)
    assert open_bundle(bundle_of_stories) != before


def test_an_interrupted_check_says_that_nothing_was_changed(
    bundle_of_stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("export.cli.print_checks", interrupt)
    done = run("verify", bundle_of_stories)
    assert (done.code, done.err) == (130, "interrupted: nothing was changed\n")


def test_a_terminated_process_removes_its_unfinished_files(bundle_of_stories: Path, tmp_path: Path) -> None:
    before = contents(bundle_of_stories)
    many = write_csv(tmp_path / "many.csv", [{"text": f"story {row} of a goose"} for row in range(100_000)])
    command = [sys.executable, "-m", "export", "corpus", "--corpus", str(many), "--out", str(bundle_of_stories)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        while not (bundle_of_stories / ".partial" / PASSAGES).exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        assert process.wait() == 128 + signal.SIGTERM
    assert contents(bundle_of_stories) == before
    assert [path.name for path in bundle_of_stories.parent.iterdir()] == ["bundle"]


def test_names_with_brackets_are_printed_as_they_are(bundle_of_stories: Path, stories: Path, tmp_path: Path) -> None:
    corpus = shutil.copy(stories, tmp_path / "x[red].csv")
    out = bundle_of_stories.rename(tmp_path / "[b]")
    done = run("corpus", "--corpus", corpus, "--text-column", "title", "--out", out)
    assert "from x[red].csv" in done.out
    assert f"{out}/ is ready. Try it: {python_module('function', '--bundle', out)}\n" in done.out


def test_calibration_texts_have_a_column_of_their_own(stories: Path, tmp_path: Path) -> None:
    options = ("--calibration", stories, "--out", tmp_path / "bundle")
    assert "one named 'text'; name the one to embed with --calibration-column" in error_line(
        run("model", TINY_BERT, *options)
    )
    assert run("model", TINY_BERT, *options, "--calibration-column", "title").code == 0


def test_a_message_about_calibration_texts_quotes_their_path_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "--text-column.csv"
    done = run("model", TINY_BERT, "--calibration", path, "--out", tmp_path / "bundle")
    assert str(path) in error_line(done)


def test_a_corpus_for_a_missing_bundle_is_an_error(stories: Path, tmp_path: Path) -> None:
    done = run("corpus", "--corpus", stories, "--text-column", "title", "--out", tmp_path / "new")
    assert f"{tmp_path / 'new'}: is not a folder; make a bundle with `python -m export --out" in error_line(done)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", [["corpus"], ["model", str(TINY_BERT)], [str(TINY_BERT)]])
def test_a_folder_of_other_files_is_not_written_into(
    step: list[str], stories: Path, calibration: Path, tmp_path: Path
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "holiday.jpg").write_bytes(b"precious")
    with_model = [] if step == ["corpus"] else ["--calibration", calibration]
    with_corpus = [] if step[0] == "model" else ["--corpus", stories, "--text-column", "title"]
    done = run(*step, *with_model, *with_corpus, "--out", tmp_path / "photos")
    assert "photos: holds holiday.jpg, so it is not a bundle" in error_line(done)
    assert contents(tmp_path / "photos") == {"holiday.jpg": b"precious"}


def test_the_working_folder_can_hold_the_bundle_and_the_command_printed_next_works_there(
    calibration: Path, stories: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bundle").mkdir()
    monkeypatch.chdir(tmp_path / "bundle")
    done = run("model", TINY_BERT, "--calibration", calibration, "--out", ".")
    assert done.code == 0
    command = shlex.split(done.out.split("Next: ")[1].replace("FILE", str(stories)))
    assert run(*command[3:], "--text-column", "title").code == 0
    assert open_bundle(Path()).index is not None


def test_new_texts_repair_a_bundle_whose_export_was_killed_while_files_moved(
    bundle_of_stories: Path, stories: Path
) -> None:
    partial = bundle_of_stories / ".partial"
    partial.mkdir()
    (partial / "complete").touch()
    for name in (MANIFEST, MODEL, PASSAGES):
        (bundle_of_stories / name).rename(partial / name)
    assert run("corpus", "--corpus", stories, "--text-column", "title", "--out", bundle_of_stories).code == 0
    assert len(contents(bundle_of_stories)) == 8
    open_bundle(bundle_of_stories)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize(
    ("step", "function"),
    [
        (["verify"], "export.index.verify.verify"),
        (["corpus"], "export.index.indexer.write_index"),
        (["corpus"], "export.cli.read_corpus"),
    ],
)
def test_an_error_of_the_disk_is_one_line_that_names_the_place(
    step: list[str], function: str, code: int, bundle_of_stories: Path, stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(code, os.strerror(code), str(bundle_of_stories / INDEX))

    before = contents(bundle_of_stories)
    monkeypatch.setattr(function, fail)
    corpus = ["--corpus", stories, "--text-column", "title", "--out", bundle_of_stories]
    line = error_line(run(*step, *(corpus if step == ["corpus"] else [bundle_of_stories])))
    assert f"{bundle_of_stories}" in line
    assert os.strerror(code) in line
    assert "; expected " in line
    assert contents(bundle_of_stories) == before


def test_a_disk_without_room_is_an_error_before_any_work_and_leaves_nothing(
    stories: Path, calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.model.export_model.export_model", None)  # an error of another kind if it were called
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 10**12 - 2_000_000, 2_000_000))
    options = ("--calibration", calibration, "--out", tmp_path / "new" / "bundle")
    line = error_line(run("model", TINY_BERT, *options))
    assert line.startswith(f"error: {tmp_path / 'new' / 'bundle'}: 2.0 MB are free, expected ")
    assert list(tmp_path.iterdir()) == []


def test_new_texts_without_room_are_an_error_before_they_are_embedded(
    bundle_of_stories: Path, stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(bundle_of_stories)
    monkeypatch.setattr("export.index.embed.embed_corpus", None)  # an error of another kind if it were called
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 10**12 - 2_000, 2_000))
    line = error_line(run("corpus", "--corpus", stories, "--text-column", "title", "--out", bundle_of_stories))
    assert line.startswith(f"error: {bundle_of_stories}: 2.0 kB are free, expected ")
    assert contents(bundle_of_stories) == before


def test_room_is_asked_for_all_that_is_not_yet_written(
    bundle_of_stories: Path, stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr("export.cli.check_space", lambda out, needed: asked.append(needed))
    assert run("corpus", "--corpus", stories, "--text-column", "title", "--out", bundle_of_stories).code == 0
    index, others = (bundle_of_stories / INDEX).stat().st_size, (COLUMNS, KEYWORDS)
    headers = 1_000
    shards = 147 * (2 * 32 + 21)
    written = index + sum((bundle_of_stories / name).stat().st_size for name in others)
    assert written + shards - headers < asked[0] < 3 * (written + shards)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8, 0.9])
def test_a_disk_that_fills_up_is_one_line_and_leaves_the_old_bundle(
    whole: tuple[Path, Run], stories: Path, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room for more and more of the new files, which come in the order model, tokenizer, index, passages."""
    monkeypatch.setattr("export.cli.check_space", lambda *arguments: None)  # room that vanished since
    kilobytes = sum(-(-path.stat().st_size // 4096) * 4 for path in whole[0].iterdir())
    with mounted(tmp_path / "disk", *small_disk(int(kilobytes * (1 + share)))) as disk:
        out = Path(shutil.copytree(whole[0], disk / "bundle"))
        before = contents(out)
        corpus = ("--corpus", stories, "--text-column", "title")
        line = error_line(run("corpus", *corpus, "--out", out))
        assert line.startswith(f"error: {out}: No space left on device, ")
        assert "choose another folder with --out" in line
        assert contents(out) == before


@pytest.mark.parametrize("kilobytes", [4, 40, 150])
def test_a_disk_that_fills_up_while_the_model_is_written_is_one_line_and_leaves_nothing(
    calibration: Path, kilobytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.cli.check_space", lambda *arguments: None)
    with mounted(tmp_path / "disk", *small_disk(kilobytes)) as disk:
        line = error_line(run("model", TINY_BERT, "--calibration", calibration, "--out", disk / "bundle"))
        assert line.startswith(f"error: {disk / 'bundle'}: No space left on device, ")
        assert list(disk.iterdir()) == []


def test_verifying_a_folder_without_a_bundle_is_an_error(tmp_path: Path) -> None:
    assert "holds no manifest.json; make a bundle with" in error_line(run("verify", tmp_path))


def test_brackets_in_a_message_are_printed_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "[red]news[/red] [1].csv"
    done = run("--corpus", path, "--out", tmp_path / "bundle")
    assert str(path) in error_line(done)


def test_an_export_into_a_pipe_prints_plain_lines(bundle_of_stories: Path, stories: Path) -> None:
    arguments = ["corpus", "--corpus", str(stories), "--text-column", "title", "--out", str(bundle_of_stories)]
    command = [sys.executable, "-m", "export", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "\nembed texts: 100%, " in done.stdout
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout


def test_the_command_that_is_printed_can_be_pasted_whatever_the_folder_is_called(
    model_alone: tuple[Path, Run], calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "it's $HOME (old)"
    next_command = run("model", TINY_BERT, "--calibration", calibration, "--out", out).out.split("Next: ")[1]
    pasted = next_command.strip().replace("FILE", str(calibration))
    subprocess.run(["sh", "-c", pasted], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    assert open_bundle(out).index is not None


def test_a_model_in_a_folder_with_the_name_of_a_command_is_exported(
    calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TINY_BERT, tmp_path / "corpus")
    files = ("--calibration", calibration, "--corpus", calibration)
    assert run(*files, "./corpus", "--out", tmp_path / "bundle").code == 0
    assert open_bundle(tmp_path / "bundle").model.name == "corpus"


def test_a_note_says_that_the_folder_model_is_not_the_default_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TINY_BERT, tmp_path / "model")
    done = run("model", "--calibration", tmp_path / "none.csv", "--out", tmp_path / "bundle")
    note, error = done.err.splitlines()
    assert note == "note: model is a command here, and the default model is exported; for the folder, write ./model"
    assert "none.csv" in error


def test_a_long_message_is_not_broken_into_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = tmp_path / f"{'long' * 50}.csv"
    assert str(path) in error_line(run("--corpus", path, "--out", tmp_path / "bundle"))


def test_the_command_that_an_error_names_repairs_the_bundle(
    model_alone: tuple[Path, Run], calibration: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(model_alone[0], tmp_path / "bundle"))
    with pytest.raises(BundleError) as caught:
        open_bundle(out)
    command = shlex.split(str(caught.value).split("`")[1].replace("FILE", str(calibration)))
    assert command[:3] == ["python", "-m", "export"]
    assert run(*command[3:]).code == 0
    open_bundle(out)
