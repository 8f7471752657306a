"""The commands as users type them."""

import sys
from pathlib import Path
from typing import Any

import pytest

from export.cli import main
from export.publishing.bucket import Bucket
from export.publishing.fetch_time import FetchTime


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
    assert "1 versions were deleted" in capsys.readouterr().out


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


def test_publish_prints_how_long_a_function_fetches_the_bundle(
    where: list[str], bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["publish", str(bundle), *where]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "A function fetches 0.1 MB in about 0.0 s at 625 Mbit/s; a start waits up to 8 s." in printed


def test_limits_are_printed_for_each_bandwidth_beside_the_time_of_the_bundle(
    bundle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)  # nothing is sent
    monkeypatch.setattr("export.publishing.fetch_time.fetched_bytes", lambda manifest: 700_000_000)
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["publish", str(bundle), "--limits"]) == 0
    title, default, granted = capsys.readouterr().out.splitlines()
    assert title.split(str(bundle)) == ["Mbit/s  largest bundle  ", " (700.0 MB)"]
    assert default.split() == ["625", "625", "MB", "9.0", "s,", "late", "every", "function"]
    assert granted.split()[:6] == ["3,000", "3,000", "MB", "1.9", "s,", "in"]
    assert granted.endswith("on request, from 2,048 MB of memory on")


def test_limits_need_no_bundle_and_take_another_bandwidth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["publish", "--limits", "--bandwidth", "1000"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["Mbit/s", "largest", "bundle"],
        ["1,000", "1,000", "MB"],
    ]
    assert main(["publish", "nowhere", "--limits"]) == 1
    assert "nowhere: is not a folder" in capsys.readouterr().err


def test_a_bundle_that_arrives_too_late_is_described() -> None:
    late = FetchTime(700_000_000, 625)
    assert late.describe() == (
        "A function fetches 700.0 MB in about 9.0 s at 625 Mbit/s, but a start waits up to 8 s. Then only the model "
        "answers, until the rest has arrived."
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["publish", "bundle/", "s3://b/p", "--limits"], "--limits publishes nothing; leave out the place"),
        (["publish", "bundle/", "s3://b/p", "--bandwidth", "9"], "--bandwidth is for --limits; add it"),
    ],
)
def test_unusable_arguments_of_limits_are_refused(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert expected in capsys.readouterr().err
