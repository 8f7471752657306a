"""Divide texts into passages of at most some tokens of the model: at blocks, then sentences, then words."""

import re
from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer

from export.documents.document import Block, trimmed
from export.documents.plain import paragraphs
from function.engine.bundle import ModelInfo

PASSAGE_TOKENS = 200
MOST_CHARACTERS = 32  # characters of a token, at most; a text with more is divided without counting its tokens
AT_ONCE = 100_000  # characters that are divided into sentences at a time
WORD = re.compile(r"\S+")

Piece = tuple[int, int, int, str]  # start, end, tokens, table header
Range = tuple[int, int, str]  # start, end, table header


class Splitter:
    """The tokenizer of a model, and the number of tokens of a passage."""

    def __init__(self, tokenizer: Tokenizer, model: ModelInfo, passage_tokens: int, overlap: int) -> None:
        """Take the tokenizer of a bundle. Of passage_tokens, `overlap` repeat the end of the passage before."""
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._room = model.max_tokens - tokenizer.num_special_tokens_to_add(False)
        self._room -= self.count(model.prompts.get("document", ""))
        self.passage_tokens = passage_tokens
        self._overlap = overlap

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def fits(self, text: str, start: int, end: int, tokens: int) -> bool:
        """Return whether a piece of a text has at most this number of tokens."""
        return end - start <= tokens * MOST_CHARACTERS and self.count(text[start:end]) <= tokens

    def divide(self, text: str, blocks: Iterable[Block], prefix: str) -> Iterator[Range]:
        """Yield the ranges of the passages of one section: blocks together as long as they fit with the prefix.

        A prefix that leaves no room gets half of what the model reads; its texts are then truncated.
        """
        room = min(self.passage_tokens, max(self._room - self.count(prefix), self._room // 2, 1))
        budget = max(room - self._overlap, 1)
        begin = start = end = used = 0
        header = ""
        for first, last, tokens, table in self._pieces(text, blocks, budget):
            if end and used + tokens > budget:
                yield self._overlapping(text, begin, start), end, header
                start, header, used = first, table, self.count(table)
            elif not end:
                begin = start = first
            end, used = last, used + tokens
        if end:
            yield self._overlapping(text, begin, start), end, header

    def split(self, text: str) -> list[tuple[int, int]]:
        """Return the ranges of the passages of a text without headings."""
        return [(start, end) for start, end, _ in self.divide(text, paragraphs(text), "")]

    def _pieces(self, text: str, blocks: Iterable[Block], budget: int, header: str = "") -> Iterator[Piece]:
        """Yield the blocks, and the parts of those that are too long."""
        import semchunk

        for place, block in enumerate(blocks):
            own = header if place else ""
            if self.fits(text, block.start, block.end, budget):
                yield block.start, block.end, self.count(text[block.start : block.end]), own
            elif block.parts:
                room = max(budget - self.count(block.header), budget // 2, 1)
                yield from self._pieces(text, block.parts, room, block.header)
            else:
                begin = block.start
                while begin < block.end:
                    end = min(begin + AT_ONCE, block.end)
                    if end < block.end:  # at a blank, if there is one
                        end = max(text.rfind(blank, begin + AT_ONCE // 2, end) for blank in "\n ") + 1 or end
                    _, ranges = semchunk.chunk(text[begin:end], budget, self.count, memoize=False, offsets=True)
                    for first, last in ranges:
                        for piece in trimmed(text, begin + first, begin + last):
                            yield piece.start, piece.end, self.count(text[piece.start : piece.end]), own
                    begin = end

    def _overlapping(self, text: str, begin: int, start: int) -> int:
        """Return where a passage begins that repeats the last words before `start`, in a section from `begin` on."""
        found = start
        least = max(begin, start - self._overlap * MOST_CHARACTERS)
        for word in reversed(list(WORD.finditer(text, least, start))):
            if self.count(text[word.start() : start]) > self._overlap:
                break
            found = word.start()
        return found
