"""The files of a published bundle, fetched into a folder of this machine and verified before anything reads them.

    TMPDIR/semantic-search-USER/VERSION/      a whole bundle; its files are mapped
    TMPDIR/semantic-search-USER/VERSION.lock  locked as shared by each process that uses the folder

All processes of a machine share a folder: the first one fetches, and the last one that uses it removes it.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from mmap import mmap
from pathlib import Path

from function.engine.bundle import MANIFEST, MODEL, TOKENIZER, BundleError, FileInfo, Manifest, read_manifest
from function.remote.objects import Objects

PART = 8 * 1024 * 1024  # bytes of one request
AT_ONCE = 8  # requests
POINTER = "current.json"  # like BUNDLES written by export/publishing/store.py
BUNDLES = "bundles"
LOCK = ".lock"
OF_MODEL = (MODEL, TOKENIZER)  # of which another bundle may have the same

Check = Callable[[Manifest], None]


class RefusedError(BundleError):
    """A published bundle that this process cannot serve: the message says why. Fetching it again would not help."""


def accept(manifest: Manifest) -> None:
    """Refuse no bundle."""


def parse_version(content: bytes, where: str) -> str:
    """Return the version that a pointer names. Raises RefusedError if it is not a pointer."""
    try:
        version = json.loads(content)["version"]
        if len(bytes.fromhex(version)) != hashlib.sha256().digest_size:
            raise ValueError(f"version {version!r}")
    except (ValueError, KeyError, TypeError) as error:
        raise RefusedError(f"{where}/{POINTER}: {error!r}; publish a bundle there again") from error
    return str(version).lower()


class Fetched:
    """A folder with a whole bundle. It is removed when this object is closed and no other process uses it."""

    def __init__(self, folder: Path, lock: int) -> None:
        """Take a folder and its open lock, which is locked as shared."""
        self.folder = folder
        self._lock = lock
        self._process = os.getpid()

    def release(self) -> None:
        """Give the folder up and remove nothing."""
        os.close(self._lock)

    def share(self) -> None:
        """Let other processes use the folder too."""
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    def close(self) -> None:
        """Give the folder up. Files that are mapped stay readable until their map is gone."""
        if self._process == os.getpid():  # a forked process shares its parent's lock, and the parent uses the folder
            with suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while other processes use the folder
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder.with_suffix(LOCK).unlink(missing_ok=True)
        os.close(self._lock)


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder for fetched bundles, which is this user's alone. Raises BundleError if it is another's."""
    folder = Path(environment.get("TMPDIR") or "/tmp") / f"semantic-search-{os.getuid()}"  # noqa: S108  checked below
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise BundleError(f"{folder}: others may write there; remove it, or set TMPDIR to a folder of your own")
    return folder


def remove_unused(cache: Path) -> None:
    """Remove the folders that no process uses: those of processes that were killed."""
    for path in cache.glob(f"*{LOCK}"):
        with suppress(FileNotFoundError):
            Fetched(path.with_suffix(""), os.open(path, os.O_RDWR)).close()


def fetch(objects: Objects, version: str, cache: Path, local: Path | None, check: Check = accept) -> Fetched:
    """Return a folder with this version of a bundle, all of it verified.

    `check` may raise RefusedError when it sees the manifest. The model's files are taken from `local`, another bundle,
    if they are the same there.
    Raises RefusedError if the version is damaged, BundleError if there is no room for it, RemoteError if S3 does not
    answer; all of them remove what was fetched.
    """
    folder = cache / version
    while True:
        fetched = Fetched(folder, _lock(folder.with_suffix(LOCK), fcntl.LOCK_SH))
        if folder.is_dir():
            return fetched
        fetched.release()
        fetched = Fetched(folder, _lock(folder.with_suffix(LOCK), fcntl.LOCK_EX))
        try:
            if not folder.is_dir():  # nobody else has fetched it in between
                with _removed_if_unfinished(cache / f"{version}.part") as part:
                    _fetch_all(objects, version, part, local, check)
                    part.rename(folder)
        except BaseException:
            fetched.close()
            raise
        fetched.share()
        if folder.is_dir():  # the lock was free for a moment
            return fetched
        fetched.close()


def _lock(path: Path, kind: int) -> int:
    """Return a file that is open and locked, and that nobody has removed in between."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, kind)
        if os.fstat(lock).st_nlink:
            return lock
        os.close(lock)


@contextmanager
def _removed_if_unfinished(part: Path) -> Iterator[Path]:
    shutil.rmtree(part, ignore_errors=True)  # of a process that was killed
    part.mkdir()
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _fetch_all(objects: Objects, version: str, part: Path, local: Path | None, check: Check) -> None:
    where = f"{objects.url}/{BUNDLES}/{version[:12]}"
    answer = objects.read(f"{BUNDLES}/{version}/{MANIFEST}")
    assert answer is not None  # it was asked for without a condition
    if hashlib.sha256(answer.content).hexdigest() != version:
        raise RefusedError(f"{where}/{MANIFEST}: is damaged, its SHA-256 is not its folder's name; publish it again")
    try:
        (part / MANIFEST).write_bytes(answer.content)
        manifest = read_manifest(part)
    except BundleError as error:
        raise RefusedError(str(error).replace(str(part), where)) from error
    check(manifest)
    missing = dict(manifest.files)
    for name in _same_in(local, manifest):
        assert local is not None
        _link(part / name, (local / name).resolve())
        del missing[name]
    needed, free = sum(info.bytes for info in missing.values()), shutil.disk_usage(part).free
    if needed > free:
        found = f"{needed / 1e6:,.0f} MB to fetch, and {part.parent} has room for {free / 1e6:,.0f}"
        raise BundleError(f"{where}: {found}; give the function more ephemeral storage, or set TMPDIR to a larger disk")
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            _fetch_files(objects, version, part, missing, pool)
    except OSError as error:
        raise BundleError(f"{where}: {error.strerror} while writing to {part.parent}; make room there") from error


def _same_in(local: Path | None, manifest: Manifest) -> list[str]:
    """Return which files of the model another bundle has too."""
    if local is None or not (local / MANIFEST).is_file():
        return []
    files = read_manifest(local).files
    return [name for name in OF_MODEL if name in manifest.files and files.get(name) == manifest.files[name]]


def _link(path: Path, existing: Path) -> None:
    try:
        path.hardlink_to(existing)  # outlives the other bundle
    except OSError:  # on another disk, as an image's files are, or not ours
        path.symlink_to(existing)


def _fetch_files(
    objects: Objects, version: str, part: Path, files: Mapping[str, FileInfo], pool: ThreadPoolExecutor
) -> None:
    """Fetch files in parts, several at once, straight into the page cache, and compare their SHA-256."""
    for name, info in files.items():
        if Path(name).name != name:
            raise RefusedError(f"{objects.url}: {MANIFEST} lists {name!r}, which is not a file's name")
        with (part / name).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, info.bytes)

    def fetch_part(name: str, begin: int) -> None:
        length = min(PART, files[name].bytes - begin)
        with (
            (part / name).open("r+b") as file,
            mmap(file.fileno(), 0) as mapped,
            memoryview(mapped) as view,
            view[begin : begin + length] as buffer,
        ):
            objects.read_into(f"{BUNDLES}/{version}/{name}", begin, buffer)

    def check(name: str) -> None:
        with (part / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != files[name].sha256:
            expected = f"the manifest says {files[name].sha256[:12]}"
            raise RefusedError(f"{objects.url}: {name} is damaged: SHA-256 {found[:12]}, {expected}; publish it again")

    parts = [(name, begin) for name, info in files.items() for begin in range(0, info.bytes, PART)]
    try:
        for done in [pool.submit(fetch_part, *each) for each in parts]:
            done.result()
        for checked in [pool.submit(check, name) for name in files]:
            checked.result()
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
