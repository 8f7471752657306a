"""Bundles whose tensors are damaged: they are refused as damaged, when they are opened or where they are read."""

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semsearch.engine.bundle import COLUMNS, INDEX, KEYWORDS, MANIFEST, PASSAGES, QUERY_TABLE, BundleError
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import load
from semsearch.engine.passages import Passages
from semsearch.engine.tensors import DTYPES, TensorsError
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
)
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
    bundle.open_all()
    return [find(bundle, query).reply() for query in QUERIES]


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


def test_a_row_of_another_text_is_not_shown_for_one_whose_offsets_are_reversed(whole: Path, tmp_path: Path) -> None:
    header, data = split((whole / PASSAGES).read_bytes())
    first, last = header["texts.offsets"]["data_offsets"]
    offsets = np.frombuffer(data[first:last], np.uint64).copy()
    offsets[5], offsets[6] = offsets[6], offsets[5]
    content = join(header, data[:first] + offsets.tobytes() + data[last:])
    passages = Passages(damaged(whole, tmp_path / "copy", PASSAGES, content) / PASSAGES)
    assert passages.text(3)
    with pytest.raises(TensorsError, match=r"passages.safetensors: texts: string 5 has the offsets \d+ and \d+"):
        passages.text(5)
