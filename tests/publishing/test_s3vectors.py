"""semsearch publish --to s3vectors: what is sent, what is not sent again, and what is refused before sending."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from semsearch import index
from semsearch.aws.s3vectors.vectors import LARGEST_NUMBER
from semsearch.engine.bundle import BundleError, check_bundle, is_bundle, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.older import OlderIndex
from semsearch.publishing import s3vectors
from semsearch.publishing.bucket import PublishError, connect
from semsearch.publishing.s3vectors import Sent, batches
from tests.command_line import contents, error_line, run
from tests.stand_ins.fixtures import BUCKET
from tests.stand_ins.s3vectors import StandIn
from tests.world import STORY_COLUMNS, write_bundle

Send = Callable[..., Sent]


def corpus_of(texts: list[str], metadata: list[dict[str, Any]], columns: dict[str, str]) -> Corpus:
    ids = [f"id-{row}" for row in range(len(texts))]
    return Corpus(texts, ids, [json.dumps(each) for each in metadata], columns=columns)


def stored(index: str) -> dict[str, Any]:
    """Return the vectors of an index by their rows."""
    found: dict[str, Any] = {}
    client, where = connect("s3vectors"), {"vectorBucketName": BUCKET, "indexName": index}
    keys = [each["key"] for page in client.get_paginator("list_vectors").paginate(**where) for each in page["vectors"]]
    for begin in range(0, len(keys), 100):
        reply = client.get_vectors(**where, keys=keys[begin : begin + 100], returnData=True, returnMetadata=True)
        found |= {each["key"].rpartition("-")[2]: each for each in reply["vectors"]}
    return found


def test_every_row_is_sent_once_with_its_embedding_and_its_typed_columns(
    bundle: Path, embedder: Embedder, corpus: Corpus, send: Send, tmp_path: Path
) -> None:
    sent = send(bundle, "every-row", tmp_path / "out")
    assert (sent.sent, sent.there, len(StandIn.put_calls)) == (200, 0, 1)
    rows = stored("every-row")
    assert len(rows) == 200
    row = rows["11"]
    (expected,) = embedder.embed(embedder.tokenize([corpus.texts[11]], role="document"))
    assert np.dot(row["data"]["float32"], expected) > 0.9999
    metadata = row["metadata"]
    assert (metadata["_text"], metadata["_id"]) == (corpus.texts[11], "story-011")
    assert json.loads(metadata["_metadata"]) == json.loads(corpus.metadata[11])
    columns = {name: metadata[name] for name in STORY_COLUMNS}
    assert columns["told"] == 1_733_356_800_000_000  # 2024-12-05, in microseconds
    assert (columns["chapter"], columns["true"], columns["places"]) == (1, False, ["sea", "village"])
    assert rows["3"]["metadata"]["_empty"] == ["places"]
    assert rows["0"]["metadata"].keys() == {"_text", "_id"}


def test_the_bundle_that_is_served_holds_the_model_and_says_where_the_texts_are(published: Path, bundle: Path) -> None:
    assert {path.name for path in published.iterdir()} == {"manifest.json", "model.ort", "tokenizer.txt"}
    index, before = read_manifest(published).corpus, read_manifest(bundle).corpus
    assert index.vectors is not None
    assert (index.vectors.bucket, index.vectors.index) == (BUCKET, "stories")
    assert (index.rows, index.columns) == (200, before.columns)
    made = connect("s3vectors").get_index(vectorBucketName=BUCKET, indexName="stories")["index"]
    assert (made["dimension"], made["distanceMetric"], made["dataType"]) == (48, "cosine", "float32")
    no_filters = made["metadataConfiguration"]["nonFilterableMetadataKeys"]
    assert set(no_filters) == {"_text", "_id", "_metadata"}


def test_a_bundle_without_a_model_is_served_from_a_manifest_alone(send: Send, tmp_path: Path) -> None:
    rows = [{"id": f"r{number}", "text": "A goose", "year": number} for number in range(3)]
    given = np.array([[3.0, 4.0], [-1.0, 0.0], [0.0, 2.0]])
    index(rows, tmp_path / "bundle", embeddings=given, embedded_by="openai/small", progress=False)
    for there in (0, 3):  # the second publish replaces the same folder
        sent = send(tmp_path / "bundle", "without-model", tmp_path / "out")
        assert (sent.sent, sent.there) == (3 - there, there)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["manifest.json"]
    assert is_bundle(tmp_path / "out")
    assert check_bundle(tmp_path / "out").model.name == "openai/small"
    vectors = {row: each["data"]["float32"] for row, each in stored("without-model").items()}
    assert vectors["0"] == pytest.approx([0.6, 0.8], abs=0.01)
    assert vectors["1"] == [-1, 0]


def test_a_stopped_publish_goes_on(bundle: Path, send: Send, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3vectors, "MOST_VECTORS", 30)
    monkeypatch.setattr(s3vectors, "SENDERS", 1)

    def stop(step: str, share: float, texts: int = 0) -> None:
        if texts > 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        send(bundle, "stopped", tmp_path / "out", on_progress=stop)
    there = sum(StandIn.put_calls)
    assert 0 < there < 200
    assert not (tmp_path / "out").exists()
    told = list[tuple[float, int]]()

    def tell(step: str, share: float, texts: int = 0) -> None:
        if step == s3vectors.STEP:
            told.append((share, texts))

    again = send(bundle, "stopped", tmp_path / "out", on_progress=tell)
    assert (again.sent, again.there) == (200 - there, there)
    assert [share for share, _ in told] == pytest.approx([(there + texts) / 200 for _, texts in told])
    assert told[-1] == (1, again.sent)
    assert len(stored("stopped")) == 200
    assert send(bundle, "stopped", tmp_path / "out").sent == 0


def test_an_index_with_vectors_of_another_bundle_is_refused(bundle: Path, send: Send, tmp_path: Path) -> None:
    send(bundle, "mixed", tmp_path / "out")
    other = write_bundle(tmp_path / "other", corpus_of(["a goose"], [{}], {}))
    StandIn.put_calls.clear()
    with pytest.raises(PublishError, match="holds vectors of another bundle, such as"):
        send(other, "mixed", tmp_path / "out")
    assert not StandIn.put_calls


def test_an_index_of_another_kind_is_refused(bundle: Path, send: Send, tmp_path: Path) -> None:
    kind: dict[str, Any] = {"dataType": "float32", "dimension": 48, "distanceMetric": "euclidean"}
    hidden = {"nonFilterableMetadataKeys": ["_text", "_id", "_metadata"]}
    connect("s3vectors").create_index(
        vectorBucketName=BUCKET, indexName="euclidean", metadataConfiguration=hidden, **kind
    )
    with pytest.raises(PublishError, match=r"is of .*euclidean.*, expected .*cosine"):
        send(bundle, "euclidean", tmp_path / "out")


def test_a_missing_bucket_is_named_with_the_command_that_makes_it(bundle: Path, server: str, tmp_path: Path) -> None:
    done = run("publish", bundle, "s3vectors://no-bucket/stories", "--out", tmp_path / "out")
    assert "aws s3vectors create-vector-bucket --vector-bucket-name no-bucket" in error_line(done)


LONG = "word " * 9_000
REFUSED = [
    ([{}, {"tag": "x" * 2100}], {"tag": "string"}, ["a", "b"], r"row 1 \(id id-1\): 2\d+ bytes of columns for filters"),
    ([{}, {}], {}, ["a", LONG], r"row 1 \(id id-1\): 45\d+ bytes of text and metadata, expected at most 40960"),
    ([{"d": "9999-01-01"}, {}], {"d": "date"}, ["a", "b"], r"row 0 \(id id-0\): d is 2\d+, expected numbers up to"),
    ([{"_text": "x"}, {}], {"_text": "string"}, ["a", "b"], "the column '_text', expected at most 63 characters"),
    ([{f"c{n}": 1 for n in range(47)}, {}], {f"c{n}": "number" for n in range(47)}, ["a", "b"], "47 columns, expected"),
]


@pytest.mark.parametrize(("metadata", "columns", "texts", "expected"), REFUSED)
def test_a_limit_is_told_with_the_row_before_anything_is_sent(
    send: Send, tmp_path: Path, metadata: list[dict[str, Any]], columns: dict[str, str], texts: list[str], expected: str
) -> None:
    bundle = write_bundle(tmp_path / "bundle", corpus_of(texts, metadata, columns))
    client = connect("s3vectors")
    with pytest.raises(BundleError, match=expected):
        send(bundle, "refused", tmp_path / "out", client=client)
    with pytest.raises(client.exceptions.NotFoundException):
        client.get_index(vectorBucketName=BUCKET, indexName="refused")


def test_the_largest_number_that_is_exact_there_is_sent(send: Send, tmp_path: Path) -> None:
    numbers = [{"n": LARGEST_NUMBER}, {"n": -LARGEST_NUMBER}]
    send(
        write_bundle(tmp_path / "bundle", corpus_of(["a", "b"], numbers, {"n": "number"})), "largest", tmp_path / "out"
    )
    assert sorted(each["metadata"]["n"] for each in stored("largest").values()) == [-LARGEST_NUMBER, LARGEST_NUMBER]


def test_a_call_has_at_most_500_vectors_and_20_mib() -> None:
    small = [{"key": str(number)} for number in range(1_201)]
    assert [len(batch) for batch in batches(small)] == [500, 500, 201]
    large = [{"key": str(number), "text": "é" * 1_000} for number in range(10)]  # 6 bytes each as boto3 writes them
    found = list(batches(large, most_bytes=20_000))
    assert [len(batch) for batch in found] == [3, 3, 3, 1]
    assert max(len(json.dumps({"vectors": batch})) for batch in found) <= 20_000


def test_the_command_prints_what_it_sent_and_what_was_there(bundle_copy: Path, server: str) -> None:
    command = ("publish", bundle_copy, f"s3vectors://{BUCKET}/command")
    assert f"{BUCKET}/command in eu-central-1: 200 vectors sent, 0 were there" in run(*command).out
    assert "0 vectors sent, 200 were there" in run(*command).out
    assert run("verify", bundle_copy.parent / "bundle-s3vectors").code == 0


def test_a_folder_for_the_new_bundle_is_not_for_s3() -> None:
    assert "--out: is for s3vectors://" in run("publish", "bundle/", "s3://b/p", "--out", "small/").err


@pytest.mark.parametrize("place", ["bucket", "a/b/c"])
def test_a_place_that_is_no_bucket_and_index_is_refused(bundle: Path, send: Send, tmp_path: Path, place: str) -> None:
    with pytest.raises(PublishError, match="expected BUCKET/INDEX"):
        s3vectors.publish(bundle, place, tmp_path / "out", connect("s3vectors"), lambda step, share, texts=0: None)


def test_a_bundle_with_texts_is_not_replaced(bundle: Path, bundle_copy: Path, send: Send) -> None:
    before = contents(bundle_copy)
    with pytest.raises(PublishError, match="is a bundle with texts, which would be deleted"):
        send(bundle, "another", bundle_copy)
    with pytest.raises(PublishError, match="is the bundle itself"):
        send(bundle_copy, "itself", bundle_copy)
    assert contents(bundle_copy) == before


def test_a_bundle_of_a_service_is_neither_published_nor_updated(published: Path, send: Send, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="its texts are in S3 Vectors already"):
        send(published, "again", tmp_path / "out")
    with pytest.raises(BundleError, match="its texts are in S3 Vectors"):
        OlderIndex.open(published, "")


def vectors_of(**fields: Any) -> Any:
    """Return the vectors of a bundle that has only some fields."""
    vectors = object.__new__(s3vectors.BundleVectors)
    vectors.__dict__.update({"dim": 4_096, "kinds": {}, "_bundle": Path("bundle")} | fields)
    vectors.__dict__["_passages"] = SimpleNamespace(id=lambda row: f"id-{row}")
    return vectors


@pytest.mark.parametrize(
    ("allowed", "refused", "message"),
    [
        ({"dim": 4_096}, {"dim": 4_097}, "4097 dimensions, S3 Vectors takes at most 4096"),
        (
            {"kinds": dict.fromkeys(map(str, range(46)), "number")},
            {"kinds": dict.fromkeys(map(str, range(47)))},
            "47 col",
        ),
        ({"kinds": {"x" * 63: "number"}}, {"kinds": {"x" * 64: "number"}}, "the column 'x+', expected at most 63"),
        ({"kinds": {"a$": "number"}}, {"kinds": {"$a": "number"}}, "the column '.a', expected at most 63"),
        ({"kinds": {"empty": "number"}}, {"kinds": {"_empty": "number"}}, "the column '_empty', expected at most 63"),
    ],
)
def test_the_limits_of_columns_can_be_reached(allowed: dict[str, Any], refused: dict[str, Any], message: str) -> None:
    vectors_of(**allowed)._check_columns()
    with pytest.raises(BundleError, match=f"^bundle: {message}"):
        vectors_of(**refused)._check_columns()


@pytest.mark.parametrize(
    ("allowed", "refused", "message"),
    [
        (
            ({"a": "x" * 2_040}, {}),
            ({"a": "x" * 2_041}, {}),
            "2049 bytes of columns for filters, expected at most 2048",
        ),
        (({}, {"b": "é" * 20_476}), ({"cc": 1}, {"b": "é" * 20_473}), "40961 bytes of text and metadata, expected at"),
        (({"n": [1, -(2**53)]}, {}), ({"n": [-(2**53) - 1, 1]}, {}), "n is .*, exp.* numbers up to 9007199254740992"),
        (({"n": 2.0**53}, {}), ({"n": 2**53 + 1}, {}), "n is 9007199254740993, expected numbers up to"),
    ],
)
def test_the_limits_of_a_row_can_be_reached(allowed: Any, refused: Any, message: str) -> None:
    vectors_of(_metadata=lambda row: allowed)._check_row(3)
    with pytest.raises(BundleError, match=rf"^bundle: row 3 \(id id-3\): {message}"):
        vectors_of(_metadata=lambda row: refused)._check_row(3)


def test_each_row_is_checked_and_one_of_zeros_named() -> None:
    scales, checked = np.ones(4_098), list[int]()
    index = SimpleNamespace(codes_of=lambda rows: (None, scales[rows]))
    vectors = vectors_of(rows=4_098, _index=index, _check_row=checked.append)
    assert list(vectors.check()) == [4_096 / 4_098, 1]
    assert checked == list(range(4_098))
    scales[4_097] = 0
    with pytest.raises(BundleError, match=r"row 4097 \(id id-4097\): its embedding is all zeros, expected S3 Vectors"):
        list(vectors.check())
