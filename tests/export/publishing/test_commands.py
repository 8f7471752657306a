"""The commands as users type them."""

import sys
from pathlib import Path
from typing import Any

import pytest

from export.cli import main
from export.publishing.bucket import Bucket


def test_publish_history_rollback_and_prune(
    where: list[str], bundles: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for bundle in bundles:
        assert main(["publish", str(bundle), *where]) == 0
    assert "is the current version of" in capsys.readouterr().out
    assert main(["history", *where]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    (current,) = [line.split()[0] for line in lines if line.endswith("current")]
    assert main(["rollback", *where]) == 0
    served = capsys.readouterr().out.split()[2]
    assert served != current
    assert main(["rollback", where[0], current, *where[1:]]) == 0
    assert f"{current} is the current version of" in capsys.readouterr().out
    assert main(["prune", *where, "--keep", "0"]) == 0
    assert "0 versions were deleted" in capsys.readouterr().out  # all of them are young


def test_a_folder_that_is_no_bundle_ends_in_one_line(
    where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["publish", str(tmp_path), *where]) == 1
    assert "holds no manifest.json" in capsys.readouterr().err


def test_without_boto3_the_extra_is_named(
    where: list[str], bundle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    assert main(["publish", str(bundle), *where]) == 1
    assert "expected the extra `publish`; install it: pip install boto3" in capsys.readouterr().err


def test_missing_credentials_end_in_one_line(
    where: list[str], bundle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    assert main(["history", *where]) == 1
    assert "credentials" in capsys.readouterr().err


def test_an_interrupted_publish_says_how_to_go_on(
    where: list[str], bundle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bucket, "send_file", stop)
    assert main(["publish", str(bundle), *where]) == 130
    assert "interrupted: run the command again" in capsys.readouterr().err


def test_an_unknown_profile_ends_in_one_line(where: list[str], capsys: pytest.CaptureFixture[str], keys: Any) -> None:
    assert main(["history", *where, "--profile", "nobody"]) == 1
    assert "nobody" in capsys.readouterr().err
