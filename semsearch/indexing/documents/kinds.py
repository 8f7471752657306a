"""What a document is: a changelog, a post, or a page, which is anything else.

The search box prefers pages, because the words of a reference are in its changelog and its announcements too.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

OTHER_PAGE, CHANGELOG, POST = "page", "changelog", "post"

CHANGELOG_NAMES = frozenset(("changelog", "changelogs", "releasenotes", "releasehistory", "whatsnew"))
# These are also names of other pages, such as that of a function: the headings decide.
DOUBTFUL_NAMES = frozenset(("changes", "history", "news", "releases"))
POST_FOLDERS = frozenset(("blog", "_posts", "announce", "announcements"))
SEPARATORS = re.compile(r"[\W_]+")

CHANGELOG_TITLE = re.compile(
    r"(?:full )?(?:change ?log|release (?:notes|history))\b|what[\u2019']?s new\b|(?:release|version) v?\d+\.\d",
    re.IGNORECASE,
)
HEADING_DATE = r"\d{4}-\d{2}-\d{2}|\d{4}/\d{2}/\d{2}|(?:\d{1,2} )?[A-Z][a-z]{2,8}\.?(?: \d{1,2},?)? \d{4}"
VERSION_NUMBER = r"v?\d+\.\d+[\w.+-]*(?<!\.)"
# "1.24.1 - 2024-04-18", "v2.0", "pytest 8.3.0 (2024-07-20)", "[1.0.0]", "2022-12-28 (3.40.1)"; "2.1. Paths" and
# "2.1 Paths" are numbered headings
VERSION_HEADING = re.compile(
    rf"\W*(?:[A-Za-z][\w-]* ){{0,2}}\W*(?:{VERSION_NUMBER}|{HEADING_DATE})(?=$|\]|\s*[-\u2013\u2014(/]|,? released)",
    re.IGNORECASE,
)
FEWEST_VERSIONS = 3  # headings of one level that are versions or dates
LEAST_OF_LEVEL = 0.6  # the share that they have of the headings of their level


def kind_of(path: str, title: str, headings: Iterable[tuple[str, ...]]) -> str:
    """Return what a document is: "changelog", "post" or "page".

    `path` has slashes, and `headings` the headings around each passage, from the highest one down.
    """
    place = PurePosixPath(path)
    folders = [name.casefold() for name in place.parent.parts]
    if POST_FOLDERS.intersection(folders):
        return POST
    names = {SEPARATORS.sub("", name) for name in (*folders, place.stem.casefold())}
    if names & CHANGELOG_NAMES or CHANGELOG_TITLE.match(title):
        return CHANGELOG
    levels = _levels(headings)
    fewest = 1 if names & DOUBTFUL_NAMES else FEWEST_VERSIONS
    if any(_has_versions(level, fewest) for level in levels):
        return CHANGELOG
    return OTHER_PAGE


def _levels(paths: Iterable[tuple[str, ...]]) -> list[Collection[tuple[str, ...]]]:
    """Return the different headings of each level, each with those around it."""
    found = defaultdict[int, set[tuple[str, ...]]](set)
    for path in set(paths):
        for level in range(len(path)):
            found[level].add(path[: level + 1])
    return list(found.values())


def _has_versions(level: Collection[tuple[str, ...]], fewest: int) -> bool:
    number = sum(1 for path in level if VERSION_HEADING.match(path[-1]))
    return number >= max(fewest, LEAST_OF_LEVEL * len(level))
