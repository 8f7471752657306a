"""Fetching the data: from a folder, from a server on this machine, and what goes wrong on the way."""

import functools
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import fetch as fetching
from bench.data import ARXIV, FILES, DataFile, data_folder
from bench.fetch import fetch

CONTENTS = {"headlines.csv.gz": b"not really compressed" * 50_000, "eval/stsb-dev.tsv": b"5.0\ta\tb\n"}
LISTED = tuple(DataFile(path, len(c), hashlib.sha256(c).hexdigest()) for path, c in CONTENTS.items())


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for path, content in CONTENTS.items():
        (tmp_path / "source" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / path).write_bytes(content)
    return tmp_path / "source"


@pytest.fixture
def url(source: Path) -> Iterator[str]:
    handler = functools.partial(QuietHandler, directory=str(source))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def error_of(source: str, data: Path) -> str:
    with pytest.raises(SystemExit) as raised:
        fetch(source, data, LISTED)
    (line,) = str(raised.value.code).splitlines()
    return line


def test_files_come_from_a_folder(source: Path, tmp_path: Path) -> None:
    fetch(str(source), tmp_path / "data", LISTED)
    assert contents(tmp_path / "data") == CONTENTS


@pytest.mark.parametrize("end", ["", "/"])
def test_files_come_from_an_address(url: str, end: str, tmp_path: Path) -> None:
    fetch(url + end, tmp_path / "data", LISTED)
    assert contents(tmp_path / "data") == CONTENTS


def test_a_file_that_is_there_and_whole_is_not_fetched_again(source: Path, tmp_path: Path) -> None:
    fetch(str(source), tmp_path / "data", LISTED)
    (source / "headlines.csv.gz").unlink()
    fetch(str(source), tmp_path / "data", LISTED)


def test_a_file_that_was_changed_is_fetched_again(source: Path, tmp_path: Path) -> None:
    fetch(str(source), tmp_path / "data", LISTED)
    changed = tmp_path / "data" / "eval" / "stsb-dev.tsv"
    changed.write_bytes(b"9.0\ta\tb\n")
    fetch(str(source), tmp_path / "data", LISTED)
    assert contents(tmp_path / "data") == CONTENTS


def test_a_wrong_checksum_is_one_line_and_leaves_nothing(source: Path, url: str, tmp_path: Path) -> None:
    (source / "eval" / "stsb-dev.tsv").write_bytes(b"4.0\ta\tb\n")
    line = error_of(url, tmp_path / "data")
    assert line.startswith(f"{url}/eval/stsb-dev.tsv: 8 bytes with SHA-256 ")
    assert f"expected 8 bytes with {LISTED[1].sha256}; " in line
    assert line.endswith("name another with --from")
    assert [*(tmp_path / "data").iterdir()] == []


def test_a_wrong_file_leaves_the_older_ones_as_they_were(source: Path, tmp_path: Path) -> None:
    older = tmp_path / "data" / "headlines.csv.gz"
    older.parent.mkdir()
    older.write_bytes(b"older")
    (source / "eval" / "stsb-dev.tsv").write_bytes(b"4.0\ta\tb\n")
    error_of(str(source), tmp_path / "data")
    assert contents(tmp_path / "data") == {"headlines.csv.gz": b"older"}


def test_a_missing_file_is_one_line_that_says_what_the_server_answered(source: Path, url: str, tmp_path: Path) -> None:
    (source / "eval" / "stsb-dev.tsv").unlink()
    line = error_of(url, tmp_path / "data")
    assert line.startswith(
        f"{url}/eval/stsb-dev.tsv: the server answers 404 File not found; expected a file of 8 bytes"
    )
    assert "docs/benchmarks.md" in line
    assert contents(tmp_path / "data") == {}


def test_a_folder_without_the_file_is_one_line(tmp_path: Path) -> None:
    line = error_of(str(tmp_path), tmp_path / "data")
    assert line.startswith(f"{tmp_path}/headlines.csv.gz: No such file or directory; expected a file of ")


def test_a_server_that_is_not_there_is_one_line(url: str, tmp_path: Path) -> None:
    line = error_of("http://127.0.0.1:1", tmp_path / "data")
    assert line.startswith("http://127.0.0.1:1/headlines.csv.gz: ")
    assert "Connection refused" in line


def test_a_broken_connection_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    class Broken(QuietHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b"half")

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Broken) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        line = error_of(f"http://127.0.0.1:{server.server_port}", tmp_path / "data")
        server.shutdown()
        thread.join()
    assert "headlines.csv.gz: 4 bytes with SHA-256 " in line or "IncompleteRead" in line
    assert contents(tmp_path / "data") == {}


def test_a_data_folder_that_is_a_file_is_one_line(source: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert error_of(str(source), tmp_path / "data").startswith(f"{tmp_path / 'data'}: File exists; ")


def test_the_data_folder_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BENCH_DATA", raising=False)
    assert data_folder() == Path("build/bench/data")
    monkeypatch.setenv("BENCH_DATA", str(tmp_path))
    assert data_folder() == tmp_path


def test_the_documentation_lists_each_file_with_its_length_and_checksum() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for file in (*FILES, *ARXIV):
        assert f"| `{file.path}` |" in page
        assert f"| {file.length:,} | `{file.sha256}` |" in page


def test_arxiv_is_fetched_only_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    import argparse

    asked: list[tuple[DataFile, ...]] = []
    monkeypatch.setattr(fetching, "fetch", lambda source, data, files: asked.append(tuple(files)))
    for arxiv in (False, True):
        fetching.run(argparse.Namespace(source="x", data=Path("y"), arxiv=arxiv))
    assert asked == [FILES, (*FILES, *ARXIV)]
