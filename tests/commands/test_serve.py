"""The bundle that a server answers from, and what it says of its options; tests/server has the server itself."""

import errno
import socket
from pathlib import Path
from typing import Any

import pytest

from semsearch.commands import watching
from semsearch.commands.index import types_of_columns
from semsearch.commands.options import FolderOptions
from semsearch.commands.places import FolderIndex, PlaceError, count_changes, kept_index
from semsearch.commands.serve import _processes, _reason, bundle_of
from semsearch.engine.cores import usable_cores
from semsearch.engine.errors import OptionError


class Process:
    """A process that makes an index, in the place of the real one."""

    made: list["Process"] = []  # noqa: RUF012
    error: str = ""

    def __init__(self, index: FolderIndex, *, watch: bool) -> None:
        self.index, self.watch, self.seen = index, watch, list[str]()
        Process.made.append(self)

    def error_of_first(self) -> str:
        return self.error

    def wait_until_made(self) -> None:
        self.seen.append("waited")

    def close(self) -> None:
        self.seen.append("closed")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(watching, "IndexProcess", Process)
    monkeypatch.setattr(Process, "made", [])
    monkeypatch.setattr(Process, "error", "")
    return Process.made


@pytest.mark.parametrize("place", ["{bundle}", "s3://bucket/x", "nowhere"])
def test_a_bundle_needs_no_process(bundle: Path, made: list[Any], folder: Path, place: str) -> None:
    place = place.format(bundle=bundle)
    with bundle_of([place], watch=False) as found:
        assert found == (place, None)
    assert made == []


def test_documents_are_indexed_first_and_watched_until_the_end(
    documents: Path, bundle: Path, made: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    kept = kept_index(documents)
    with bundle_of([str(documents)], watch=False) as found:
        assert found == (str(kept), None)
    with bundle_of([str(documents)], watch=True) as found:
        assert found == (str(kept), made[1])
        assert made[1].seen == []
    with bundle_of([str(bundle)], watch=True, documents=[documents]) as found:
        assert found == (str(bundle), made[2])
    folders = {"": documents}
    assert [(each.index, each.watch) for each in made] == [
        (FolderIndex(folders, kept), False),
        (FolderIndex(folders, kept), True),
        (FolderIndex(folders, bundle), True),
    ]
    assert [each.seen for each in made] == [["closed"]] * 3
    assert capsys.readouterr().err == ""


def test_excluded_documents_are_neither_indexed_nor_waited_for(
    documents: Path, bundle: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = FolderOptions(["b.md"], ["*.py"])
    kept = kept_index(documents, options=options)
    with bundle_of([str(documents)], watch=False, options=options) as found:
        assert found == (str(kept), None)
    assert made[0].index == FolderIndex({"": documents}, kept, options)
    monkeypatch.setattr(Process, "error", "no files")
    with bundle_of([str(documents)], watch=True, options=FolderOptions(["a.md"])):
        assert made[1].seen == ["waited"]
    (documents / "a.py").write_text("text")
    with (
        pytest.raises(PlaceError, match=r"^no files$"),
        bundle_of([str(documents)], watch=True, options=FolderOptions(["a.md"], ["*.py"])),
    ):
        pass
    expected = "expected a folder of documents; `semsearch index` has this option too"
    for name, stated in {
        "exclude": FolderOptions(["a.md"]),
        "include": FolderOptions(include=["*.py"]),
        "describe": FolderOptions(describe=["notes=x"]),
    }.items():
        with pytest.raises(OptionError, match=f"^{name}: found {bundle}, {expected}$"):
            bundle_of([str(bundle)], watch=True, documents=[documents], options=stated).__enter__()


def test_an_index_that_cannot_be_made_is_an_error_unless_documents_can_still_come(
    documents: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Process, "error", "no files")
    for watch in (False, True):
        with pytest.raises(PlaceError, match=r"^no files$"), bundle_of([str(documents)], watch=watch):
            pass
    (documents / "a.md").unlink()
    with pytest.raises(PlaceError, match=r"^no files$"), bundle_of([str(documents)], watch=False):
        pass
    assert capsys.readouterr().err == ""
    with bundle_of([str(documents)], watch=True):
        assert made[3].seen == ["waited"]
    assert capsys.readouterr().err == f"error: no files\n{documents}: waiting for the first document\n"


@pytest.mark.parametrize("named", [None, "nowhere"])
def test_a_bundle_cannot_be_watched_without_its_documents(
    bundle: Path, folder: Path, made: list[Any], named: str | None
) -> None:
    documents = [] if named is None else [Path(named)]
    expected = f"^--watch: found {named or bundle}, expected the folder of the documents; name it with --documents$"
    with pytest.raises(PlaceError, match=expected), bundle_of([str(bundle)], watch=True, documents=documents):
        pass
    assert made == []


def test_a_system_that_cannot_fork_has_one_worker() -> None:
    assert [_processes(asked, can_fork=True) for asked in (None, 1, 3)] == [usable_cores(), 1, 3]
    assert [_processes(asked, can_fork=False) for asked in (None, 1)] == [1, 1]
    with pytest.raises(OptionError, match=r"found 2, expected 1 on this system, .*; use its cores with --threads 2$"):
        _processes(2, can_fork=False)


def test_an_address_that_cannot_be_listened_on_says_why() -> None:
    unknown = socket.gaierror(socket.EAI_NONAME, "Name unknown")
    unknown.errno = errno.EADDRINUSE  # which the numbers of both kinds can share
    assert _reason(unknown) == "the host is not known (Name unknown); name an address of this machine with --host"
    used = OSError(errno.EADDRINUSE, "in use")
    assert _reason(used) == "another program listens there; choose another port with --port, or 0 for one that is free"
    denied = "cannot be listened on (denied); choose another address with --host and --port"
    assert _reason(OSError(errno.EACCES, "denied")) == denied


def test_types_of_columns_end_after_the_last_equals_sign() -> None:
    assert types_of_columns(["a=number", "b=c=date", "d="]) == {"a": "number", "b=c": "date", "d": ""}
    for word in ("number", "=number"):
        with pytest.raises(OptionError, match=f"found {word!r}, expected NAME=TYPE, such as year=number"):
            types_of_columns([word])


def test_changes_are_new_changed_and_missing_files() -> None:
    known = {"a": [1, 1], "b": [1, 1], "c": [1, 1]}
    assert count_changes({"a": [1, 1], "b": [1, 2], "d": [1, 1]}, known) == 3
    assert (count_changes(known, known), count_changes(known, None), count_changes({}, known)) == (0, 3, 3)
