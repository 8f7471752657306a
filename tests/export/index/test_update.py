"""--update takes over the rows of texts that a bundle has, and embeds only the others."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from export.corpus import Corpus
from export.index.update import open_older_rows
from function.engine.bundle import INDEX, MANIFEST, MODEL, PASSAGES, BundleError, read_manifest
from function.engine.embedder import Embedder
from tests.conftest import embed
from tests.export.command_line import Run, contents, error_line, export_texts, run, summary, write_csv, write_texts
from tests.export.conftest import TINY_BERT


@pytest.fixture
def changed(corpus: Corpus, tmp_path: Path) -> Path:
    """The stories in another order, ten of them gone, one of them twice, and five new ones."""
    texts = [*corpus.texts[:9:-1], corpus.texts[50], *(f"Her sister missed the {thing}." for thing in "ABCDE")]
    return write_csv(tmp_path / "changed.csv", [{"text": text, "number": str(row)} for row, text in enumerate(texts)])


@pytest.fixture
def full(bundle: Path, changed: Path, tmp_path: Path) -> dict[str, bytes]:
    """The bundle in which all the changed stories were embedded."""
    out = Path(shutil.copytree(bundle, tmp_path / "full"))
    export_texts(changed, out)
    return contents(out)


def test_an_update_embeds_new_texts_alone_and_ends_with_the_bytes_of_a_full_export(
    bundle_copy: Path, changed: Path, full: dict[str, bytes]
) -> None:
    done = export_texts(changed, bundle_copy, "--update", bundle_copy)
    assert summary(done, "embedded") == "5 texts, 191 rows taken over from the bundle of --update"
    assert contents(bundle_copy) == full


def test_an_update_into_another_folder_brings_the_model_and_leaves_the_older_bundle(
    bundle: Path, changed: Path, full: dict[str, bytes], tmp_path: Path
) -> None:
    before = contents(bundle)
    done = run("--corpus", changed, "--update", bundle, "--out", tmp_path / "new")
    assert (done.code, done.err) == (0, "")
    assert contents(tmp_path / "new") == full
    assert contents(bundle) == before


def test_an_update_into_another_folder_has_the_options_and_the_bytes_of_its_bundle(
    bundle_copy: Path, changed: Path, tmp_path: Path
) -> None:
    options = ("--title", "Stories", "--stem", "german", "--id-column", "number")
    export_texts(changed, bundle_copy, *options)
    export_texts(changed, tmp_path / "new", "--update", bundle_copy)
    assert contents(tmp_path / "new") == contents(bundle_copy)
    export_texts(changed, tmp_path / "new", "--update", bundle_copy, "--title", "", "--stem", "none")
    index = read_manifest(tmp_path / "new").index
    assert index is not None
    assert index.keywords is not None
    assert (index.title, index.keywords.stemming) == ("", None)
    assert index.options == {"id_column": "number", "stem": "none"}


def test_an_update_without_new_texts_embeds_none(
    bundle_copy: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = write_texts(tmp_path / "same.csv", list(corpus.texts))
    monkeypatch.setattr("export.index.embed._collect", None)  # an error if it were called
    done = export_texts(same, bundle_copy, "--update", bundle_copy)
    assert summary(done, "embedded") == "0 texts, 200 rows taken over from the bundle of --update"


def test_rows_are_those_of_the_older_bundle(bundle: Path, embedder: Embedder, corpus: Corpus, tmp_path: Path) -> None:
    older = open_older_rows(bundle, read_manifest(bundle))
    codes, scales = embed(embedder, corpus.texts)
    found = older.read([3, 199, 0])  # type: ignore[arg-type] # a list does as well
    assert found[0].tolist() == codes[[3, 199, 0]].tolist()
    assert found[1].tolist() == scales[[3, 199, 0]].tolist()


@pytest.mark.parametrize("change", [{"prompts": {"document": "passage: "}}, {"max_tokens": 12}])
def test_rows_of_another_prompt_or_length_are_refused(bundle: Path, change: dict[str, object]) -> None:
    manifest = read_manifest(bundle)
    new = replace(manifest, model=replace(manifest.model, **change))  # type: ignore[arg-type]
    with pytest.raises(BundleError, match=r"was embedded by the model tests/mean-of-words .* expected the same model"):
        open_older_rows(bundle, new)


def test_rows_of_another_model_are_refused_and_nothing_is_changed(bundle_copy: Path, changed: Path) -> None:
    before = contents(bundle_copy)
    calibration = ("--calibration", changed)
    line = error_line(run(TINY_BERT, *calibration, "--corpus", changed, "--update", bundle_copy, "--out", bundle_copy))
    assert f"{bundle_copy}: was embedded by the model tests/mean-of-words with sha256" in line
    assert "leave MODEL out to go on with the bundle's, or leave --update out to embed all texts" in line
    assert contents(bundle_copy) == before


def test_a_new_row_whose_number_cannot_be_compared_exactly_leaves_the_older_bundle(
    bundle_copy: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one", "n": 9007199254740993}\n')
    export_texts(path, bundle_copy)
    before = contents(bundle_copy)
    with path.open("a") as file:
        file.write('{"text": "two", "n": 0.5}\n')
    command = ("corpus", "--corpus", path, "--update", bundle_copy, "--out", bundle_copy)
    line = error_line(run(*command))
    assert f"{path}, text 0 (from 0, id '0'): found 9007199254740993 in the column 'n', expected whole numbers" in line
    assert contents(bundle_copy) == before
    remedy = line.partition("compare the column as strings with ")[2].partition(",")[0].split()
    assert run(*command, *remedy).code == 0


@pytest.mark.parametrize("name", [INDEX, PASSAGES, MODEL])
def test_rows_of_a_damaged_bundle_are_refused(bundle_copy: Path, changed: Path, name: str) -> None:
    content = bytearray((bundle_copy / name).read_bytes())
    content[-1] ^= 1
    (bundle_copy / name).write_bytes(content)
    line = error_line(run("--corpus", changed, "--update", bundle_copy, "--out", bundle_copy.parent / "new"))
    assert f"{bundle_copy / name}: sha256 " in line
    assert "it is damaged" in line


def test_a_bundle_that_is_replaced_while_it_is_read_is_refused(
    bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = read_manifest(bundle_copy)

    def replace_meanwhile(texts: object) -> None:
        other = replace(manifest, model=replace(manifest.model, name="other"))
        (bundle_copy / MANIFEST).write_text(other.to_json())

    monkeypatch.setattr("export.index.update.digest_texts", replace_meanwhile)
    with pytest.raises(BundleError, match="was replaced while it was read"):
        open_older_rows(bundle_copy, manifest)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda model, folder: None, "is not a folder; make a bundle with"),
        (lambda model, folder: folder.mkdir(), "holds no manifest.json; make a bundle with"),
        (shutil.copytree, "holds a model and no texts; run `"),
    ],
)
def test_an_update_of_no_bundle_is_an_error(
    make: Callable[[Path, Path], object],
    message: str,
    model_alone: tuple[Path, Run],
    changed: Path,
    tmp_path: Path,
) -> None:
    make(model_alone[0], tmp_path / "older")
    line = error_line(run("--corpus", changed, "--update", tmp_path / "older", "--out", tmp_path / "new"))
    assert f"{tmp_path / 'older'}: {message}" in line
    assert not (tmp_path / "new").exists()
