"""Errors of libraries and missing packages in one line."""

import sys

import pytest

from semsearch.indexing import errors
from semsearch.indexing.errors import explain_missing, first_line, install_command


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError(), "ValueError"),
        (ValueError("\n\n"), "ValueError"),
        (KeyError("a"), "KeyError: 'a'"),
        (OSError(" \n no room \nhere"), "OSError: no room"),
    ],
    ids=repr,
)
def test_an_error_is_its_type_and_its_first_line(error: Exception, line: str) -> None:
    assert first_line(error) == line


def test_a_failed_import_names_the_extra_whose_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert explain_missing(ImportError("no module", name="ray.data")) == (
        "semsearch: the package ray is not installed, expected the extra `cluster`; install it: "
        "pip install '.[cluster]'"
    )
    for name in (None, "numpy"):
        with pytest.raises(ImportError, match="no module"):
            explain_missing(ImportError("no module", name=name))


def test_an_extra_of_the_installed_package_is_installed_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "__file__", "/usr/lib/python3/site-packages/semsearch/indexing/errors.py")
    assert install_command("documents") == "pip install 'semsearch[documents]'"
