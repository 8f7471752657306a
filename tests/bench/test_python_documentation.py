"""The standard library's documentation as a corpus, compared with what the living objects say."""

import inspect
import json
import sysconfig
import zipfile
from pathlib import Path

import pytest

from bench import Missing
from bench.python_documentation import write_documentation
from semsearch.indexing.corpus import Corpus, Table
from semsearch.indexing.corpus.language import find_other_language
from semsearch.indexing.texts import write_corpus

pytestmark = pytest.mark.slow  # reads all of it, as `make demo` does


@pytest.fixture(scope="module")
def documentation(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The texts as `semsearch index` reads them from the file that the script has written."""
    folder = tmp_path_factory.mktemp("documentation")
    path = folder / "new" / "python-documentation.jsonl"
    write_documentation(path)
    corpus, report = write_corpus(Table(path), folder / "passages.safetensors")
    assert report.empty_texts == 0
    return corpus


def test_there_are_some_six_thousand_passages_in_english_with_all_parts(documentation: Corpus) -> None:
    assert 5_000 < len(documentation.texts) < 8_000
    assert len(documentation.texts) == len(documentation.ids) == len(documentation.metadata)
    assert list(documentation.ids) == sorted(set(documentation.ids))
    assert find_other_language(documentation.texts) is None
    # neither addresses in memory, which differ from run to run, nor private names
    assert not [entry for entry in [*documentation.texts, *documentation.metadata] if " at 0x" in entry]
    assert not [name for name in documentation.ids if any(part.startswith("_") for part in name.split("."))]


def test_a_passage_has_the_first_paragraph_kind_module_and_signature_of_an_object(documentation: Corpus) -> None:
    texts = dict(zip(documentation.ids, documentation.texts, strict=True))
    metadata = dict(zip(documentation.ids, map(json.loads, documentation.metadata), strict=True))
    name = "zipfile.ZipFile.extractall"
    first_paragraph = " ".join((inspect.getdoc(zipfile.ZipFile.extractall) or "").split("\n\n")[0].split())
    signature = f"extractall{inspect.signature(zipfile.ZipFile.extractall)}"
    assert texts[name] == f"{name}: {first_paragraph}"
    assert metadata[name] == {"kind": "method", "module": "zipfile", "signature": signature}
    names = ("json", "textwrap.fill", "zipfile.ZipFile", "pathlib.PurePath.name")
    assert [metadata[each]["kind"] for each in names] == ["module", "function", "class", "property"]


@pytest.mark.parametrize(
    ("public", "internal"),
    [
        ("asyncio.gather", "asyncio.tasks.gather"),
        ("collections.abc.Mapping", "os.Mapping"),
        ("datetime.datetime.strptime", "_pydatetime.datetime.strptime"),
        ("os.path.join", "posixpath.join"),
        ("pathlib.Path.read_text", "pathlib._local.Path.read_text"),
    ],
)
def test_an_object_goes_by_the_name_its_users_write(documentation: Corpus, public: str, internal: str) -> None:
    assert public in documentation.ids
    assert internal not in documentation.ids


def test_without_the_sources_an_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    with pytest.raises(Missing, match="has no sources of the library, expected json"):
        write_documentation(tmp_path / "texts.jsonl")
