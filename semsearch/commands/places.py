"""The places that commands search: a bundle, or a folder of documents, whose index is kept in the user's cache.

The index of a folder is updated when a file in it has changed. To find that out, the size and the time of each file are
kept beside the index, so that a search of unchanged documents imports nothing that makes an index.
"""

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.commands.terminal import visible
from semsearch.engine.bundle import FORMAT_VERSION, find_corpus, is_bundle
from semsearch.engine.errors import ExpectedError, OptionError
from semsearch.indexing.cache import cache_folder
from semsearch.indexing.file_choice import files_of_index
from semsearch.indexing.walking import as_text

if TYPE_CHECKING:
    from semsearch.indexing.make import IndexSummary
    from semsearch.indexing.progress import OnProgress

MOST_SUFFIXES = 10  # maximum number of suffixes that are displayed

FileStates = dict[str, list[int]]  # by path, relative if it is in the folder: bytes, and nanoseconds of the last change


class PlaceError(ExpectedError, ValueError):
    """A place that a command cannot search."""


def bundle_at(
    place: str | Path, exclude: Sequence[str] = (), include: Sequence[str] = (), *, can_be_older: bool = False
) -> Path:
    """Return the folder of the bundle for a place: the place itself, or the kept index of the documents there.

    The index leaves out paths that end in a pattern of `exclude`, and has texts of other suffixes that end in one of
    `include`. It is made or updated first if files have changed, which is said on standard error. If another process
    does so, wait for it. With can_be_older, wait only if there is no index yet.
    Raises PlaceError for an address, OptionError for patterns and a bundle, and what `index` raises.
    """
    if "://" in str(place):
        raise PlaceError(f"{place}: found an address, expected a folder; `semsearch serve {place}` serves it")
    path = Path(place)
    refuse_for_bundle(path, exclude=exclude, include=include)
    if is_bundle(path) or not path.exists():
        return path  # opening it reports what is missing
    bundle = kept_index(path, exclude, include)
    if file_states(path, bundle, exclude, include) != read_states(bundle):
        _update_showing_progress(path, bundle, exclude, include, can_be_older=can_be_older)
    return bundle


def refuse_for_bundle(
    place: Path, *, watch: bool = False, exclude: Sequence[str] = (), include: Sequence[str] = ()
) -> None:
    """Raise PlaceError or OptionError if the place is a bundle, and an option is for a folder of documents."""
    if not is_bundle(place):
        return
    if watch:
        raise PlaceError(f"{place}: expected a folder of documents; check the path")
    refuse_patterns(f"the bundle {place}", exclude, include)


def refuse_patterns(found: str, exclude: Sequence[str], include: Sequence[str]) -> None:
    """Raise OptionError if there are patterns, which are for a folder of documents, and not for what was found."""
    for option, patterns in (("exclude", exclude), ("include", include)):
        if patterns:
            expected = "expected a folder of documents; `semsearch index` has this option too"
            raise OptionError(option, f"found {found}, {expected}")


def count_changes(found: FileStates, known: FileStates | None) -> int:
    """Return how many files are new, changed or gone."""
    known = known or {}
    return sum(known.get(file) != state for file, state in found.items()) + len(known.keys() - found)


def _describe_change(found: FileStates, known: FileStates | None) -> str:
    if known is None:
        return "making the index, which is kept for the next time"
    gone = len(known.keys() - found)
    return f"{count_changes(found, known) - gone} files are new or have changed, {gone} are gone; updating the index"


def _update_showing_progress(
    path: Path, bundle: Path, exclude: Sequence[str], include: Sequence[str], *, can_be_older: bool
) -> None:
    from semsearch.commands.console import TerminalConsole  # a search of unchanged documents does not need these
    from semsearch.indexing.progress import WaitingProgress, showing_progress
    from semsearch.indexing.replacing import BusyError, when_free

    def tell(message: str) -> None:
        sys.stderr.write(f"{visible(str(path))}: {message}\n")

    with showing_progress(TerminalConsole(stderr=True)) as on_progress:
        waiting = WaitingProgress(on_progress)

        def make() -> "IndexSummary | None":
            try:
                with updating(bundle):
                    found, known = file_states(path, bundle, exclude, include), read_states(bundle)
                    waiting.end()
                    if found == known:  # the other process has updated it
                        return None
                    tell(_describe_change(found, known))
                    return update(path, bundle, found, on_progress, exclude, include)
            except BusyError:
                if can_be_older and is_bundle(bundle):
                    tell("another process updates the index; searching the older one")
                    return None
                raise

        def wait() -> None:
            if not waiting.is_waiting:
                tell("another process makes the index; waiting for it")
            waiting.wait()

        is_new = read_states(bundle) is None
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


def kept_index(path: Path, exclude: Sequence[str] = (), include: Sequence[str] = ()) -> Path:
    """Return the folder in the cache for the index of a folder of documents without those that patterns leave out.

    Commands with other patterns use another index, so none of them finds what its own patterns leave out.
    """
    whole = path.resolve()
    # Two NULs begin a pattern of `include`, which differs so from the same one of `exclude`.
    patterns = [*sorted({*exclude}), *(f"\0\0{pattern}" for pattern in sorted({*include}))]
    named = b"\0".join(os.fsencode(each) for each in (str(whole), *patterns))
    return _kept_indexes() / f"{whole.name}-{sha256(named).hexdigest()[:12]}-{FORMAT_VERSION}"


def is_kept(bundle: Path) -> bool:
    """Return whether a bundle is a kept index, beside which the states of its files are written."""
    return bundle.parent == _kept_indexes()


def _kept_indexes() -> Path:
    return cache_folder() / "indexes"


@contextmanager
def updating(bundle: Path) -> Iterator[None]:
    """Lock a kept index and the states beside it during the block. For other bundles do nothing: `index` locks them.

    Raises BusyError if another process updates the index.
    """
    if not is_kept(bundle):
        yield
        return
    from semsearch.indexing.replacing import locking  # a search of unchanged documents does not need it

    bundle.parent.mkdir(parents=True, exist_ok=True)
    with locking(bundle.with_name(f"{bundle.name}.lock"), bundle):
        yield


def update(
    path: Path,
    bundle: Path,
    found: FileStates,
    on_progress: "OnProgress",
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
) -> "IndexSummary":
    """Make or update the index of documents; found has the states of their files before.

    A new index has the addresses of the files. A new or kept one leaves out paths that end in a pattern of `exclude`,
    and has those of `include`; any other one has patterns of its own. Beside a kept index, the states are written,
    except of documents that the system refused to read or that were written meanwhile: the next search tries again.
    Raises what `index` raises, such as BusyError if another process writes into the bundle.
    """
    from semsearch.indexing.make import index  # a search of unchanged documents does not need it

    if not is_bundle(bundle):
        folder = path if path.is_dir() else path.parent
        address = folder.resolve().as_uri()
        made = index(path, bundle, base_url=address, exclude=exclude, include=include, progress=on_progress)
    elif is_kept(bundle):
        made = index(path, bundle, mode="replace", exclude=exclude, include=include, progress=on_progress)
    else:
        made = index(path, bundle, mode="replace", progress=on_progress)
    if is_kept(bundle):
        read = {file: state for file, state in found.items() if as_text(file) not in made.report.refused}
        _states_file(bundle).write_text(json.dumps(read), encoding="utf-8")
    return made


def file_states(
    path: Path, bundle: Path | None = None, exclude: Sequence[str] = (), include: Sequence[str] = ()
) -> FileStates:
    """Return the size in bytes, and the time of the last change in nanoseconds, of each file of an index.

    The files are those that an update of `bundle` with these patterns reads; its other options are recorded there. They
    have the same names however the folder is named.
    """
    info = None if bundle is None else find_corpus(bundle)  # an update reports what is wrong with a bundle
    options: dict[str, Any] = {}
    if info is not None:
        options |= info.options
    if bundle is None or info is None or is_kept(bundle):
        options |= {"exclude": exclude, "include": include}
    found: FileStates = {}
    begin = f"{path if path.is_dir() else path.parent}/"
    for file in files_of_index(path, options):
        with suppress(OSError):  # it is not there, or in a folder that cannot be read
            status = os.stat(file)  # noqa: PTH116  a folder can have 100,000 files
            found[file.removeprefix(begin)] = [status.st_size, status.st_mtime_ns]
    return found


def read_states(bundle: Path) -> FileStates | None:
    """Return the states of the files that a kept index was made of, None if there is no index or no such record."""
    if not is_bundle(bundle):
        return None
    try:
        found: FileStates = json.loads(_states_file(bundle).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _states_file(bundle: Path) -> Path:
    return bundle.with_name(f"{bundle.name}.files.json")
