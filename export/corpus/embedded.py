"""The texts that the model and keyword search read: passages of documents, each after the path of its headings.

The path is not stored in a text. If the manifest has `heading_prefix`, the path is made again from the passage's
metadata whenever a text is embedded or compared.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

PREFIX_CHARACTERS = 300  # maximum length of a path; the end of a longer one is kept, so that the text still fits


def heading_prefix(metadata: Mapping[str, Any]) -> str:
    """Return the prefix of a passage: a line with its title and headings, and one with its table's header."""
    path = list(metadata.get("headings", ()))
    if metadata.get("title") and metadata["title"] not in path[:1]:
        path.insert(0, metadata["title"])
    lines = [" > ".join(path)[-PREFIX_CHARACTERS:], metadata.get("table", "")]
    return "".join(f"{line}\n" for line in lines if line)


class EmbeddedTexts(Collection[str]):
    """The texts of passages with their prefixes, made when they are used. metadata is the JSON of each passage."""

    def __init__(self, texts: Sequence[str], metadata: Sequence[str]) -> None:
        self._texts, self._metadata = texts, metadata

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        for text, metadata in zip(self._texts, self._metadata, strict=True):
            yield heading_prefix(json.loads(metadata)) + text

    def __contains__(self, text: object) -> bool:
        return any(text == each for each in self)
