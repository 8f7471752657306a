"""What was counted, left out and replaced while texts were read: `semsearch index` prints it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Skipped:
    """Entries of a folder that were skipped for one reason: their number, and one path relative to the folder."""

    reason: str
    count: int
    example: str

    def __str__(self) -> str:
        return f"{self.count:,} skipped: {self.reason}, such as {self.example}"


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What was counted while a table, documents or rows in memory were read."""

    files: int = 1
    skipped: tuple[Skipped, ...] = ()  # entries of the folder, if a folder was read
    # a table
    empty_texts: int = 0  # rows skipped because their text was empty, blank or null
    blank_ids: int = 0  # passages whose row number is their id, although the file has a column of ids
    non_finite: int = 0  # values that are NaN or infinite, which JSON cannot hold
    split_texts: int = 0  # texts that are more than one passage
    unkept: tuple[str, ...] = ()  # columns whose values a bundle cannot keep, such as bytes
    warnings: tuple[str, ...] = ()  # what the owner of rows in memory may expect otherwise
    # documents
    documents: Mapping[str, int] = field(default_factory=dict)  # number of documents of each format
    other_suffixes: Mapping[str, int] = field(default_factory=dict)  # number of skipped files by suffix, "" for none
    unreadable: tuple[str, ...] = ()  # documents that were not read, each with its path and the reason
    # those of the unreadable ones whose passages in the older index stay, or that the system refused to read
    outdated: tuple[str, ...] = ()
    # paths of documents and folders that the system refused to read, or that were written meanwhile
    refused: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()  # documents of which a part was left out, each with its path and the reason
    running_lines: int = 0  # lines of PDFs that were left out because they repeat at the edges of pages
    of_site: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # values of `language` and `version` in a site
