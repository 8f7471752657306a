"""What can go wrong while a corpus is copied from S3, with a stub of Arrow; tests/cluster has the real one."""

import errno
import os
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from export.corpus import CorpusError, fetching_corpus


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (errno.ENOSPC, "there is no room in "),
        (errno.EDQUOT, "there is no room in "),
        (errno.EACCES, "found no corpus that can be read ("),
        (None, "found no corpus that can be read ("),
    ],
)
def test_a_full_disk_is_not_blamed_on_the_address(
    code: int | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow = MagicMock()
    arrow.fs.copy_files.side_effect = OSError("no such key") if code is None else OSError(code, os.strerror(code))
    monkeypatch.setitem(sys.modules, "pyarrow", arrow)
    monkeypatch.setitem(sys.modules, "pyarrow.fs", arrow.fs)
    monkeypatch.setattr("export.packages.find_spec", lambda name: name)
    with pytest.raises(CorpusError) as caught, fetching_corpus(Path("s3:/bucket/a.csv")):
        pass
    assert str(caught.value).startswith(f"s3://bucket/a.csv: {message}")
    assert ("set TMPDIR to a larger disk" in str(caught.value)) == message.startswith("there is no room")
