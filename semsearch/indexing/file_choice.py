"""Which files of a folder an index is made of, by their names, and which others change what is read of them.

A search of a folder whose files have not changed uses these rules too, so this module imports none of the readers.
Left out: partials of MDX outside of the folder, since only their importers name them.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from semsearch.indexing.walking import (
    DOCUSAURUS_CONFIG,
    MKDOCS_CONFIG,
    SPHINX_CONFIG,
    UNDERSCORED,
    WalkRules,
    as_text,
    find_above,
    walk,
)

FORMATS = {  # the format of a document, by its suffix
    ".md": "Markdown",
    ".markdown": "Markdown",
    ".mdx": "MDX",
    ".rst": "reStructuredText",
    ".ipynb": "notebook",
    ".html": "HTML",
    ".htm": "HTML",
    ".pdf": "PDF",
    ".docx": "DOCX",
    ".txt": "plain text",
}
LISTED_SUFFIXES = 8  # maximum number of suffixes that a manifest lists
OTHER_SUFFIXES = "others"  # what a manifest calls all suffixes that it does not list
PLAIN_SUFFIX = re.compile(r"(\.[a-z0-9]{1,10})?")  # a suffix that a manifest can list, or none
OTHER_TEXT = "other text"  # the format of a file that only a pattern of the option `include` names
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
PARTIAL_SUFFIXES = (".md", ".mdx")  # suffixes of files that MDX imports
SITE_VERSIONS = "versions.json"  # lists the versions of a Docusaurus site, or of a folder of mike
# pages of a built site (one with an index.html) that are no content: its search, its error page, indexes and licences
EXCLUDED_OF_SITE = (
    "404.html",
    "search.html",
    "search/index.html",
    "genindex.html",
    "py-modindex.html",
    "*LICENSE*.txt",
)


def suffix_of(file: str | Path) -> str:
    """Return the suffix of a file as FORMATS has it."""
    return os.path.splitext(file)[1].lower()  # noqa: PTH122  a folder can have 100,000 files


def listed_suffixes(counts: Counter[str]) -> dict[str, int]:
    """Return how many files have each suffix as a manifest states it: the most frequent suffixes, then OTHER_SUFFIXES.

    Language models read it in the description of a tool. So no name of a file is stated, nor a suffix that could be a
    sentence: those that do not match PLAIN_SUFFIX are counted among the others.
    """
    plain = [each for each in counts.most_common() if PLAIN_SUFFIX.fullmatch(each[0])]
    listed = dict(plain[:LISTED_SUFFIXES])
    others = counts.total() - sum(listed.values())
    return listed | ({OTHER_SUFFIXES: others} if others else {})


def is_table(file: str | Path) -> bool:
    """Return whether a file is a table, by its suffix."""
    return suffix_of(str(file).lower().removesuffix(".gz")) in TABLES


def excluded_patterns(exclude: Sequence[str], folder: Path, files: Collection[str]) -> list[str]:
    """Return the patterns of paths that are left out: those of the option `exclude`, and those of a built site.

    files are those of the folder, as `walk` yields them.
    """
    patterns = [*map(as_text, exclude)]
    if os.path.join(folder, "index.html") in files:  # noqa: PTH118  as the system's own paths
        patterns += EXCLUDED_OF_SITE
    return patterns


def format_of(name: str, include: Sequence[str]) -> str:
    """Return the format of the document at a path in the folder, "" if it is none.

    A suffix of FORMATS decides before the patterns of the option `include`.
    """
    known = FORMATS.get(suffix_of(name), "")
    if not known and include and matches(as_text(name), [*map(as_text, include)]):
        return OTHER_TEXT
    return known


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a path in the folder, as `as_text` returns it, ends in one of the patterns."""
    return any(fnmatchcase(f"/{name}", f"*/{pattern}") for pattern in patterns)


def files_of_index(path: Path, options: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """Yield the paths of the files that decide what an index of a document or a folder has.

    These are the documents, the files in which their site states its versions or Sphinx its suffixes, and the partials
    that they can import.
    In a folder without a document, they are the tables. Not each of these files is there.
    options are those that the index records, and name is that of the folder if the index is made of several.
    """
    folder = path if path.is_dir() else path.parent
    site = find_above(folder, DOCUSAURUS_CONFIG)
    of_site = [str(folder / SITE_VERSIONS)]
    if site is not None:
        of_site += (str(site / name) for name in (SITE_VERSIONS, *DOCUSAURUS_CONFIG))
    of_sphinx = find_above(folder, (SPHINX_CONFIG,))
    if of_sphinx is not None:
        of_site.append(str(of_sphinx / SPHINX_CONFIG))
    of_mkdocs = find_above(folder, MKDOCS_CONFIG)
    if of_mkdocs is not None:
        of_site += (str(of_mkdocs / name) for name in MKDOCS_CONFIG)
    if folder != path:
        yield from (str(path), *of_site)
        return
    rules = WalkRules(
        path,
        ignore=options.get("ignore", True),
        drafts=options.get("drafts", False),
        follow_symlinks=options.get("follow_symlinks", False),
    )
    underscored: list[str] = []

    def skip(reason: str, skipped: str) -> None:
        if reason == UNDERSCORED:
            underscored.append(skipped)

    files = list(walk(path, rules, skip=skip))
    patterns = excluded_patterns(options.get("exclude", ()), path, files)
    suffixes = tuple(FORMATS)  # for a folder of 100,000 files, faster than `suffix_of`
    begin, include = len(str(path)) + 1, options.get("include", ())
    before = f"{name}/" if name else ""
    documents = [
        file
        for file in files
        if file.lower().endswith(suffixes) or (include and format_of(before + file[begin:], include))
    ]
    if patterns:
        documents = [file for file in documents if not matches(as_text(before + file[begin:]), patterns)]
    if not documents:
        yield from filter(is_table, files)
        return
    yield from documents
    yield from of_site
    yield from (file for file in files if file.endswith(f"/{SPHINX_CONFIG}") and file not in of_site)
    if site is not None or any(file.lower().endswith(".mdx") for file in documents):
        yield from _partials(underscored)


def _partials(entries: Sequence[str]) -> Iterator[str]:
    """Yield the files that MDX can import: entries of a folder, and those in them."""
    for entry in entries:
        for folder, _, names in [("", (), (entry,)), *os.walk(entry)]:
            yield from (f"{folder}/{name}" if folder else name for name in names if suffix_of(name) in PARTIAL_SUFFIXES)
