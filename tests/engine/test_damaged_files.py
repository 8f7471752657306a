"""Bundles whose tensors are damaged: they are refused as damaged, when they are opened or where they are read.

A damaged text, number or embedding can also be a whole one that is another: then the replies differ.
"""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semsearch.engine.bundle import COLUMNS, INDEX, KEYWORDS, MANIFEST, PASSAGES, QUERY_TABLE, BundleError
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import LoadedBundle, load
from semsearch.engine.metadata.columns import Column, Columns
from semsearch.engine.metadata.facets import count_values
from semsearch.engine.passages import Passages
from semsearch.engine.tensors import DTYPES, AnyArray, TensorsError, map_tensors
from semsearch.indexing.tensor_files import save_tensors
from semsearch.search.query import Query
from tests.search.searching import find
from tests.world import STORY_COLUMNS, add_table

MUTATIONS = 50  # for each seed
FILES = (INDEX, KEYWORDS, COLUMNS, PASSAGES, QUERY_TABLE)
ALL_PARTS = ("text", "metadata", "source")
FILTER: dict[str, Any] = {
    "chapter": {"$gte": 2},
    "who": {"$in": ["a lighthouse keeper", "an angry goose", "my grandmother"]},
    "told": {"$lt": "2024-12-31"},
    "true": {"$exists": True},
    "places": {"$nin": ["moon"]},
    "id": {"$startsWith": "story-", "$lt": "story-199"},
}
QUERIES = (
    Query("angry goose", filter=FILTER, include=ALL_PARTS, highlights=True, facets=tuple(STORY_COLUMNS)),
    Query('a "silver key" snwo bef', mode="keyword", prefix=True, without=("baker",), num_results=100),
    Query(id="story-007", mode="hybrid", group_by="who", exact=True),
    Query(None, filter={"true": False}, sort={"told": "desc", "who": "asc"}, num_results=100),
    Query("goose", queries="model", boost={"told": {"half_life": "30d", "weight": 1}}, facets=tuple(STORY_COLUMNS)),
    Query("sevaral lettr and a silverkey", mode="keyword", group_by="who", facets=("places", "told")),
    Query("goose snow", mode="keyword", sort={"who": "asc", "chapter": "desc"}, min_score=0.01, num_results=100),
    Query("letter", mode="semantic", filter={"who": {"$startsWith": "a"}, "chapter": 3}, facets=tuple(STORY_COLUMNS)),
)
VIEW: dict[str, Any] = {"chapter": {"$gte": 2}}  # the filter of a key
# Damage that can make another file that is whole: two tensors exchange their names, or a dtype or an optional name is
# another one.
UNSEEN = ("swapped", "dtype", "key", "bytes", "strings")
NONSENSE: tuple[Any, ...] = (-1, -8, 2**31, 2**63, 2**64, 10**30, 0.5, True, None, "8", [], {})


@pytest.fixture(scope="module")
def whole(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole bundle with each kind of file."""
    folder = tmp_path_factory.mktemp("damage") / "whole"
    folder.mkdir()
    for file in bundle.iterdir():
        os.link(file, folder / file.name)
    (folder / MANIFEST).unlink()
    (folder / MANIFEST).write_bytes((bundle / MANIFEST).read_bytes())
    return add_table(folder)


def split(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and the data of a safetensors file."""
    begin = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:begin]), content[begin:]


def join(header: object, data: bytes, alignment: int = 8) -> bytes:
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % alignment)
    return len(encoded).to_bytes(8, "little") + encoded + data


def mutate(content: bytes, random: random.Random) -> tuple[str, bytes]:
    """Return the name of a random damage, and the content of a file with it."""
    header, data = split(content)
    name, other = random.choice(list(header)), random.choice(list(header))
    entry = header[name]
    offsets, shape = entry["data_offsets"], entry["shape"]
    kind = random.choice(
        ["offset", "both offsets", "swapped", "shape", "dtype", "entry", "key", "bytes", "length", "cut", "strings"]
    )
    match kind:
        case "offset":
            offsets[random.randrange(2)] = random.choice([*NONSENSE, random.randrange(len(data) + 9)])
        case "both offsets":
            step = random.choice([-64, -8, -1, 1, 8, 64, len(data)])
            entry["data_offsets"] = [place + step for place in offsets]
        case "swapped":
            header[name]["data_offsets"], header[other]["data_offsets"] = header[other]["data_offsets"], offsets
        case "shape":
            changes = [
                [],
                [*shape, 1],
                [1, *shape],
                shape[::-1],
                [-1],
                [-1, -1],
                [*shape, 0],
                [*shape[1:], shape[0] - 1],
            ]
            entry["shape"] = random.choice([*changes, random.choice(NONSENSE), [random.choice(NONSENSE)]])
        case "dtype":
            entry["dtype"] = random.choice([*DTYPES, "F16", "", None, 8])
        case "entry":
            header[name] = random.choice([None, {}, [], header[other], {**entry, "data_offsets": offsets[:1]}])
        case "key":
            header[random.choice([other, f"{name}s", "__metadata__"])] = header.pop(name)
        case "bytes":
            changed = bytearray(content[8 : len(content) - len(data)])
            for _ in range(random.randrange(1, 4)):
                changed[random.randrange(len(changed))] = random.randrange(256)
            return kind, content[:8] + bytes(changed) + data
        case "length":
            length = random.choice([0, 1, 7, len(content), 2**63, 2**64 - 1, random.randrange(len(content))])
            return kind, length.to_bytes(8, "little") + content[8:]
        case "cut":
            size = random.choice([0, 1, 8, random.randrange(len(content))])
            return kind, random.choice([content[:size], content + bytes(size + 1)])
        case "strings":
            name = random.choice([name for name in header if name.endswith("offsets")] or [name])
            if not name.endswith("offsets"):
                return mutate(content, random)  # the file has no strings
            first, last = header[name]["data_offsets"]
            values = np.frombuffer(data[first:last], np.uint8).copy()
            if values.nbytes >= 8:
                numbers = values[: values.nbytes // 8 * 8].view(np.uint64)
                place = random.choice([0, -1, random.randrange(len(numbers))])
                numbers[place] = random.choice(
                    [0, 1, 2**63, 2**64 - 1, random.randrange(len(data)), numbers[place] + 1]
                )
            data = data[:first] + values.tobytes() + data[last:]
    return kind, join(header, data, random.choice([1, 8, 8, 8]))


def damaged(whole: Path, folder: Path, name: str, content: bytes) -> Path:
    """Return a bundle that has this content in a file, as its manifest says."""
    folder.mkdir()
    for file in whole.iterdir():
        os.link(file, folder / file.name)
    (folder / name).unlink()
    (folder / name).write_bytes(content)
    manifest = json.loads((whole / MANIFEST).read_bytes())
    manifest["files"][name]["bytes"] = len(content)
    (folder / MANIFEST).unlink()
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def answers(folder: Path, embedder: Embedder) -> list[dict[str, Any]]:
    """Open a bundle, and return the replies to queries that read all of its files."""
    bundle = load(folder, embedder)
    assert isinstance(bundle, LoadedBundle)
    bundle.open_all()
    view = bundle.view(VIEW)
    asked = [*((bundle, query) for query in QUERIES), *((view, query) for query in QUERIES if query.id is None)]
    return [{**find(each, query).reply()} for each, query in asked]


@pytest.mark.parametrize("seed", range(10))
def test_damaged_headers_offsets_and_lengths_are_refused_as_damage(
    whole: Path, tmp_path: Path, embedder: Embedder, seed: int
) -> None:
    generator, refused, expected = random.Random(seed), 0, answers(whole, embedder)
    for number in range(MUTATIONS):
        name = FILES[number % len(FILES)]
        kind, content = mutate((whole / name).read_bytes(), generator)
        print(number, name, kind)  # pytest shows it if another error is raised
        try:
            found = answers(damaged(whole, tmp_path / str(number), name, content), embedder)
        except (TensorsError, BundleError):
            refused += 1
        else:
            assert found == expected or kind in UNSEEN
    assert refused > MUTATIONS / 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's of numbers that have become infinite
@pytest.mark.parametrize("seed", range(5))
def test_bytes_that_changed_anywhere_are_refused_as_damage_or_change_a_reply(
    whole: Path, tmp_path: Path, embedder: Embedder, seed: int
) -> None:
    generator, refused, expected = random.Random(seed), 0, answers(whole, embedder)
    for number in range(MUTATIONS):
        name = FILES[number % len(FILES)]
        content = bytearray((whole / name).read_bytes())
        for _ in range(generator.choice([1, 4, 16])):
            content[generator.randrange(len(content))] ^= generator.choice([1, 16, 128, generator.randrange(1, 256)])
        print(number, name)  # pytest shows it if another error is raised
        try:
            found = answers(damaged(whole, tmp_path / str(number), name, bytes(content)), embedder)
        except (TensorsError, BundleError):
            refused += 1
        else:
            assert [[*reply] for reply in found] == [[*reply] for reply in expected]
    assert 0 < refused < MUTATIONS


def with_values(whole: Path, folder: Path, name: str, tensor: str, values: AnyArray) -> Path:
    """Return a bundle in which a tensor has other values, of the same dtype and number."""
    header, data = split((whole / name).read_bytes())
    first, last = header[tensor]["data_offsets"]
    assert values.dtype.type is DTYPES[header[tensor]["dtype"]]
    assert values.nbytes == last - first
    return damaged(whole, folder, name, join(header, data[:first] + values.tobytes() + data[last:]))


def tensor_of(whole: Path, name: str, tensor: str) -> AnyArray:
    return map_tensors(whole / name)[tensor].copy()


@pytest.mark.parametrize(
    "query",
    [
        Query("goose", mode="keyword"),
        Query('"goose"', prefix=True),
        Query("gooze"),
        Query("zebra", mode="keyword", correct=False, without=("goose",)),
    ],
)
def test_rows_of_postings_beyond_the_corpus_are_damage_in_each_mode_and_in_a_view(
    whole: Path, tmp_path: Path, embedder: Embedder, query: Query
) -> None:
    rows = np.full_like(tensor_of(whole, KEYWORDS, "rows"), 200)
    bundle = load(with_values(whole, tmp_path / "copy", KEYWORDS, "rows", rows), embedder)
    assert isinstance(bundle, LoadedBundle)
    for each in (bundle, bundle.view(VIEW)):
        with pytest.raises(
            TensorsError, match=r"keywords.safetensors: a posting has a row that is not there \(index 200"
        ):
            find(each, query)


@pytest.mark.parametrize("change", [np.flip, lambda offsets: np.full_like(offsets, offsets[-1] + 1)])
def test_offsets_of_postings_that_do_not_ascend_or_are_beyond_them_are_damage(
    whole: Path, tmp_path: Path, embedder: Embedder, change: Callable[[AnyArray], AnyArray]
) -> None:
    offsets = change(tensor_of(whole, KEYWORDS, "postings.offsets")).copy()
    bundle = load(with_values(whole, tmp_path / "copy", KEYWORDS, "postings.offsets", offsets), embedder)
    with pytest.raises(
        TensorsError, match=r"keywords.safetensors: the postings of term \d+ have the offsets \d+ and \d+"
    ):
        find(bundle, Query("goose", mode="keyword"))


@pytest.mark.parametrize("condition", [None, {"chapter": 3}])  # in ranges, and each value
@pytest.mark.parametrize("date", [2**62, -(2**62), 2**58])
def test_dates_beyond_all_years_are_damage(
    whole: Path, tmp_path: Path, embedder: Embedder, condition: dict[str, Any] | None, date: int
) -> None:
    dates = np.full_like(tensor_of(whole, COLUMNS, "told.values"), date)
    dates[::2] += np.arange(len(dates[::2]))
    bundle = load(with_values(whole, tmp_path / "copy", COLUMNS, "told.values", dates), embedder)
    with pytest.raises(TensorsError, match=r"columns.safetensors: found a date -?\d+ microseconds from 1970"):
        find(bundle, Query(None, filter=condition or {}, facets=("told",)))


@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_numbers_that_are_not_finite_are_damage(number: float) -> None:
    column = Column("number", 200, np.append(np.arange(199.0), number), None, None, None)
    with pytest.raises(TensorsError, match=r"columns.safetensors: found the numbers 0.0 and (inf|nan), expected fin"):
        count_values(column, None)


def test_sections_beyond_the_rows_are_damage(tmp_path: Path) -> None:
    tensors = {"sections": np.array([0, 2], np.uint32), "n.values": np.array([1.0, 2.0])}
    save_tensors(tmp_path / COLUMNS, tensors)
    with pytest.raises(TensorsError, match="the tensor sections has 2, expected less than 2"):
        _ = Columns(tmp_path / COLUMNS, {"n": "number"}, 2).sections


@pytest.mark.parametrize("content", [b"", b"a"])
def test_codes_beyond_the_strings_are_damage(tmp_path: Path, content: bytes) -> None:
    offsets = np.array([0, *range(1, len(content) + 1)], np.uint64)
    tensors: dict[str, AnyArray] = {
        "s.values": np.frombuffer(content, np.uint8),
        "s.offsets": offsets,
        "s.codes": np.array([0, 1], np.uint8),
    }
    save_tensors(tmp_path / COLUMNS, tensors)
    with pytest.raises(TensorsError, match=r"the tensor s.codes has 1, expected less than 1; run `semsearch index`"):
        _ = Columns(tmp_path / COLUMNS, {"s": "string"}, 2)["s"]


def test_a_row_of_another_text_is_not_shown_for_one_whose_offsets_are_reversed(whole: Path, tmp_path: Path) -> None:
    offsets = tensor_of(whole, PASSAGES, "texts.offsets")
    offsets[5], offsets[6] = offsets[6], offsets[5]
    passages = Passages(with_values(whole, tmp_path / "copy", PASSAGES, "texts.offsets", offsets) / PASSAGES)
    assert passages.text(3)
    with pytest.raises(TensorsError, match=r"passages.safetensors: texts: string 5 has the offsets \d+ and \d+"):
        passages.text(5)
    for rows in (range(8), range(4, 6), [3, 5, 7]):
        with pytest.raises(TensorsError, match=r"passages.safetensors: texts: string 5 has the offsets \d+ and \d+"):
            passages.read(np.array(rows))
    with pytest.raises(IndexError):
        passages.read(np.array([3, 10**6]))
