"""A missing package is named with its extra, and installed by a command that needs no published package of ours."""

import re
import subprocess
import sys
import tomllib

import pytest

from export.errors import EXTRAS, explain_import
from tests.project import ROOT

WITHOUT_RICH = """
import runpy, sys
sys.modules["rich"] = None
sys.argv = ["export", "verify", "bundle"]
runpy.run_module("export", run_name="__main__", alter_sys=True)
"""


def test_the_extras_are_those_of_the_project() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for extra, packages in EXTRAS.items():
        assert set(packages.values()) == {re.split("[><=]", requirement)[0] for requirement in stated[extra]}


def test_a_command_without_its_extra_ends_in_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_RICH], cwd=ROOT, capture_output=True, text=True, check=False)
    expected = "expected the extra `export`; install it: pip install rich"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: python -m export: the package rich is not installed, {expected}\n"


def test_another_import_that_fails_is_not_explained() -> None:
    with pytest.raises(ImportError, match="cannot import name"):
        explain_import(ImportError("cannot import name 'x' from 'rich'", name="rich"))
