"""The standard library's documentation as a corpus, compared with what the living objects say."""

import inspect
import json
import math
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest

from export.corpus import Corpus, CorpusError
from export.corpus.python_documentation import MOST_WORDS, python_documentation
from export.model.language import find_other_language

ROOT = Path(__file__).parents[3]


def text(documentation: Corpus, name: str) -> str:
    return documentation.texts[documentation.ids.index(name)]


def metadata(documentation: Corpus, name: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(documentation.metadata[documentation.ids.index(name)])
    return parsed


def test_there_are_some_six_thousand_passages_in_english_with_all_parts(documentation: Corpus) -> None:
    assert 5_000 < len(documentation.texts) < 8_000
    assert len(documentation.texts) == len(documentation.ids) == len(documentation.metadata)
    assert documentation.ids == sorted(set(documentation.ids))
    assert documentation.empty_texts == 0
    assert find_other_language(documentation.texts) is None
    # what would depend on where an object lies in memory
    assert not [entry for entry in [*documentation.texts, *documentation.metadata] if " at 0x" in entry]


def test_a_text_is_the_qualified_name_and_the_first_paragraph(documentation: Corpus) -> None:
    first_paragraph = " ".join((inspect.getdoc(zipfile.ZipFile.extractall) or "").split("\n\n")[0].split())
    assert text(documentation, "zipfile.ZipFile.extractall") == f"zipfile.ZipFile.extractall: {first_paragraph}"


def test_metadata_has_kind_module_and_a_signature_that_python_agrees_with(documentation: Corpus) -> None:
    expected = f"extractall{inspect.signature(zipfile.ZipFile.extractall)}"
    found = metadata(documentation, "zipfile.ZipFile.extractall")
    assert found == {"kind": "method", "module": "zipfile", "signature": expected}
    assert metadata(documentation, "json")["kind"] == "module"
    assert metadata(documentation, "textwrap.fill")["kind"] == "function"
    assert metadata(documentation, "zipfile.ZipFile")["kind"] == "class"
    assert metadata(documentation, "pathlib.PurePath.name")["kind"] == "property"


def test_functions_and_methods_written_in_c_are_there(documentation: Corpus) -> None:
    assert text(documentation, "math.sqrt") == f"math.sqrt: {math.sqrt.__doc__}"
    assert metadata(documentation, "math.sqrt")["signature"] == "sqrt(x, /)"
    assert "substrings" in text(documentation, "str.split")
    assert metadata(documentation, "str.split") == {
        "kind": "method",
        "module": "builtins",
        "signature": "split(self, /, sep=None, maxsplit=-1)",
    }
    assert {"len", "open", "os.listdir", "collections.deque", "re.Pattern.match"} <= set(documentation.ids)


@pytest.mark.parametrize(
    ("public", "internal"),
    [
        ("asyncio.gather", "asyncio.tasks.gather"),
        ("unittest.TestCase.assertEqual", "unittest.case.TestCase.assertEqual"),
        ("concurrent.futures.Future", "concurrent.futures._base.Future"),
        ("collections.abc.Mapping", "os.Mapping"),
        ("datetime.datetime.strptime", "_pydatetime.datetime.strptime"),
        ("decimal.Decimal.sqrt", "_pydecimal.Decimal.sqrt"),
        ("os.path.join", "posixpath.join"),
        ("os.path.exists", "genericpath.exists"),
        ("pathlib.Path.read_text", "pathlib._local.Path.read_text"),
    ],
)
def test_an_object_goes_by_the_name_its_users_write(documentation: Corpus, public: str, internal: str) -> None:
    assert public in documentation.ids
    assert internal not in documentation.ids


def test_private_names_and_tests_stay_out(documentation: Corpus) -> None:
    parts = [name.split(".") for name in documentation.ids]
    assert not [name for name in parts if any(part.startswith("_") for part in name)]
    assert not [name for name in parts if {"test", "tests", "idlelib", "lib2to3", "distutils"} & set(name[:-1])]


def test_a_text_is_one_line_of_at_most_sixty_words(documentation: Corpus) -> None:
    for passage in documentation.texts:
        assert passage == " ".join(passage.split())
        assert len(passage.partition(": ")[2].removesuffix(" …").split()) <= MOST_WORDS


def test_a_leading_signature_gives_way_to_the_sentence_below(documentation: Corpus) -> None:
    assert text(documentation, "max").startswith("max: With a single iterable argument")
    assert text(documentation, "collections.deque").startswith("collections.deque: A list-like sequence")


def test_reading_imports_neither_the_documented_modules_nor_polars(tmp_path: Path) -> None:
    script = (
        "import sys, sysconfig; sysconfig.get_path = lambda _name: sys.argv[1];"
        " from export.corpus.python_documentation import python_documentation;"
        " assert 'antigravity.open' in python_documentation().ids;"
        " assert not {'antigravity', 'asyncio', 'polars'} & set(sys.modules)"
    )
    (tmp_path / "antigravity.py").write_text('def open():\n    """Fly away from here."""\n')
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "__init__.py").touch()
    command = [sys.executable, "-W", "error", "-c", script, str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_without_the_library_sources_an_error_asks_for_a_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    with pytest.raises(CorpusError) as raised:
        python_documentation()
    assert str(raised.value) == (
        f"{tmp_path}: found no sources of the standard library, expected files such as json/__init__.py;"
        " name a file of your own with --corpus"
    )


def test_an_old_file_with_an_invalid_escape_is_read_without_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = 'PATTERN = "\\d"\nif PATTERN:\n    async def find(what, /):\n        """Find it."""\n'
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "__init__.py").write_text(source)
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    documentation = python_documentation()
    assert text(documentation, "json.find") == "json.find: Find it."
    assert metadata(documentation, "json.find")["signature"] == "find(what, /)"
