"""Which entries of a folder are read: rules of ignore files, packages, build output, underscores, and links.

A search of a folder whose files have not changed uses these rules too, so this module imports no other one of
`semsearch.indexing`.
Left out: git's own list of excluded files, .git/info/exclude, and the one of a user.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

from semsearch.engine.bundle import MANIFEST, is_bundle

if TYPE_CHECKING:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

DOTTED = "the name begins with a dot"
UNDERSCORED = "the name begins with an underscore"
NAMED_BY_RULE = "a rule of .gitignore or .ignore"
BUILT = "installed packages or build output"
LINKED_OUT = "a link that leads out of the folder"
REPEATED = "a link leads to what is read already"
SPECIAL = "neither a file nor a folder"
BUNDLE = "a bundle"
STATIC_SITE = "a site that searches in the browser"

IGNORE_FILES = (".gitignore", ".ignore")  # in this order: a later rule wins
ANY_NAME = "\ue000"  # a name that only a rule about every name matches
INSTALLED = frozenset(["node_modules", "bower_components", "__pycache__", "site-packages", "_build"])
VIRTUAL_ENVIRONMENT = "pyvenv.cfg"  # a file that marks a folder as a virtual environment
# A folder of one of these names is build output beside one of these files. `docs/build/` alone can be a chapter.
BUILT_BESIDE = {
    **dict.fromkeys(
        ("build", "dist"),
        ("package.json", "pyproject.toml", "setup.py", "build.gradle", "CMakeLists.txt", "conf.py", "Makefile"),
    ),
    "target": ("Cargo.toml", "pom.xml"),
    "site": ("mkdocs.yml",),
    "public": ("hugo.toml", "hugo.yaml", "config.toml", "gatsby-config.js"),
    "_site": ("_config.yml",),
}
DOCUSAURUS_CONFIG = ("docusaurus.config.js", "docusaurus.config.ts", "docusaurus.config.mjs", "docusaurus.config.cjs")
MKDOCS_CONFIG = ("mkdocs.yml", "mkdocs.yaml")
SPHINX_CONFIG = "conf.py"
# folders with an underscore from which Sphinx and Jekyll make no pages; Jekyll makes some of `_posts`
NO_PAGES = {
    *("_static", "_sources", "_templates", "_modules", "_downloads", "_images", "_themes", "_ext"),
    *("_layouts", "_includes", "_sass", "_data", "_plugins", "_site", "_drafts"),
}

SITE = ("code", "data", "service-worker.js")  # what `semsearch site` writes

OnSkip = Callable[[str, str], object]
OnError = Callable[[str, OSError], object]
Rules = tuple[str, list["GitIgnoreSpecPattern"]]  # a folder, and the rules for what is below it


class WalkRules:
    """Why entries of a folder and of the folders below it are not read.

    A built site, which has an index.html, is read whole: the rules of a project leave out what it builds.
    """

    def __init__(
        self,
        root: Path,
        *,
        ignore: bool = True,
        has_pages: bool = True,
        drafts: bool = False,
        follow_symlinks: bool = False,
    ) -> None:
        """Take the folder that was named. With ignore=False, only names count.

        has_pages: whether the folder has documents. The names of some begin with an underscore.
        drafts: whether the folder `_drafts` of Jekyll is read.
        follow_symlinks: whether links are followed that lead out of the folder.
        """
        self._follow_symlinks = follow_symlinks
        self._root = os.path.abspath(root)  # noqa: PTH100  `resolve` would follow links
        self._ignore = ignore and not (root / "index.html").is_file()
        self._has_pages = has_pages
        self._no_pages = NO_PAGES - {"_drafts"} if drafts else NO_PAGES
        self._rules: dict[str, list[Rules]] = {}

    def reasons(self, folder: str, folders: Sequence[str], files: Sequence[str]) -> dict[str, str]:
        """Return why some of the entries of a folder are not read, by their names. Call it from the top down."""
        place = os.path.abspath(folder)  # noqa: PTH100
        found = {}
        for name in (*folders, *files):
            if name.startswith("."):
                found[name] = DOTTED
            elif name.startswith("_") and self._is_skipped(name):
                found[name] = UNDERSCORED
        if self._ignore:
            self._add_ignored(found, place, folders, files)
        return found

    def _add_ignored(self, found: dict[str, str], place: str, folders: Sequence[str], files: Sequence[str]) -> None:
        """Add the entries that are build output, and those that a rule leaves out, to the reasons that were found."""
        rules = self._rules_of(place, files)
        entries = {*folders, *files}
        for name in folders:
            if _is_built(f"{place}/{name}", name, entries):
                found.setdefault(name, BUILT)
            elif _is_ignored(f"{place}/{name}/", rules):
                found.setdefault(name, NAMED_BY_RULE)
        for name in files:
            if name not in found and _is_ignored(f"{place}/{name}", rules):
                found[name] = NAMED_BY_RULE

    def leads_out(self, link: str) -> bool:
        """Return whether a link that is not followed leads out of the folder, also to a place that is not there."""
        return not self._follow_symlinks and not Path(os.path.realpath(link)).is_relative_to(self._real_root)

    @cached_property
    def _real_root(self) -> str:
        return os.path.realpath(self._root)

    def _is_skipped(self, name: str) -> bool:
        """Return whether no page is made of an entry whose name begins with an underscore."""
        return not self._has_pages or name in self._no_pages or self._is_docusaurus

    @cached_property
    def _is_docusaurus(self) -> bool:
        return find_above(Path(self._root), DOCUSAURUS_CONFIG) is not None

    def _rules_of(self, folder: str, files: Iterable[str]) -> list[Rules]:
        """Return the rules for the entries of a folder, those of the folders around it first."""
        above = self._rules.get(os.path.dirname(folder))  # noqa: PTH120
        if folder == self._root or above is None:
            above = self._rules_above
        own = _read_rules(folder, files)
        self._rules[folder] = [*above, (folder, own)] if own else above
        return self._rules[folder]

    @cached_property
    def _rules_above(self) -> list[Rules]:
        """The rules of the folders above the named one, up to the repository's root.

        Rules that match the named folder are dropped, because the user named it.
        """
        above = list(Path(self._root).parents)
        repository = next((folder for folder in above if (folder / ".git").exists()), None)
        if repository is None or (Path(self._root) / ".git").exists():
            return []
        found: list[Rules] = []
        for folder in reversed(above[: above.index(repository) + 1]):
            inside = f"{os.path.relpath(self._root, folder)}/{ANY_NAME}"
            kept = [rule for rule in _read_rules(str(folder), IGNORE_FILES) if rule.match_file(inside) is None]
            found.append((str(folder), kept))
        return found


def find_above(folder: Path, names: Sequence[str]) -> Path | None:
    """Return the folder itself, or the nearest one above it, that has a file of one of these names."""
    whole = folder.resolve()
    for place in (whole, *whole.parents):
        if any((place / name).is_file() for name in names):
            return place
        if (place / ".git").exists():
            return None
    return None


def has_files(folder: Path) -> bool:
    """Return whether there is a file in a folder or below it. Those whose names begin with a dot do not count."""
    return any(not name.startswith(".") for _, _, names in os.walk(folder) for name in names)


def as_text(name: str) -> str:
    r"""Return the name of a file as valid Unicode: a byte that is not UTF-8 is written as \xe9, as Python does.

    It is in NFC, the form that people type and Git uses. A disk of macOS can return it in NFD.
    """
    if name.isascii():
        return name
    return normalize("NFC", os.fsencode(name).decode(errors="backslashreplace"))


def _read_rules(folder: str, files: Iterable[str]) -> "list[GitIgnoreSpecPattern]":
    lines: list[str] = []
    for name in sorted(set(IGNORE_FILES).intersection(files), key=IGNORE_FILES.index):
        path = Path(folder, name)
        if path.is_file():
            text = path.read_text(encoding="utf-8-sig", errors="surrogateescape")
            lines += normalize("NFC", text).split("\n")
    if not lines:
        return []
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # most folders have no rules

    rules = []
    for line in lines:
        if line.rstrip() in ("*/", "!*/"):  # pathspec finds only the first slash of a path for these
            line = line.replace("*/", "?*/")
        try:
            rule = GitIgnoreSpecPattern(line)
        except (ValueError, re.error):  # a line that Git ignores too, such as a backslash
            continue
        if rule.include is not None:  # neither a comment nor an empty line
            rules.append(rule)
    return rules


def _is_ignored(path: str, rules: Sequence[Rules]) -> bool:
    """Return whether the last rule about a path leaves it out, as in Git. The path of a folder ends in a slash.

    Names and rules are compared in NFC, as Git does on macOS, whose disks can return a name in NFD.
    A rule that ends in a slash decides about the folder alone. What is below an ignored folder is never checked,
    because the folder is not entered.
    """
    for folder, own in reversed(rules):
        name = normalize("NFC", path[len(folder) :].lstrip("/"))
        for rule in reversed(own):
            found = rule.match_file(name)
            if found is None:
                continue
            of_folder = found.match.groupdict().get("ps_d")  # the slash after a folder, of a rule about one
            if of_folder is None or found.match.end("ps_d") == len(name):
                return bool(rule.include)
    return False


def _is_built(folder: str, name: str, entries: set[str]) -> bool:
    if name in INSTALLED or Path(folder, VIRTUAL_ENVIRONMENT).is_file():
        return True
    return not entries.isdisjoint(BUILT_BESIDE.get(name, ()))


def walk(
    root: Path, rules: WalkRules, *, skip: OnSkip = lambda reason, path: None, fail: OnError = lambda path, error: None
) -> Iterator[str]:
    """Yield the paths of the files of a folder that are read, and tell `skip` and `fail` of the other entries.

    Links are followed, those that lead out of the folder only if the rules say so. A file or folder with several paths
    is read once, under the path without a link if there is one, so a link to a folder above it is no endless loop.
    skip: takes the reason and the path of an entry that is not read.
    fail: takes the path and the error of a folder that cannot be read, or of a link that leads nowhere.
    """
    waiting = [(str(root), os.path.realpath(root))]  # folders, and where they are
    links = deque[str]()  # they come last: each file is read under its own path
    seen = set[str]()
    while waiting or links:
        path, real = waiting.pop() if waiting else (links.popleft(), "")
        try:
            real = real or os.path.realpath(path, strict=True)
            is_folder = os.path.isdir(real)  # noqa: PTH112  a folder can have 100,000 files
            entries = _entries(path) if is_folder else []
        except OSError as error:
            fail(path, error)
            continue
        names = {entry.name for entry in entries}
        if real in seen:
            skip(REPEATED, path)
        elif MANIFEST in names and is_bundle(Path(path)):
            skip(BUNDLE, path)
        elif path != str(root) and names.issuperset(SITE):
            skip(STATIC_SITE, path)
        elif is_folder:
            folders = {entry.name for entry in entries if _is_folder(entry)}
            reasons = rules.reasons(path, sorted(folders), sorted(names - folders))
            for entry in entries:
                name, place = entry.name, f"{real}/{entry.name}"
                if name in reasons:
                    skip(reasons[name], entry.path)
                elif entry.is_symlink():
                    if rules.leads_out(entry.path):
                        skip(LINKED_OUT, entry.path)
                    else:
                        links.append(entry.path)
                elif name in folders:
                    waiting.append((entry.path, place))
                elif place in seen:
                    skip(REPEATED, entry.path)
                elif entry.is_file():
                    seen.add(place)
                    yield entry.path
                else:
                    skip(SPECIAL, entry.path)
        elif os.path.isfile(real):  # noqa: PTH113
            yield path
        else:
            skip(SPECIAL, path)
        seen.add(real)


def _entries(folder: str) -> "list[os.DirEntry[str]]":
    with os.scandir(folder) as found:
        return sorted(found, key=lambda entry: entry.name)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    """Return whether an entry is a folder, or a link to one. A link that leads nowhere is none."""
    return os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()  # noqa: PTH112
