"""The places that commands search: a bundle, or folders of documents, whose index is kept in the user's cache.

The index of folders is updated when a file in them has changed. To find that out, the size and the time of each file
are kept beside the index, so that a search of unchanged documents imports nothing that makes an index.
"""

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from semsearch.commands.options import NONE_STATED, FolderOptions, lines_by_name
from semsearch.commands.terminal import visible
from semsearch.engine.bundle import FORMAT_VERSION, find_corpus, is_bundle
from semsearch.engine.errors import ExpectedError
from semsearch.indexing.cache import cache_folder
from semsearch.indexing.file_choice import files_of_index
from semsearch.indexing.folder_names import name_folders
from semsearch.indexing.walking import as_text, has_files

if TYPE_CHECKING:
    from semsearch.indexing.make import IndexSummary
    from semsearch.indexing.progress import OnProgress

LONGEST_KEPT_NAME = 60  # characters of the folders' names in that of a kept index
MOST_SUFFIXES = 10  # maximum number of suffixes that are displayed

# By path: bytes, and nanoseconds of the last change. A path in a folder is that of `Reading.name_in_index`.
FileStates = dict[str, list[int]]


class PlaceError(ExpectedError, ValueError):
    """A place that a command cannot search."""


@dataclass(frozen=True, slots=True)
class FolderIndex:
    """The index of a document, of a folder of documents, or of several folders."""

    folders: Mapping[str, Path]  # several folders by their names, or one path, or that of a document, named ""
    bundle: Path
    options: FolderOptions = NONE_STATED

    @classmethod
    def kept(cls, places: Sequence[Path], options: FolderOptions = NONE_STATED) -> Self:
        """Return the index of documents that is kept in the cache.

        Raises CorpusError for folders of which one is in another.
        """
        folders = folders_at(places)
        return cls(folders, kept_index(*folders.values(), options=options), options)

    @property
    def is_kept(self) -> bool:
        """Whether it is a kept index, beside which the states of its files are written."""
        return self.bundle.parent == _kept_indexes()

    @property
    def title(self) -> str:
        """What messages call its documents."""
        return ", ".join(map(str, self.folders.values()))

    def states(self) -> FileStates:
        """Return the size in bytes, and the time of the last change in nanoseconds, of each file of the index.

        The files are those that an update reads. Options that it does not get from here are recorded in the bundle. The
        files of a missing folder count as they were: see `missing`.
        """
        info = find_corpus(self.bundle)  # an update reports what is wrong with a bundle
        options: dict[str, Any] = {}
        if info is not None:
            options |= info.options
        if info is None or self.is_kept:
            options |= {"exclude": self.options.exclude, "include": self.options.include}
        found: FileStates = {}
        for name, path in self.folders.items():
            before = f"{name}/" if name else ""
            if name and not has_files(path):
                found |= {file: state for file, state in self._states_before().items() if file.startswith(before)}
                continue
            folder = f"{path if path.is_dir() else path.parent}/"
            for file in files_of_index(path, options, name):
                with suppress(OSError):  # it is not there, or in a folder that cannot be read
                    status = os.stat(file)  # noqa: PTH116  a folder can have 100,000 files
                    found[before + file.removeprefix(folder)] = [status.st_size, status.st_mtime_ns]
        return found

    def known_states(self) -> FileStates | None:
        """Return the states of the files that a kept index was made of, None if it is not made, or has other options.

        It is None too for an index that has no such record.
        """
        info = find_corpus(self.bundle)
        if not self.is_kept or info is None or info.options.get("describe", {}) != self._describe:
            return None
        return self._states_before() or None

    def missing(self) -> str:
        """Say which of several folders are missing or empty although the index has texts of them, "" if none is.

        The texts stay: the disk of such a folder can be one that is not mounted.
        """
        known = self._states_before() if "" not in self.folders else {}
        names = [
            name
            for name, path in self.folders.items()
            if not has_files(path) and any(file.startswith(f"{name}/") for file in known)
        ]
        if not names:
            return ""
        return f"{as_text(', '.join(names))}: missing or empty; the older texts are searched"

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Lock a kept index and the states beside it in the block. For other bundles do nothing: `index` locks them.

        Raises BusyError if another process updates the index.
        """
        if not self.is_kept:
            yield
            return
        from semsearch.indexing.replacing import locking  # a search of unchanged documents does not need it

        self.bundle.parent.mkdir(parents=True, exist_ok=True)
        with locking(self.bundle.with_name(f"{self.bundle.name}.lock"), self.bundle):
            yield

    def update(self, found: FileStates, on_progress: "OnProgress") -> "IndexSummary":
        """Make or update the index; found has the states of its files before.

        A new index has the addresses of the files, and it or a kept one has the options of this object; any other one
        has its own. Beside a kept index, the states are written, except of documents that the system refused to read or
        that were written meanwhile: the next search tries again.
        Raises what `index` raises, such as BusyError if another process writes into the bundle.
        """
        from semsearch.indexing.make import index  # a search of unchanged documents does not need it

        options: dict[str, Any] = {"progress": on_progress}
        if is_bundle(self.bundle):
            options["mode"] = "replace"
        else:
            options["base_url"] = "file:"
        if self.is_kept or not is_bundle(self.bundle):
            own = self.options
            options |= {"exclude": own.exclude, "include": own.include, "describe": self._describe}
        made = index(list(self.folders.values()), self.bundle, **options)
        if self.is_kept:
            read = {file: state for file, state in found.items() if as_text(file) not in made.report.refused}
            self._states_file.write_text(json.dumps(read), encoding="utf-8")
        return made

    @property
    def _describe(self) -> dict[str, str]:
        return lines_by_name(self.options.describe)

    def _states_before(self) -> FileStates:
        try:
            found: FileStates = json.loads(self._states_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found

    @property
    def _states_file(self) -> Path:
        return self.bundle.with_name(f"{self.bundle.name}.files.json")


def folders_at(places: Sequence[Path]) -> dict[str, Path]:
    """Return the folders of `FolderIndex`. Raises CorpusError for folders of which one is in another."""
    return {"": places[0]} if len(places) == 1 else name_folders(places)


def kept_index(*places: Path, options: FolderOptions = NONE_STATED) -> Path:
    """Return the folder in the cache for the index of folders of documents without those that patterns leave out.

    Commands with other patterns use another index, so none of them finds what its own patterns leave out.
    """
    whole = sorted(place.resolve() for place in places)
    # Two NULs begin a pattern of `include`, which differs so from the same one of `exclude`, and three another folder.
    included = (f"\0\0{pattern}" for pattern in sorted({*options.include}))
    others = (f"\0\0\0{folder}" for folder in whole[1:])
    words = (str(whole[0]), *sorted({*options.exclude}), *included, *others)
    named = b"\0".join(map(os.fsencode, words))
    name = "-".join(folder.name for folder in whole)[:LONGEST_KEPT_NAME]
    return _kept_indexes() / f"{name}-{sha256(named).hexdigest()[:12]}-{FORMAT_VERSION}"


def _kept_indexes() -> Path:
    return cache_folder() / "indexes"


def bundle_at(place: str | Path, options: FolderOptions = NONE_STATED, *, can_be_older: bool = False) -> Path:
    """Return the folder of the bundle for a place: the place itself, or the kept index of the documents there.

    The index is made or updated first if files have changed, which is said on standard error. If another process does
    so, wait for it. With can_be_older, wait only if there is no index yet.
    Raises PlaceError for an address, OptionError for options of folders and a bundle, and what `index` raises.
    """
    if "://" in str(place):
        raise PlaceError(f"{place}: found an address, expected a folder; `semsearch serve {place}` serves it")
    path = Path(place)
    refuse_for_bundle([path], options)
    if is_bundle(path) or not path.exists():
        return path  # opening it reports what is missing
    index = FolderIndex.kept([path], options)
    if index.states() != index.known_states():
        _update_showing_progress(index, can_be_older=can_be_older)
    return index.bundle


def refuse_for_bundle(places: Sequence[Path], options: FolderOptions, *, watch: bool = False) -> None:
    """Raise PlaceError or OptionError if a place is a bundle, and an option or another place is for folders."""
    for place in filter(is_bundle, places):
        if watch or len(places) > 1:
            raise PlaceError(f"{place}: found a bundle, expected a folder of documents; check the path")
        options.refuse(f"the bundle {place}")


def count_changes(found: FileStates, known: FileStates | None) -> int:
    """Return how many files are new, changed or gone."""
    known = known or {}
    return sum(known.get(file) != state for file, state in found.items()) + len(known.keys() - found)


def _describe_change(found: FileStates, known: FileStates | None) -> str:
    if known is None:
        return "making the index, which is kept for the next time"
    gone = len(known.keys() - found)
    return f"{count_changes(found, known) - gone} files are new or have changed, {gone} are gone; updating the index"


def _update_showing_progress(index: FolderIndex, *, can_be_older: bool) -> None:
    from semsearch.commands.console import TerminalConsole  # a search of unchanged documents does not need these
    from semsearch.indexing.progress import WaitingProgress, showing_progress
    from semsearch.indexing.replacing import BusyError, when_free

    def tell(message: str) -> None:
        sys.stderr.write(f"{visible(index.title)}: {message}\n")

    with showing_progress(TerminalConsole(stderr=True)) as on_progress:
        waiting = WaitingProgress(on_progress)

        def make() -> "IndexSummary | None":
            try:
                with index.updating():
                    found, known = index.states(), index.known_states()
                    waiting.end()
                    if found == known:  # the other process has updated it
                        return None
                    tell(_describe_change(found, known))
                    return index.update(found, on_progress)
            except BusyError:
                if can_be_older and is_bundle(index.bundle):
                    tell("another process updates the index; searching the older one")
                    return None
                raise

        def wait() -> None:
            if not waiting.is_waiting:
                tell("another process makes the index; waiting for it")
            waiting.wait()

        is_new = index.known_states() is None
        made = when_free(make, math.inf, wait)
    if made is not None:
        for outdated in made.report.outdated:
            tell(f"not read: {visible(outdated)}")
        if is_new and made.report.other_suffixes:
            tell(_describe_others(made.report.other_suffixes))


def _describe_others(suffixes: Mapping[str, int]) -> str:
    """Say which files were not read because of their suffix, without their names."""
    shown = [f"{count:,} {suffix or 'without a suffix'}" for suffix, count in islice(suffixes.items(), MOST_SUFFIXES)]
    if len(suffixes) > MOST_SUFFIXES:
        shown.append("others")
    counts = visible(", ".join(shown))
    return f"{sum(suffixes.values()):,} files are not read ({counts}); --include '*.SUFFIX' reads those that are text"
