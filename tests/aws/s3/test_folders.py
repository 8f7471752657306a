"""Folders that processes share: who fills one, and who waits."""

import fcntl
from pathlib import Path
from threading import Event, Thread

from semsearch.aws.s3.folders import LOCK, SharedFolder, open_shared
from tests.server.running import WAIT


def test_a_process_that_waits_gets_the_folder_while_the_one_that_filled_it_uses_it(tmp_path: Path) -> None:
    path, is_opened = tmp_path / "bundle", Event()
    found: list[SharedFolder] = []

    def open_it() -> None:
        found.append(open_shared(path, lambda part: None))
        is_opened.set()

    with path.with_suffix(LOCK).open("w") as filler:
        fcntl.flock(filler, fcntl.LOCK_SH)
        Thread(target=open_it, daemon=True).start()
        assert not is_opened.wait(0.5)
        path.mkdir()
        assert is_opened.wait(WAIT)
        found[0].close()
        assert path.is_dir()  # the filler uses it
