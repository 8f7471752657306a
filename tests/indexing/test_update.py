"""--update takes over the rows of texts that a bundle has, and embeds only the others."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import huggingface_hub
import pytest

from semsearch import index
from semsearch.engine.bundle import (
    COLUMNS,
    INDEX,
    KEYWORDS,
    MODEL,
    PASSAGES,
    RERANK,
    TRUNCATED,
    BundleError,
    check_bundle,
    read_manifest,
)
from semsearch.indexing.bundles import write_manifest
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.embedding import known_rows
from semsearch.indexing.models.calibration import ACCURACY_TEXTS
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.older import OlderIndex
from tests.bundle_files import damage
from tests.command_line import contents, error_line, export_texts, run, summary, write_csv
from tests.export_fixtures import TINY_BERT
from tests.rerankers import add_reranker


@pytest.fixture(scope="module")
def changed(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stories in another order, ten of them gone, one of them twice, and five new ones."""
    texts = [*corpus.texts[:9:-1], corpus.texts[50], *(f"Her sister missed the {thing}." for thing in "ABCDE")]
    rows = [{"text": text, "number": str(row)} for row, text in enumerate(texts)]
    return write_csv(tmp_path_factory.mktemp("changed") / "changed.csv", rows)


@pytest.fixture(scope="module")
def full(bundle: Path, changed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The bundle in which all the changed stories were embedded."""
    out = Path(shutil.copytree(bundle, tmp_path_factory.mktemp("full") / "bundle"))
    export_texts(changed, out)
    return contents(out)


def test_files_are_counted_from_two_on_and_texts_left_out_from_one_on(
    stories: Path, story_bundle: Path, tmp_path: Path
) -> None:
    header, *lines = stories.read_text().splitlines(keepends=True)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.csv").write_text("".join([header, *lines[:9]]))
    one = export_texts(tmp_path / "texts", story_bundle)
    assert "files" not in [line.split()[0] for line in one.out.splitlines() if line]
    assert summary(one, "left out") == "139 texts of the older index, which are not among the new ones"
    (tmp_path / "texts" / "b.csv").write_text("".join([header, *lines[9:18]]))
    two = export_texts(tmp_path / "texts", story_bundle)
    assert summary(two, "files") == "2 read"
    assert "left out" not in two.out


def test_an_update_has_the_bytes_of_a_full_export(bundle_copy: Path, changed: Path, full: dict[str, bytes]) -> None:
    done = export_texts(changed, bundle_copy, "--update", bundle_copy)
    assert summary(done, "embedded") == "5 texts, 191 rows taken over from the older index"
    assert contents(bundle_copy) == full


def test_an_update_in_another_folder_has_options_and_bytes(bundle_copy: Path, changed: Path, tmp_path: Path) -> None:
    options = ("--title", "Stories", "--stem", "german", "--id-column", "number")
    export_texts(changed, bundle_copy, *options)
    export_texts(changed, tmp_path / "new", "--update", bundle_copy)
    assert contents(tmp_path / "new") == contents(bundle_copy)
    export_texts(changed, tmp_path / "new", "--update", bundle_copy, "--title", "", "--stem", "none")
    index = read_manifest(tmp_path / "new").corpus
    assert index.keywords is not None
    assert (index.title, index.keywords.stemming) == ("", None)
    assert index.options == {"id_column": "number", "stem": "none"}


@pytest.mark.parametrize("change", [{"prompts": {"document": "passage: "}}, {"max_tokens": 12}])
def test_rows_of_another_prompt_or_length_are_refused(bundle: Path, change: dict[str, object]) -> None:
    manifest = read_manifest(bundle)
    new = replace(manifest, model=replace(manifest.model, **change))  # type: ignore[arg-type]
    with pytest.raises(BundleError, match=r"was embedded by the model tests/mean-of-words .* expected the same model"):
        known_rows(OlderIndex.open(bundle, ""), bundle.parent / "new", new)


@pytest.mark.parametrize("name", [INDEX, PASSAGES, MODEL])
def test_rows_of_a_damaged_bundle_are_refused(bundle_copy: Path, changed: Path, name: str) -> None:
    damage(bundle_copy / name)
    line = error_line(run("index", changed, "--verbose", "--update", bundle_copy, "--out", bundle_copy.parent / "new"))
    assert f"{bundle_copy / name}: is damaged: SHA-256 " in line


@pytest.mark.parametrize("name", [INDEX, PASSAGES])
def test_damaged_rows_of_the_index_itself_are_embedded_again_with_a_warning(
    bundle_copy: Path, changed: Path, full: dict[str, bytes], name: str
) -> None:
    (bundle_copy / name).write_bytes(bytes(100))
    done = run("index", changed, "--out", bundle_copy, "--replace")
    assert done.code == 0
    (line,) = done.err.splitlines()
    assert line.startswith("warning: the older index is damaged, so all texts were embedded again: ")
    assert contents(bundle_copy) == full


def test_a_damaged_model_is_replaced_by_a_named_one_with_its_options_and_the_default_calibration(
    bundle_copy: Path, changed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(bundle_copy / MODEL)
    line = error_line(run("index", changed, "--out", bundle_copy, "--replace"))
    assert line.endswith("copy it again, or run `semsearch index` again, with --model")
    snapshot = Path(shutil.copytree(TINY_BERT, tmp_path / "snapshots" / "c9745ed1"))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, **options: str(snapshot))
    options = ("--model", "owner/tiny-bert", "--pooling", "cls", "--revision", "v2")
    done = export_texts(changed, bundle_copy, *options)
    assert summary(done, "embedded") == "195 texts, 1 rows with the text of another"
    model = read_manifest(bundle_copy).model
    assert (model.name, model.pooling, model.revision) == ("owner/tiny-bert", "cls", "c9745ed1")
    assert model.accuracy["texts"] == ACCURACY_TEXTS  # those of the package
    assert run("verify", bundle_copy).code == 0


def test_a_new_reranker_that_fails_leaves_the_older_one_as_it_is(
    bundle_copy: Path, changed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_texts(changed, add_reranker(bundle_copy))
    before = contents(bundle_copy)

    def write_and_fail(task: str, source: object, texts: object, folder: Path, on_progress: object) -> None:
        (folder / RERANK).write_bytes(b"half a reranker")
        raise ModelError("the cross-encoder cannot be converted")

    monkeypatch.setattr("semsearch.indexing.models.placing.read_cross_encoder", lambda *arguments: None)
    monkeypatch.setattr("semsearch.indexing.models.placing.convert", write_and_fail)
    done = run("index", changed, "--out", bundle_copy, "--rerank", TINY_BERT)
    assert "the cross-encoder cannot be converted" in error_line(done)
    assert contents(bundle_copy) == before


def test_titles_that_follow_from_text_columns_change_with_them(out: Path) -> None:
    rows = [{"name": "A goose", "label": "A swan", "description": "It swims."}]
    index(rows, out=out, text_column=["name", "description"], progress=False)
    index(rows, out=out, text_column=["label", "description"], mode="replace", progress=False)
    assert read_manifest(out).corpus.options["title_column"] == "label"
    index(rows, out=out, title_column="name", mode="replace", progress=False)
    index(rows, out=out, text_column=["label", "description"], mode="replace", progress=False)
    assert read_manifest(out).corpus.options["title_column"] == "name"


@pytest.mark.parametrize("name", [COLUMNS, KEYWORDS])
def test_damaged_columns_and_keywords_are_made_of_the_texts(
    bundle_copy: Path, changed: Path, full: dict[str, bytes], name: str
) -> None:
    export_texts(changed, bundle_copy)
    damage(bundle_copy / name)
    assert summary(export_texts(changed, bundle_copy), "embedded").startswith("0 texts")
    assert contents(bundle_copy) == full


def test_a_lost_list_of_truncated_texts_is_made_again(bundle_copy: Path, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", ROWS)
    export_texts(rows, bundle_copy)
    before = contents(bundle_copy)
    (bundle_copy / TRUNCATED).unlink()
    done = run("index", rows, "--out", bundle_copy)
    assert "truncated.jsonl: is missing" in done.err
    assert contents(bundle_copy) == before


def test_other_stems_count_all_terms_again(
    bundle_copy: Path, changed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_texts(changed, bundle_copy)
    monkeypatch.setattr("semsearch.indexing.counting.SHORTEST_WORD", 5)
    monkeypatch.setattr("semsearch.indexing.vectors.indexer.COUNTING_VERSION", 0)
    export_texts(changed, bundle_copy)
    export_texts(changed, tmp_path / "fresh", "--update", bundle_copy)
    assert contents(bundle_copy)[KEYWORDS] == contents(tmp_path / "fresh")[KEYWORDS]


def test_the_same_texts_by_another_model_are_measured_again(bundle_copy: Path, changed: Path, tmp_path: Path) -> None:
    export_texts(changed, bundle_copy)
    export_texts(changed, bundle_copy, "--model", TINY_BERT)
    export_texts(changed, tmp_path / "fresh", "--model", TINY_BERT)
    assert contents(bundle_copy) == contents(tmp_path / "fresh")


def test_a_bundle_that_is_replaced_meanwhile_is_refused(bundle_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = read_manifest(bundle_copy)

    def replace_meanwhile(*arguments: object) -> None:
        write_manifest(bundle_copy, replace(manifest, model=replace(manifest.model, name="other")))

    monkeypatch.setattr("semsearch.indexing.older.read_update", replace_meanwhile)
    with pytest.raises(BundleError, match="was replaced while it was read"):
        OlderIndex.open(bundle_copy, "")


LONG = "the angry goose " * 30
ROWS = [("short", "the goose"), ("a\nb", LONG), ("ü\u2028", f"{LONG} again"), ("twice", LONG)]


def write_rows(path: Path, rows: list[tuple[str, str]]) -> Path:
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in rows]
    path.write_text("".join(lines))
    return path


def listed(bundle: Path) -> list[tuple[int, str]]:
    lines = (bundle / TRUNCATED).read_bytes().decode().removesuffix("\n").split("\n")
    return [(line["index"], line["id"]) for line in map(json.loads, lines)]


def test_truncated_texts_are_listed_by_place_and_id_as_long_as_there_are_any(bundle_copy: Path, tmp_path: Path) -> None:
    done = export_texts(write_rows(tmp_path / "a.jsonl", ROWS), bundle_copy)
    assert listed(bundle_copy) == [(1, "a\nb"), (2, "ü\u2028"), (3, "twice")]
    assert summary(done, "truncated") == f"3 texts longer than 24 tokens, listed in {bundle_copy / TRUNCATED}"
    assert TRUNCATED in check_bundle(bundle_copy).files
    assert f"checksum of {TRUNCATED}" in run("verify", bundle_copy).out
    done = export_texts(write_rows(tmp_path / "a.jsonl", ROWS[:1]), bundle_copy)
    assert "texts longer than" not in done.out
    assert not (bundle_copy / TRUNCATED).exists()
    assert TRUNCATED not in check_bundle(bundle_copy).files


def test_an_update_lists_the_texts_that_it_takes_over_too(bundle_copy: Path, tmp_path: Path) -> None:
    other, full = tmp_path / "other", Path(shutil.copytree(bundle_copy, tmp_path / "full"))
    export_texts(write_rows(tmp_path / "a.jsonl", ROWS), bundle_copy)
    changed = write_rows(tmp_path / "b.jsonl", [("first", f"{LONG} new"), *ROWS[::-1][:2], ("same", LONG), ROWS[0]])
    export_texts(changed, full)
    assert listed(full) == [(0, "first"), (1, "twice"), (2, "ü\u2028"), (3, "same")]
    for out in (other, bundle_copy):
        done = run("index", changed, "--verbose", "--update", bundle_copy, "--out", out)
        assert (done.code, done.err) == (0, "")
        assert summary(done, "truncated") == f"4 texts longer than 24 tokens, listed in {out / TRUNCATED}"
        assert contents(out) == contents(full)
