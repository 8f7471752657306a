"""Fetch the data that benchmarks read, from a folder or an address, and check it by its SHA-256.

All files are fetched into a temporary folder first, so that a file that is missing or wrong changes nothing.
"""

import argparse
import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO
from urllib.parse import quote

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from bench.data import ARXIV, FILES, DataFile, add_data_argument
from bench.report import console

CHUNK = 1 << 18  # bytes
TIMEOUT = 60  # seconds without a byte


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--from", dest="source", required=True, metavar="FOLDER|URL", help="where the files are")
    parser.add_argument("--arxiv", action="store_true", help="fetch the two arXiv files too, which only `scale` needs")


def run(options: argparse.Namespace) -> int:
    """Fetch what is not there yet."""
    fetch(options.source, options.data, (*FILES, *ARXIV) if options.arxiv else FILES)
    return 0


def fetch(source: str, data: Path, files: Sequence[DataFile]) -> None:
    """Fetch the files that the folder `data` lacks; they are moved there once all their checksums are right.

    Raises SystemExit, and leaves the folder as it was, if a file is missing or is not what its SHA-256 says.
    """
    wanted = [file for file in files if not is_there(data / file.path, file)]
    console.print(f"{data}: {len(files) - len(wanted)} of {len(files)} files are there")
    if not wanted:
        return
    try:
        data.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=data, prefix=".fetching-") as scratch:
            for file in wanted:
                (Path(scratch) / file.path).parent.mkdir(parents=True, exist_ok=True)
                fetch_file(source, file, Path(scratch) / file.path)
            for file in wanted:
                (data / file.path).parent.mkdir(parents=True, exist_ok=True)
                (Path(scratch) / file.path).replace(data / file.path)
    except OSError as error:
        raise SystemExit(
            f"{error.filename or data}: {error.strerror or error}; make room or name another folder with --data"
        ) from error
    console.print(f"{data}: {len(wanted)} files were fetched, and their checksums are right")


def fetch_file(source: str, file: DataFile, out: Path) -> None:
    """Copy one file of the source to `out`. Raises SystemExit if it cannot be read or its SHA-256 differs."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    digest, length = hashlib.sha256(), 0
    with open_source(source, file) as reader, out.open("wb") as writer, Progress(*columns, console=console) as progress:
        task = progress.add_task(file.path, total=file.length)
        while chunk := read_chunk(reader, source, file):
            writer.write(chunk)
            digest.update(chunk)
            length += len(chunk)
            progress.update(task, completed=length)
    if digest.hexdigest() != file.sha256:
        raise SystemExit(
            f"{address_of(source, file)}: {length:,} bytes with SHA-256 {digest.hexdigest()}, expected {file.length:,} "
            f"bytes with {file.sha256}; the source has another version of this file: name another with --from"
        )


def read_chunk(reader: IO[bytes], source: str, file: DataFile) -> bytes:
    """Return the next bytes of a file, none at its end. Raises SystemExit if the connection breaks."""
    try:
        return reader.read(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise unreadable(source, file, str(error)) from error


def open_source(source: str, file: DataFile) -> AbstractContextManager[IO[bytes]]:
    """Open a file of a folder or of an address that begins with http:// or https://. Raises SystemExit if it fails."""
    address = address_of(source, file)
    try:
        if is_url(source):
            response: AbstractContextManager[IO[bytes]] = urllib.request.urlopen(address, timeout=TIMEOUT)
            return response
        return Path(address).open("rb")
    except urllib.error.HTTPError as error:
        error.close()
        raise unreadable(source, file, f"the server answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise unreadable(source, file, str(reason)) from error


def unreadable(source: str, file: DataFile, reason: str) -> SystemExit:
    """Return the exception to raise for a data file that cannot be read, with the reason in its message."""
    return SystemExit(
        f"{address_of(source, file)}: {reason}; expected a file of {file.length:,} bytes there: "
        "name a folder or an address with all files of docs/benchmarks.md with --from"
    )


def address_of(source: str, file: DataFile) -> str:
    """Return the path or the URL of a file in its source."""
    return f"{source.rstrip('/')}/{quote(file.path)}" if is_url(source) else os.fspath(Path(source) / file.path)


def is_url(source: str) -> bool:
    """Return whether the source is an address rather than a folder."""
    return source.startswith(("http://", "https://"))


def is_there(path: Path, file: DataFile) -> bool:
    """Return whether the file was fetched before and is still whole."""
    if not path.is_file() or path.stat().st_size != file.length:
        return False
    with path.open("rb") as reader:
        return hashlib.file_digest(reader, "sha256").hexdigest() == file.sha256
