"""Passages become an index, and a bundle changes whole or not at all."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from export import indexer
from export.corpus import Corpus
from export.indexer import embed_corpus, replacing, take_model, write_index, write_model
from function.engine.bundle import (
    INDEX,
    MANIFEST,
    MODEL,
    PASSAGES,
    TOKENIZER,
    BundleError,
    Manifest,
    describe_file,
    open_bundle,
    read_manifest,
)
from function.engine.embedder import Embedder
from function.engine.index import EXHAUSTIVE_ROWS, Index
from function.engine.passages import Passages
from function.engine.quantization import dequantize, quantize
from tests.export.conftest import clustered_rows

Contents = dict[str, bytes]


def contents(folder: Path) -> Contents:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def siblings(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.parent.iterdir())


# Embedding


def test_a_chunk_ends_with_its_texts_or_its_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "TEXTS_PER_CHUNK", 3)
    monkeypatch.setattr(indexer, "CHARACTERS_PER_CHUNK", 10)
    texts = ["a", "b", "c", "d", "e" * 9, "f", "g" * 30, "h", "i"]
    chunks = list(indexer._chunks(texts))
    assert chunks == [["a", "b", "c"], ["d", "e" * 9], ["f"], ["g" * 30], ["h", "i"]]
    assert list(indexer._chunks([])) == []


def test_a_corpus_embeds_as_its_texts_do_one_by_one(
    embedder: Embedder, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "TEXTS_PER_CHUNK", 64)  # 200 texts: three chunks and a rest
    codes, scales, _ = embed_corpus(embedder, corpus.texts)
    alone = np.concatenate([embedder.embed(embedder.tokenize([text], role="document")) for text in corpus.texts])
    expected_codes, expected_scales = quantize(alone)
    assert (codes.dtype, scales.dtype) == (np.dtype(np.int8), np.dtype(np.float32))
    assert np.abs(codes.astype(int) - expected_codes).max() <= 1  # a value on the border of two codes
    assert (codes == expected_codes).mean() > 0.999
    np.testing.assert_allclose(scales, expected_scales, rtol=1e-3)


def test_equal_texts_are_embedded_once_and_have_equal_rows(
    tiny_embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "TEXTS_PER_CHUNK", 2)  # so that equal texts would be in different batches
    long = "a sailor " * 40
    texts = [
        "the old sailor",
        "forty apples",
        long,
        "the old sailor",
        "a",
        long,
        "the old sailor " * 5,
        "the old sailor",
    ]
    told: list[int] = []
    codes, scales, truncated = embed_corpus(tiny_embedder, texts, told.append)
    for row in (3, 7):
        np.testing.assert_array_equal(codes[row], codes[0])
        assert scales[row] == scales[0]
    alone = quantize(tiny_embedder.embed(tiny_embedder.tokenize(texts, role="document")))[0]
    assert np.abs(codes.astype(int) - alone).max() <= 1  # each row is its own text's
    assert truncated == 2
    assert sum(told) == len(texts)  # every text counts, also one that was embedded before


def test_the_documents_prompt_is_put_before_each_text(tiny_embedder: Embedder) -> None:
    codes, scales, _ = embed_corpus(tiny_embedder, ["the old sailor", "forty apples"])
    plain = tiny_embedder.tokenize(["passage: the old sailor", "passage: forty apples"])
    expected = quantize(tiny_embedder.embed(plain))
    np.testing.assert_array_equal(codes, expected[0])
    np.testing.assert_allclose(scales, expected[1], rtol=1e-6)


@pytest.fixture
def tiny_embedder(tiny_export: tuple[Path, object]) -> Embedder:
    return Embedder.open(*tiny_export)  # type: ignore[arg-type]


def test_texts_whose_end_was_cut_off_are_counted(embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "TEXTS_PER_CHUNK", 2)  # one of them in each chunk
    room = embedder.model.max_tokens - 2
    texts = ["the " * room, "the " * (room + 1), "the", "the " * 500]
    _, _, truncated = embed_corpus(embedder, texts)
    assert truncated == 2


def test_progress_is_told_the_number_of_texts_done_while_a_chunk_is_embedded(
    embedder: Embedder, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "TEXTS_PER_CHUNK", 64)
    told: list[int] = []
    embed_corpus(embedder, corpus.texts, told.append)
    assert sum(told) == 200
    assert max(told) < 32


# Writing


def test_the_model_alone_has_a_manifest_without_index(bundle_copy: Path, manifest: Manifest) -> None:
    written = write_model(bundle_copy, manifest.model)
    assert written == read_manifest(bundle_copy)
    assert written.index is None
    assert written.files == {name: describe_file(bundle_copy / name) for name in (MODEL, TOKENIZER)}


def test_the_manifest_says_of_the_index_what_is_in_the_files(bundle: Path, corpus: Corpus) -> None:
    manifest = json.loads((bundle / MANIFEST).read_text())
    created = datetime.fromisoformat(manifest["index"].pop("created"))
    assert created.tzinfo == UTC
    assert timedelta(0) <= datetime.now(UTC) - created < timedelta(hours=1)
    assert manifest["index"] == {
        "rows": len(corpus.texts),
        "layout": "int8 codes, a scale a row, sign bits",
        "model_sha256": manifest["files"]["model.ort"]["sha256"],
        "tokenizer_sha256": manifest["files"]["tokenizer.txt"]["sha256"],
        "corpus": "stories.csv",
    }
    assert manifest["files"].keys() == {path.name for path in bundle.iterdir()} - {"manifest.json"}
    for name, entry in manifest["files"].items():
        sum_of = subprocess.run(["sha256sum", bundle / name], capture_output=True, check=True, text=True).stdout
        assert entry == {"bytes": (bundle / name).stat().st_size, "sha256": sum_of.split()[0]}


def test_the_index_holds_the_rows_in_the_order_of_the_texts_and_their_signs(
    bundle: Path, embedder: Embedder, corpus: Corpus
) -> None:
    codes, scales, _ = embed_corpus(embedder, corpus.texts)
    stored = load_file(bundle / INDEX)  # safetensors' own reader
    np.testing.assert_array_equal(stored["codes"], codes)
    np.testing.assert_array_equal(stored["scales"], scales)
    unpacked = np.unpackbits(stored["bits"], axis=1, count=codes.shape[1])
    np.testing.assert_array_equal(unpacked.astype(bool), codes > 0)


def test_the_passages_come_back_as_they_were(bundle: Path, corpus: Corpus) -> None:
    passages = Passages(bundle / PASSAGES)
    assert [passages[row].text for row in range(len(passages))] == corpus.texts
    assert [passages[row].id for row in range(len(passages))] == corpus.ids
    assert [passages[row].metadata for row in range(len(passages))] == [json.loads(one) for one in corpus.metadata]
    with safe_open(bundle / PASSAGES, "np") as file:
        assert file.get_tensor("texts").tobytes() == "".join(corpus.texts).encode()


def test_new_texts_leave_the_model_and_the_tokenizer_byte_for_byte(
    bundle: Path, embedder: Embedder, corpus: Corpus, tmp_path: Path
) -> None:
    (tmp_path / "new").mkdir()
    manifest = take_model(bundle, tmp_path / "new")
    assert manifest.index is None
    other = Corpus(corpus.texts[:20][::-1], corpus.ids[:20], corpus.metadata[:20], 0)
    codes, scales, _ = embed_corpus(embedder, other.texts)
    write_index(tmp_path / "new", manifest, other, codes, scales, "other.csv")
    found = open_bundle(tmp_path / "new")
    assert found.index is not None
    assert (found.index.rows, found.index.corpus, len(Index.open(tmp_path / "new" / INDEX))) == (20, "other.csv", 20)
    for name in (MODEL, TOKENIZER):
        assert (tmp_path / "new" / name).read_bytes() == (bundle / name).read_bytes()


@pytest.mark.parametrize("name", [MODEL, TOKENIZER])
def test_a_model_that_is_not_whole_is_not_taken(bundle_copy: Path, name: str, tmp_path: Path) -> None:
    with (bundle_copy / name).open("ab") as file:
        file.write(b" ")
    (tmp_path / "new").mkdir()
    with pytest.raises(BundleError, match=rf"{name}: \d+ bytes, the manifest says \d+"):
        take_model(bundle_copy, tmp_path / "new")


@pytest.mark.parametrize("name", [MODEL, TOKENIZER])
def test_a_damaged_model_is_not_taken(bundle_copy: Path, name: str, tmp_path: Path) -> None:
    content = bytearray((bundle_copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (bundle_copy / name).write_bytes(content)
    (tmp_path / "new").mkdir()
    with pytest.raises(BundleError, match=rf"{name}: sha256 \w+, the manifest says \w+; it is damaged"):
        take_model(bundle_copy, tmp_path / "new")


@pytest.mark.parametrize(("offset", "has_bits"), [(0.0, True), (0.3, False)])
def test_signs_are_stored_where_they_find_the_neighbours(
    bundle: Path, tmp_path: Path, offset: float, has_bits: bool
) -> None:
    rows = EXHAUSTIVE_ROWS + 1_000
    codes, scales = quantize(clustered_rows(rows, offset))
    corpus = Corpus(["x"] * rows, ["x"] * rows, ["{}"] * rows, 0)
    manifest = write_index(tmp_path, take_model(bundle, tmp_path), corpus, codes, scales, "x.csv")
    assert manifest.index is not None
    assert ("no sign bits" not in manifest.index.layout) == has_bits
    assert ("bits" in load_file(tmp_path / INDEX)) == has_bits
    index, query = Index.open(tmp_path / INDEX), dequantize(codes[:1], scales[:1])[0]
    query /= np.linalg.norm(query)
    scores = dequantize(codes, scales) @ query
    assert [hit.row for hit in index.search(query, 5)] == np.argsort(-scores, kind="stable")[:5].tolist()


@pytest.mark.parametrize("name", [MANIFEST, MODEL, TOKENIZER, INDEX, PASSAGES])
def test_a_half_written_bundle_does_not_open(bundle_copy: Path, name: str) -> None:
    (bundle_copy / name).unlink()
    with pytest.raises(BundleError, match=name):
        open_bundle(bundle_copy)


# Replacing


def test_a_new_bundle_appears_under_its_name_when_all_is_written(tmp_path: Path) -> None:
    out = tmp_path / "not" / "yet" / "there"
    with replacing(out) as fresh:
        (fresh / MANIFEST).write_text("new")
        assert not out.exists()
        assert fresh.parent == out.parent  # the same disk, so that it can be renamed
    assert contents(out) == {MANIFEST: b"new"}
    assert siblings(out) == ["there"]


def test_an_old_bundle_is_replaced_whole(bundle_copy: Path) -> None:
    with replacing(bundle_copy) as fresh:
        assert list(fresh.iterdir()) == []
        (fresh / MANIFEST).write_text("new")
    assert contents(bundle_copy) == {MANIFEST: b"new"}
    assert siblings(bundle_copy) == ["bundle"]


def test_a_bundle_can_be_read_by_everyone(tmp_path: Path) -> None:
    with replacing(tmp_path / "out") as fresh:
        (fresh / MANIFEST).write_text("new")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755


def stop_half_way(out: Path, stop: type[BaseException]) -> None:
    with replacing(out) as fresh:
        (fresh / MANIFEST).write_text("half of it")
        raise stop


@pytest.mark.parametrize("stop", [RuntimeError, BundleError, KeyboardInterrupt, SystemExit])
def test_an_error_or_an_interruption_leaves_the_old_bundle_byte_for_byte(
    bundle_copy: Path, stop: type[BaseException]
) -> None:
    before = contents(bundle_copy)
    with pytest.raises(stop):
        stop_half_way(bundle_copy, stop)
    assert contents(bundle_copy) == before
    assert siblings(bundle_copy) == ["bundle"]


def test_an_error_leaves_nothing_where_nothing_was(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), replacing(tmp_path / "out"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_killed_leaves_the_old_bundle(bundle_copy: Path) -> None:
    before = contents(bundle_copy)
    code = (
        "import os, signal, sys; from pathlib import Path; from export.indexer import replacing\n"
        "with replacing(Path(sys.argv[1])) as fresh:\n"
        "    (fresh / 'manifest.json').write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code, str(bundle_copy)], cwd=root, check=False)
    assert done.returncode == -signal.SIGKILL
    assert contents(bundle_copy) == before


def test_a_bundle_set_aside_by_an_export_that_was_stopped_between_its_renames_comes_back(
    bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(bundle_copy)
    rename = Path.rename

    def stop_at_the_second(self: Path, target: Path) -> Path:
        if self.suffix == ".partial":
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), replacing(bundle_copy):
        patch.setattr(Path, "rename", stop_at_the_second)
    with pytest.raises(RuntimeError):
        stop_half_way(bundle_copy, RuntimeError)
    assert contents(bundle_copy) == before
    assert siblings(bundle_copy) == ["bundle"]


def test_what_an_earlier_export_set_aside_is_removed_once_a_new_bundle_stands(bundle_copy: Path) -> None:
    retired = bundle_copy.with_name(".bundle.retired")
    retired.mkdir()
    (retired / MANIFEST).write_text("older")
    with replacing(bundle_copy) as fresh:
        (fresh / MANIFEST).write_text("new")
    assert contents(bundle_copy) == {MANIFEST: b"new"}
    assert siblings(bundle_copy) == ["bundle"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with replacing(tmp_path / "out") as fresh:
        (fresh / MANIFEST).write_text("new")
    assert contents(tmp_path / "out") == {MANIFEST: b"new"}


def test_a_folder_that_is_no_bundle_is_not_touched(tmp_path: Path) -> None:
    out = tmp_path / "photos"
    out.mkdir()
    (out / "holiday.jpg").write_bytes(b"precious")
    with pytest.raises(BundleError, match=r"photos: holds holiday.jpg, so it is no bundle"):
        replacing(out).__enter__()
    assert contents(out) == {"holiday.jpg": b"precious"}
    assert siblings(out) == ["photos"]


def test_a_folder_with_another_kind_of_manifest_is_not_touched(tmp_path: Path) -> None:
    out = tmp_path / "website"
    out.mkdir()
    (out / "manifest.json").write_text('{"name": "My web app", "start_url": "/", "display": "standalone"}')
    (out / "index.html").write_text("precious")
    with pytest.raises(BundleError), replacing(out) as fresh:
        (fresh / MANIFEST).write_text("new")
    assert (out / "index.html").read_text() == "precious"


def test_a_folder_with_nothing_but_another_kind_of_manifest_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "extension").mkdir()
    (tmp_path / "extension" / "manifest.json").write_text('{"name": "My extension"}')
    with pytest.raises(BundleError, match=r"extension: holds manifest.json and no model.ort, so it is no bundle"):
        replacing(tmp_path / "extension").__enter__()
    assert contents(tmp_path / "extension") == {"manifest.json": b'{"name": "My extension"}'}


@pytest.mark.parametrize(("out", "reason"), [("/", "is the root of all folders"), ("/dev/null/bundle", "nothing can")])
def test_a_place_where_no_bundle_can_be_is_refused(out: str, reason: str) -> None:
    with pytest.raises(BundleError, match=rf"^{out}: {reason}"):
        replacing(Path(out)).__enter__()


def test_a_file_in_the_place_of_the_bundle_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("precious")
    with pytest.raises(BundleError, match="out: is a file, expected a folder"):
        replacing(tmp_path / "out").__enter__()
    assert (tmp_path / "out").read_text() == "precious"


def test_a_bundle_behind_a_link_is_replaced_where_it_is(bundle_copy: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(bundle_copy)
    with replacing(link) as fresh:
        (fresh / MANIFEST).write_text("new")
    assert link.is_symlink()
    assert contents(bundle_copy) == {MANIFEST: b"new"}


def test_a_bundle_named_from_the_working_folder_is_replaced(bundle_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bundle_copy.parent)
    with replacing(Path("bundle")) as fresh:
        (fresh / MANIFEST).write_text("new")
        os.chdir("/")
    assert contents(bundle_copy) == {MANIFEST: b"new"}


def test_every_file_of_a_bundle_can_be_read_by_another_user(bundle: Path) -> None:
    assert [oct(path.stat().st_mode & 0o444) for path in bundle.iterdir()] == ["0o444"] * 5
