"""Make and update indexes with `semsearch index`: from rows in memory, from files, and again when files change.

`python -P -m semsearch.indexing.watching FOLDER BUNDLE [--watch]` ends when its standard input is closed, so it ends
with the process that started it. A running server detects that its bundle was replaced (FolderReloader).
"""

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from semsearch.commands.options import cache_folder
from semsearch.engine.bundle import FORMAT_VERSION, MANIFEST, MODEL

MODULE = [sys.executable, "-P", "-m"]  # -P: do not import a folder export/ or a file function.py of the current folder
SECONDS_BETWEEN_SCANS = 0.5  # files are read after two scans that find the same: nothing is writing them any more


def is_bundle(path: str | Path) -> bool:
    """Return whether this folder is a bundle, which an export writes."""
    return (Path(path) / MANIFEST).is_file() and (Path(path) / MODEL).is_file()


def bundle_of(path: Path) -> Path:
    """Return the path itself if it is a bundle, or else the folder in the cache for the index of its documents."""
    whole = path.resolve()
    digest = sha256(os.fsencode(whole)).hexdigest()[:12]
    return path if is_bundle(path) else cache_folder() / "indexes" / f"{whole.name}-{digest}-{FORMAT_VERSION}"


def index(data: Any, *, text: str | None = None, id: str | None = None, out: str | Path, **options: Any) -> None:
    """Make or update the bundle in the folder `out`, with `semsearch index` in a process of its own.

    data is a path, a pandas or polars DataFrame, an Arrow table or a sequence of mappings. text and id name columns.
    Other options are those of the command: `title="Coats"` is `--title Coats`, True sets an option without a value, and
    a list repeats an option. Progress is printed to standard error. Raises RuntimeError with the command's error.
    """
    from tempfile import TemporaryDirectory  # imported here, because the commands do not need it

    words = []
    for name, value in {"text_column": text, "id_column": id, **options}.items():
        for each in value if isinstance(value, list) else [value]:
            if each is not None and each is not False:
                words += [f"--{name.replace('_', '-')}", *([] if each is True else [str(each)])]
    with TemporaryDirectory() as folder:
        if not isinstance(data, str | Path):
            to_rows = getattr(data, "to_dicts", getattr(data, "to_pylist", lambda: data))  # polars, Arrow
            file = Path(folder) / "rows.jsonl"
            if hasattr(data, "to_json"):  # pandas
                data.to_json(file, orient="records", lines=True, date_format="iso", force_ascii=False)
            else:
                file.write_text("".join(json.dumps(row, default=str) + "\n" for row in to_rows()), encoding="utf-8")
            data = file
        command = [*MODULE, "semsearch", "index", str(data), "--out", str(out), *words]
        done = subprocess.run(command, stdout=2, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603
    sys.stderr.write(done.stderr)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2].removeprefix("error: "))


def start(path: Path, bundle: Path, *, watch: bool) -> subprocess.Popen[str]:
    """Start the process that makes the index. It prints a line when the first one is there: its error, or nothing."""
    command = [*MODULE, "semsearch.indexing.watching", str(path), str(bundle), *(["--watch"] if watch else [])]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603


def file_states(path: Path) -> dict[str, tuple[int, int]]:
    """Return the size in bytes, and the time of the last change in nanoseconds, of each file of an index, by path."""
    found = {}
    for folder, folders, files in os.walk(path) if path.is_dir() else [(str(path.parent), [], [path.name])]:
        folders[:] = [name for name in folders if name[0] not in "._"]
        for file in (f"{folder}/{name}" for name in files if name[0] not in "._"):
            with suppress(FileNotFoundError):  # the file has just been removed
                status = os.stat(file)  # noqa: PTH116  a folder can have 100,000 files
                found[file] = status.st_size, status.st_mtime_ns
    return found


def main(path: Path, bundle: Path, *, watch: bool) -> int:
    """Make or update the index, and again after each change if watch is true; return the exit code."""
    folder = path if path.is_dir() else path.parent
    indexed, before, error = None, file_states(path), ""
    while True:
        if (found := file_states(path)) == before != indexed:  # two scans found the same files
            try:
                index(path, out=bundle, base_url=None if is_bundle(bundle) else folder.resolve().as_uri())
            except RuntimeError as raised:
                error = str(raised)
            if indexed is None:
                print(error, flush=True)
                if error or not watch:
                    return int(bool(error))
            indexed = found
        before = found
        if select.select([sys.stdin], [], [], SECONDS_BETWEEN_SCANS)[0]:
            return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), watch="--watch" in sys.argv[3:]))
