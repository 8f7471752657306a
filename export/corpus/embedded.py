"""The texts that the model and keyword search read: passages of documents, each after the path of its headings.

The path is not stored in a text. It is made again from the passage's metadata wherever a text is embedded or compared,
if the manifest says `heading_prefix`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

PREFIX_CHARACTERS = 300  # of a longer path the end is kept, so that the text itself is not cut off


def heading_prefix(metadata: Mapping[str, Any]) -> str:
    """Return the line that is embedded before a passage: its title, headings and table header; "" without any."""
    path = list(metadata.get("headings", ()))
    if metadata.get("title") and metadata["title"] not in path[:1]:
        path.insert(0, metadata["title"])
    lines = [" > ".join(path)[-PREFIX_CHARACTERS:], metadata.get("table", "")]
    return "".join(f"{line}\n" for line in lines if line)


class EmbeddedTexts(Sequence[str]):
    """The texts of passages with their prefixes, made when they are used."""

    def __init__(self, texts: Sequence[str], metadata: Sequence[str]) -> None:
        """Take the texts and the JSON of the metadata, one entry for each passage."""
        self._texts, self._metadata = texts, metadata

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, rows: int) -> str: ...
    @overload
    def __getitem__(self, rows: slice) -> list[str]: ...
    def __getitem__(self, rows: int | slice) -> str | list[str]:
        if isinstance(rows, int):
            return heading_prefix(json.loads(self._metadata[rows])) + self._texts[rows]
        return [
            heading_prefix(json.loads(metadata)) + text
            for text, metadata in zip(self._texts[rows], self._metadata[rows], strict=True)
        ]

    def __iter__(self) -> Iterator[str]:
        for text, metadata in zip(self._texts, self._metadata, strict=True):
            yield heading_prefix(json.loads(metadata)) + text


def embedded_texts(texts: Sequence[str], metadata: Sequence[str], with_headings: bool) -> Sequence[str]:
    """Return the texts as they are embedded: with the prefixes of their metadata, or as they are."""
    return EmbeddedTexts(texts, metadata) if with_headings else texts
