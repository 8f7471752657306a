"""What an export says where Ray, or what reads s3://, is not installed."""

from pathlib import Path

import pytest

from export import cli

ADVICE = "expected the extra `cluster`; install it: pip install 'ray[data]>=2.50'"


def test_without_ray_the_export_says_what_to_install_before_it_reads_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("export.cluster_error.find_spec", lambda name: None)
    assert cli.main(["corpus", "--corpus", str(tmp_path / "none.csv"), "--out", str(tmp_path / "b"), "--ray"]) == 1
    assert f"--ray: the package ray is not installed, {ADVICE}" in capsys.readouterr().err


def test_without_pyarrow_a_corpus_in_s3_says_what_to_install(
    bundle_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("export.corpus.fetched.find_spec", lambda name: None)
    assert cli.main(["corpus", "--corpus", "s3://bucket/texts.csv", "--out", str(bundle_copy)]) == 1
    error = capsys.readouterr().err
    assert f"s3://bucket/texts.csv: the package pyarrow is not installed, {ADVICE}" in error
