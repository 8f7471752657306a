"""Which entries of a folder are read: rules of ignore files, packages, build output, underscores, and links.

A search of a folder whose files have not changed uses these rules too, so this module imports nothing of
`semsearch.indexing`.
Left out: git's own list of excluded files, .git/info/exclude, and the one of a user.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

if TYPE_CHECKING:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

DOTTED = "the name begins with a dot"
UNDERSCORED = "the name begins with an underscore"
NAMED_BY_RULE = "a rule of .gitignore or .ignore"
BUILT = "installed packages or build output"
LINKED_OUT = "a link that leads out of the folder"

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
# folders with an underscore from which Sphinx and Jekyll make no pages; Jekyll makes some of `_posts`
NO_PAGES = {
    *("_static", "_sources", "_templates", "_modules", "_downloads", "_images", "_themes", "_ext"),
    *("_layouts", "_includes", "_sass", "_data", "_plugins", "_site", "_drafts"),
}

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
        self.follow_symlinks = follow_symlinks
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
        if not self.follow_symlinks:
            for name in (*folders, *files):
                if name not in found and self._leads_out(f"{place}/{name}"):
                    found[name] = LINKED_OUT
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

    def _leads_out(self, path: str) -> bool:
        """Return whether an entry is a link to a place outside of the folder, also to one that is not there."""
        if not os.path.islink(path):  # noqa: PTH114  a folder can have 100,000 files
            return False
        return not Path(os.path.realpath(path)).is_relative_to(self._real_root)

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


def walk(root: Path, rules: WalkRules) -> Iterable[str]:
    """Yield the paths of the files of a folder that are read.

    Links to folders are followed only if the rules follow those that lead out. A folder with several paths is then
    entered once.
    """
    entered = {os.path.realpath(root)}
    for folder, folders, files in os.walk(root, followlinks=rules.follow_symlinks):
        reasons: Mapping[str, str] = rules.reasons(folder, folders, files)
        folders[:] = [name for name in folders if name not in reasons]
        if rules.follow_symlinks:
            places = {os.path.realpath(f"{folder}/{name}"): name for name in folders}
            folders[:] = [name for place, name in places.items() if place not in entered]
            entered |= places.keys()
        for name in files:
            if name not in reasons:
                yield f"{folder}/{name}"
