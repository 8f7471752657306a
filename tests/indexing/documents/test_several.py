"""Several folders of documents in one index: their names, their columns, and folders that are not there for a while."""

import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from semsearch import Search, index
from semsearch.engine.bundle import PASSAGES
from semsearch.engine.errors import OptionError
from semsearch.engine.passages import Passages
from semsearch.indexing.corpus import CorpusError
from semsearch.indexing.documents import folder as document_folder
from semsearch.indexing.documents import recipe
from semsearch.indexing.documents.reading import ReadDocument, Reading, read_document
from semsearch.indexing.folder_names import name_folders
from tests.command_line import error_line, run

WORDS = "some words of a page"


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Three folders of documents, two of one name."""
    texts = {"a/docs/x.md": "a goose", "a/docs/sub/y.md": "a duck", "b/docs/x.md": "a ferry", "vault/z.md": "a key"}
    for name, text in texts.items():
        write(tmp_path / "world" / name, f"# {Path(name).stem}\n\n{text}")
    return tmp_path / "world"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def paths_of(world: Path) -> list[Path]:
    return [world / "vault", world / "b" / "docs", world / "a" / "docs"]


def metadata_of(bundle: Path) -> list[Any]:
    passages = Passages(bundle / PASSAGES)
    return [passages[row].metadata for row in range(len(passages))]


def ids_of(bundle: Path) -> list[str]:
    passages = Passages(bundle / PASSAGES)
    return [passages[row].id for row in range(len(passages))]


@pytest.mark.parametrize(
    "named",
    [
        {"docs": "/x/docs", "notes": "/x/notes"},
        {"a/docs": "/x/a/docs", "b/docs": "/x/b/docs"},
        {"a/x/docs": "/a/x/docs", "b/x/docs": "/b/x/docs"},
        {"a/docs": "/a/docs", "b/docs": "/x/b/docs", "notes": "/c/notes"},
        {"p/a": "/p/a", "q/a": "/q/a", "r/p": "/r/p"},  # `p` begins like `p/a`
        {"a": "/z/a", "x": "/y/x"},
        {"Docs": "/x/Docs", "docs": "/x/docs"},
        {"a b": "/x/a b", "ab": "/x/ab"},
        {"x/y/b": "/x/y/b", "z/b": "/x/z/b", "z/y": "/z/y"},
    ],
    ids=lambda named: f"{len(named)} folders",
)
def test_folders_are_named_by_the_parts_of_their_paths_that_differ_in_any_order(named: dict[str, str]) -> None:
    expected = {name: Path(path) for name, path in named.items()}
    for paths in permutations(named.values()):
        assert name_folders(paths) == expected
        assert list(name_folders(paths)) == sorted(expected, key=lambda name: name.split("/"))


def test_the_same_place_by_another_path_has_the_same_name(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (world / "link").symlink_to("vault")
    monkeypatch.chdir(world / "a" / "docs")
    assert name_folders([".", "../../link"]) == {"docs": world / "a" / "docs", "vault": world / "vault"}


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (["a/docs/sub"], "a/docs: found the folder {world}/a/docs/sub in it, which is named too"),
        (["a/docs"], "a/docs: found the folder {world}/a/docs in it, which is named too"),
        (["a"], "a: found the folder {world}/a/docs in it, which is named too"),
        (["vault/z.md"], "vault/z.md: found a file, expected a folder of documents, as one of several"),
        (["nowhere"], "nowhere: found nothing there, expected a folder of documents; check the path"),
    ],
    ids=["inside", "twice", "around", "file", "missing"],
)
def test_what_cannot_be_one_of_several_folders_is_refused(
    world: Path, out: Path, others: list[str], message: str
) -> None:
    with pytest.raises(CorpusError) as caught:
        index([world / "a" / "docs", *(world / name for name in others)], out)
    assert message.format(world=world) in str(caught.value)


def test_an_address_a_bundle_and_texts_in_memory_are_no_folders(world: Path, out: Path, bundle: Path) -> None:
    for other, found in (("s3://bucket/docs", "found an address"), (str(bundle), "found a bundle")):
        with pytest.raises(CorpusError, match=found):
            index([world / "vault", Path(other)], out)
    index(["a goose", "a duck"], out, mode="replace")
    assert (ids_of(out), metadata_of(out)) == (["0", "1"], [{}, {}])
    for name in ("empty", "without"):
        (world / name).mkdir()
    with pytest.raises(CorpusError, match="found no text, expected documents with text"):
        index([world / "empty", world / "without"], out)


def test_ids_paths_addresses_and_columns_have_the_name_of_the_folder(world: Path, out: Path) -> None:
    summary = index(paths_of(world), out, base_url="https://x.org/s/", describe={"vault": " Minutes. "})
    assert ids_of(out) == [
        "a/docs/sub/y.md#y:1",
        "a/docs/x.md#x:1",
        "b/docs/x.md#x:1",
        "vault/z.md#z:1",
    ]
    assert [each["path"] for each in metadata_of(out)] == [
        "a/docs/sub/y.md",
        "a/docs/x.md",
        "b/docs/x.md",
        "vault/z.md",
    ]
    assert [each["url"].partition("#")[0] for each in metadata_of(out)] == [
        f"https://x.org/s/{page}" for page in ("a/docs/sub/y", "a/docs/x", "b/docs/x", "vault/z")
    ]
    assert [each["folder"] for each in metadata_of(out)] == ["a/docs", "a/docs", "b/docs", "vault"]
    assert [each.get("folder_description") for each in metadata_of(out)] == [None, None, None, "Minutes."]
    assert (summary.manifest.corpus.source, summary.report.files) == ("a/docs, b/docs, vault", 4)
    index(paths_of(world), out, base_url="")
    assert [each["url"] for each in metadata_of(out)] == [
        "a/docs/sub/y.md#y", "a/docs/x.md#x", "b/docs/x.md#x", "vault/z.md#z",
    ]  # fmt: skip
    write(world / "vault" / "index.html", f"<p>{WORDS}")
    write(world / "vault" / "c.html", f'<link rel=canonical href="https://x.org/other/"><p>{WORDS}')
    index(paths_of(world), out)
    urls = {each["path"]: each["url"] for each in metadata_of(out)}
    assert (urls["vault/index.html"], urls["vault/c.html"]) == ("vault/", "https://x.org/other/")
    index(paths_of(world), out, base_url="file:")
    assert metadata_of(out)[-1]["url"].startswith((world / "vault" / "z.md").as_uri())


def test_a_filter_by_folder_finds_what_brute_force_finds(world: Path, out: Path) -> None:
    for number in range(20):
        for name in ("a/docs", "b/docs", "vault"):
            write(world / name / f"{number}.md", f"# Page {number}\n\n{WORDS} {number} of {name}")
    index(paths_of(world), out)
    with Search(out) as search:
        found = search.search(WORDS, top_k=100)
        for names in (["a/docs"], ["b/docs"], ["vault"], ["a/docs", "vault"]):
            expected = [hit.id for hit in found if hit.metadata["folder"] in names]
            assert expected == [hit.id for hit in found if hit.id.startswith(tuple(f"{name}/" for name in names))]
            chosen = search.search(WORDS, top_k=100, filter={"folder": {"$in": names}}, facets=["folder"])
            assert [hit.id for hit in chosen] == expected
            counts = {name: sum(id.startswith(f"{name}/") for id in expected) for name in names}
            assert {each["value"]: each["count"] for each in chosen.facets["folder"]} == counts


def test_the_order_of_folders_does_not_matter(world: Path, out: Path) -> None:
    written = set()
    for paths in permutations(paths_of(world)):
        index(list(paths), out)  # no mode: it is the same source
        written.add((out / PASSAGES).read_bytes())
    assert len(written) == 1


def test_one_folder_in_a_list_is_that_folder_alone(world: Path, out: Path) -> None:
    write(world / "vault" / "z.md", f"---\nfolder: mine\n---\n{WORDS}")
    index([world / "vault"], out)
    alone = (out / PASSAGES).read_bytes()
    assert (ids_of(out), metadata_of(out)[0]["folder"]) == (["z.md:1"], "mine")
    index(world / "vault", out)
    assert (out / PASSAGES).read_bytes() == alone


@pytest.mark.parametrize("is_empty", [False, True], ids=["missing", "empty"])
@pytest.mark.parametrize("reads_all", [False, True], ids=["records", "no records"])
def test_a_folder_that_is_not_there_for_a_while_keeps_its_texts(
    world: Path, out: Path, monkeypatch: pytest.MonkeyPatch, is_empty: bool, reads_all: bool
) -> None:
    write(world / "vault" / "deep" / "er" / "w.md", f"# W\n\n{WORDS}")
    index(paths_of(world), out)
    before = ids_of(out)
    (world / "vault").rename(world / "elsewhere")
    if is_empty:
        write(world / "vault" / "empty" / ".DS_Store", "")
    if reads_all:
        monkeypatch.setattr(recipe, "READERS_VERSION", -1)
    (world / "a" / "docs" / "x.md").unlink()
    write(world / "b" / "docs" / "new.md", f"# New\n\n{WORDS}")
    report = index(paths_of(world), out).report
    kept = "vault: the folder is missing or empty; its 2 older passages stay"
    assert (report.unreadable, report.outdated, report.refused) == ((kept,), (kept,), ())
    expected = ["b/docs/new.md#new:1" if "a/docs/x" in id else id for id in before]
    assert sorted(ids_of(out)) == sorted(expected)
    with pytest.raises(CorpusError, match="found the folder is missing or empty"):
        index(paths_of(world), out, strict=True)
    shutil.rmtree(world / "vault", ignore_errors=True)
    (world / "elsewhere").rename(world / "vault")
    assert index(paths_of(world), out).report.unreadable == ()
    index(paths_of(world), world / "fresh", update=out)
    assert (out / PASSAGES).read_bytes() == (world / "fresh" / PASSAGES).read_bytes()


def test_a_folder_without_documents_keeps_no_texts_if_it_has_other_files(world: Path, out: Path) -> None:
    index(paths_of(world), out)
    (world / "vault" / "z.md").rename(world / "vault" / "z.bin")
    assert index(paths_of(world), out).report.unreadable == ()
    assert {each["folder"] for each in metadata_of(out)} == {"a/docs", "b/docs"}
    index(paths_of(world), out, include=["*.bin"])
    assert {each["folder"] for each in metadata_of(out)} == {"a/docs", "b/docs", "vault"}


def test_a_folder_that_has_been_left_out_needs_a_mode(world: Path, out: Path) -> None:
    index(paths_of(world), out)
    done = run("index", world / "vault", world / "a" / "docs", "--out", out)
    assert "of which 1 are not among the new ones" in error_line(done)
    assert run("index", world / "vault", world / "a" / "docs", "--out", out, "--replace").code == 0
    assert {each["folder"] for each in metadata_of(out)} == {"docs", "vault"}


def test_ignore_files_and_sites_are_those_of_each_folder_and_patterns_see_its_name(world: Path, out: Path) -> None:
    for folder in paths_of(world):
        write(folder / "secret.md", WORDS)
        write(folder / "private" / "p.md", WORDS)
        write(folder / "u.md", f"# A\n\n## Über uns\n\n{WORDS}")
    write(world / "vault" / ".gitignore", "secret.md\n")
    write(world / "b" / "docs" / "mkdocs.yml", "")
    write(world / "b" / "docs" / "u.html", f"<p>{WORDS}")
    write(world / "b" / "docs" / "copy.html", f'<link rel=canonical href="https://x.org/u.html"><p>{WORDS}')
    report = index(paths_of(world), out, exclude=["vault/private/*"], include=["*.yml"]).report
    found = ids_of(out)
    assert [id for id in found if "secret" in id] == ["a/docs/secret.md:1", "b/docs/secret.md:1"]
    assert [id for id in found if "private" in id] == ["a/docs/private/p.md:1", "b/docs/private/p.md:1"]
    assert [id for id in found if "/u.md#" in id and "#a:" not in id] == [
        "a/docs/u.md#über-uns:1", "b/docs/u.md#uber-uns:1", "vault/u.md#über-uns:1",
    ]  # fmt: skip
    assert [str(each) for each in report.skipped] == [
        "1 skipped: a rule of .gitignore or .ignore, such as vault/secret.md",
        "1 skipped: the name begins with a dot, such as vault/.gitignore",
        "1 skipped: a copy of the page that it names as canonical, such as b/docs/copy.html",
        "1 skipped: an excluded path, such as vault/private/p.md",
    ]


def test_skipped_entries_of_all_folders_are_counted_together(world: Path, out: Path) -> None:
    for folder in paths_of(world):
        write(folder / ".hidden.md", WORDS)
        write(folder / "code.py", WORDS)
    report = index(paths_of(world), out).report
    assert [str(each) for each in report.skipped] == [
        "3 skipped: the name begins with a dot, such as a/docs/.hidden.md",
        "3 skipped: the suffix '.py', such as a/docs/code.py",
    ]
    assert report.other_suffixes == {".py": 3}


def test_progress_goes_on_over_all_folders(world: Path, out: Path) -> None:
    shares = []

    def note(step: str, share: float, texts: int = 0) -> None:
        if step == "read texts":
            shares.append(share)

    index(paths_of(world), out, progress=note)
    assert shares == sorted(shares)
    assert {1 / 3, 2 / 3, 1} <= {*shares}


def test_a_description_is_for_one_of_several_folders_and_is_used_again(world: Path, out: Path) -> None:
    expected = "which the updated index can have recorded, expected one of a/docs, b/docs, vault; state what"
    with pytest.raises(OptionError, match=f"^describe: found vaults, {expected}"):
        index(paths_of(world), out, describe={"vaults": "x"})
    with pytest.raises(
        OptionError, match='expected several folders; state what each has again, or describe="" for none'
    ):
        index(world / "vault", out, describe={"vault": "x"})
    index(paths_of(world), out, describe={"vault": "x", "a/docs": ""})
    index(paths_of(world), out)
    assert [each.get("folder_description") for each in metadata_of(out)] == [None, None, None, "x"]
    described = run("index", *paths_of(world), "--out", out, "--describe", "a/docs=y=z", "--describe", "b/docs=1")
    assert described.err == ""
    assert [each.get("folder_description") for each in metadata_of(out)] == ["y=z", "y=z", "1", None]
    assert run("index", *paths_of(world), "--out", out, "--describe", "").code == 0
    assert [each.get("folder_description") for each in metadata_of(out)] == [None] * 4
    for words in ("vault", "=x"):
        done = run("index", *paths_of(world), "--out", out, "--describe", words)
        expected = f"--describe: found '{words}', expected NAME=TEXT, such as notes='minutes of meetings'"
        assert (done.code, done.err) == (2, f"error: {expected}\n")


@pytest.mark.parametrize("options", [{"text_column": "a"}, {"id_column": "a"}, {"embeddings": [[1.0]]}])
def test_options_of_tables_are_refused(world: Path, out: Path, options: dict[str, Any]) -> None:
    with pytest.raises((CorpusError, OptionError), match="documents"):
        index(paths_of(world), out, **options)


def test_the_documents_that_have_changed_are_read_alone(
    world: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def note(folder: Path, reading: Reading, path: Path) -> ReadDocument:
        read.append(path)
        return read_document(folder, reading, path)

    monkeypatch.setattr(document_folder, "read_document", note)
    index(paths_of(world), out)
    assert len(read) == 4
    write(world / "vault" / "z.md", f"# Other\n\n{WORDS}")
    index(paths_of(world)[::-1], out)
    assert read[4:] == [world / "vault" / "z.md"]
    index(paths_of(world), out, describe={"vault": "Minutes"})
    assert len(read) == 4 + 1 + 4  # what is said of a folder is in its passages
