"""What `semsearch site` writes, and what it refuses. The packages from npm are stand-ins here."""

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from semsearch.engine.bundle import PASSAGES, TOKENIZER, BundleError, read_manifest
from semsearch.engine.passages import Passages
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.errors import PackagesError
from semsearch.indexing.keywords import KeywordOptions
from semsearch.site.packages import HERE, installed_packages
from semsearch.site.site import FIRST, _check, _check_size, _has_large, _query_tables, write_site
from semsearch.site.words import BERT, folded_letters, read_wordpiece
from tests.browser.site.world import write_site_bundle
from tests.command_line import error_line, run


@pytest.fixture(scope="module")
def site_bundle(tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> Path:
    """A bundle whose words are not stemmed, so that no stemmer runs."""
    return write_site_bundle(tmp_path_factory.mktemp("site") / "bundle", corpus, KeywordOptions(stemming=None))


@pytest.fixture(scope="module")
def site(site_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("out") / "site"
    write_site(site_bundle, out)
    return out


def described(site: Path) -> dict[str, Any]:
    (path,) = site.glob("code/*/site.json")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def test_each_data_file_is_gzipped_and_named_by_the_hash_of_its_bytes(site: Path) -> None:
    listed = described(site)["files"]
    assert {entry["path"] for entry in listed.values()} == {f"data/{path.name}" for path in (site / "data").iterdir()}
    for name, entry in listed.items():
        content = (site / entry["path"]).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        assert entry == {"path": f"data/{name}-{digest[:16]}.bin", "bytes": len(content), "sha256": digest}
        assert len(gzip.decompress(content)) > 0


def test_the_first_of_two_query_tables_has_the_tokens_of_the_texts_and_the_other_all_others(site_bundle: Path) -> None:
    manifest, tokenizer = read_manifest(site_bundle), read_tokenizer(site_bundle / TOKENIZER)
    tokenizer.enable_truncation(manifest.model.max_tokens)
    vectors = np.arange(tokenizer.get_vocab_size(), dtype=np.float32)[:, None]
    tables = _query_tables(site_bundle, manifest, vectors)
    passages = Passages(site_bundle / PASSAGES)
    used = {id for row in range(len(passages)) for id in tokenizer.encode(passages.text(row)).ids}
    assert 2 < len(used) < len(vectors)
    assert tables["queries"]["tokens"].tolist() == sorted(used)
    assert tables["others"]["tokens"].tolist() == sorted({*range(len(vectors))} - used)
    for table in tables.values():
        assert table["vectors"][:, 0].tolist() == table["tokens"].tolist()


def test_the_site_has_the_tokens_around_a_text(site: Path, site_bundle: Path) -> None:
    tokenizer = read_tokenizer(site_bundle / TOKENIZER)
    around = [[tokenizer.token_to_id(token)] for token in ("[CLS]", "[SEP]")]
    wordpiece = described(site)["wordpiece"]
    assert [wordpiece["before"], wordpiece["after"]] == around
    assert wordpiece["strips_accents"] is True  # BERT's, where nothing else is stated and the case is folded


def test_the_site_describes_the_bundle_as_its_manifest_does(site: Path, site_bundle: Path) -> None:
    manifest = json.loads((site_bundle / "manifest.json").read_text())
    assert described(site)["info"] == {name: manifest[name] for name in ("model", "index")} | {"scopes": {}}


def test_the_shards_hold_all_passages_in_order(site: Path, corpus: Corpus) -> None:
    content = described(site)
    shards = [
        json.loads(gzip.decompress((site / content["files"][f"passages-{number}"]["path"]).read_bytes()))
        for number in range(len(content["starts"]))
    ]
    assert content["starts"] == [0, *accumulate(len(shard) for shard in shards[:-1])]
    rows = [row for shard in shards for row in shard]
    assert rows == [
        [*row, json.loads(data)] for *row, data in zip(corpus.ids, corpus.texts, corpus.metadata, strict=True)
    ]


def test_every_file_that_the_page_names_is_there_under_a_relative_path(site: Path) -> None:
    page = (site / "index.html").read_text()
    named = re.findall(r'(?:href|src)="((?!data:)[^"]+)"', page)
    (code,) = (site / "code").iterdir()
    assert named == [f"code/{code.name}/page.css", f"code/{code.name}/page.js"]
    box = (site / "search.js").read_text()
    assert re.findall(r"code/\w{16}/", box) == [f"code/{code.name}/"]
    assert not re.search(r"^import|code/HASH", box, re.MULTILINE)  # the button needs no other file
    assert all((code / name).is_file() for name in described(site)["code"])
    assert "POST /similar" not in page


def test_only_a_site_with_the_model_has_a_runtime_and_webassembly(
    site: Path, site_bundle: Path, npm: Path, tmp_path: Path
) -> None:
    write_site(site_bundle, tmp_path / "site", packages=npm, with_model=True)
    for folder, unsafe in ((site, []), (tmp_path / "site", ["'wasm-unsafe-eval'"])):
        page = (folder / "index.html").read_text()
        (policy,) = re.findall(r'http-equiv="content-security-policy" content="([^"]+)"', page)
        assert re.findall(r"'[\w-]*unsafe[\w-]*'", policy) == unsafe
        assert policy.startswith("default-src 'none'; ")
        assert not re.search(r"https?:|\*", policy)
        assert {"runtime", "model"} & described(folder)["files"].keys() == ({"runtime", "model"} if unsafe else set())
        assert len([*folder.glob("code/*/worker/ort.js")]) == len(unsafe)


def test_a_site_replaces_an_older_one_and_the_same_bundle_makes_the_same_files(
    site_bundle: Path, tmp_path: Path, site: Path
) -> None:
    def files(folder: Path) -> dict[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    (tmp_path / "index.html").write_text("older")
    (tmp_path / "CNAME").write_text("docs.example.com")
    for name in ("code/1/page.js", "data/model-1.bin"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("older")
    write_site(site_bundle, tmp_path)
    assert files(tmp_path) == files(site) | {"CNAME": b"docs.example.com"}


def test_a_folder_with_something_else_is_refused_and_stays_as_it_is(site_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("the page of another program")
    with pytest.raises(BundleError, match=r"holds index\.html, expected a new folder or an older site"):
        write_site(site_bundle, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


def test_a_corpus_that_is_too_large_is_refused_with_its_sizes_unless_the_limit_is_raised(
    site_bundle: Path, tmp_path: Path
) -> None:
    out = tmp_path / "site"
    done = run("site", site_bundle, "--out", out, "--most-megabytes", "0.001")
    expected = (
        r"a visit would load 0\.\d MB \(keywords 0\.\d, .*queries 0\.\d\), expected at most 0\.001; .*--most-megabytes"
    )
    assert re.search(expected, error_line(done))
    assert list(out.iterdir()) == []
    assert run("site", site_bundle, "--out", out, "--most-megabytes", "1").code == 0


def test_a_model_with_another_tokenizer_is_refused_with_that_reason(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="its model is WordLevel, expected WordPiece; use a BERT model"):
        write_site(bundle, tmp_path / "site")


def worker_of(site: Path) -> str:
    (path,) = site.glob("code/*/worker/worker.js")
    return path.read_text(encoding="utf-8")


def test_a_site_has_the_stemmers_of_its_languages_alone_with_their_licence(tmp_path: Path) -> None:
    metadata = [json.dumps({"lang": language}) for language in ("fr", "de", "ja")]
    corpus = Corpus(["une oie", "eine Gans", "ガチョウ"], ["a", "b", "c"], metadata, columns={"lang": "string"})
    bundle = write_site_bundle(tmp_path / "bundle", corpus, KeywordOptions(language_column="lang"))
    write_site(bundle, tmp_path / "site")
    worker = worker_of(tmp_path / "site")
    assert re.findall(r"^var (\w+)=\(\(\)=>", worker, re.MULTILINE) == ["french", "german"]
    assert "stemmers = [stemBy(new french.default()), stemBy(new german.default()), null];" in worker
    assert worker.count("Copyright (c) 2001, Dr Martin Porter") == 1
    assert {"der", "les"} <= set(described(tmp_path / "site")["stop_words"])


def test_a_site_without_stems_has_no_stemmer_and_needs_no_other_program(
    site_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    write_site(site_bundle, tmp_path / "site")
    worker = worker_of(tmp_path / "site")
    assert "stemmers = [null];" in worker
    assert "Martin Porter" not in worker


def test_a_column_whose_numbers_a_browser_rounds_is_left_out_with_a_warning(tmp_path: Path) -> None:
    columns = {"ean": "number", "parts": "numbers", "price": "number"}
    stored = json.dumps({"ean": 2**53, "parts": [1, -(2**53)], "price": 9.5})
    corpus = Corpus(["a goose"], ["a"], [stored], columns=columns)
    bundle = write_site_bundle(tmp_path / "bundle", corpus, KeywordOptions(stemming=None))
    done = run("site", bundle, "--out", tmp_path / "site")
    assert done.code == 0
    for name in ("ean", "parts"):
        assert f"warning: the site cannot filter, sort or count by the column {name}" in done.err
    assert "price" not in done.err
    assert described(tmp_path / "site")["info"]["index"]["columns"] == {"price": "number"}


def test_a_site_says_nothing_of_files_that_are_not_searched(tmp_path: Path) -> None:
    corpus = Corpus(["a goose"], ["a"], ["{}"], other_suffixes={".key": 1})
    bundle = write_site_bundle(tmp_path / "bundle", corpus, KeywordOptions(stemming=None))
    assert read_manifest(bundle).corpus.other_suffixes == {".key": 1}
    write_site(bundle, tmp_path / "site")
    assert described(tmp_path / "site")["info"]["index"]["other_suffixes"] == {}


def test_a_boost_by_a_column_whose_numbers_a_browser_rounds_is_refused(tmp_path: Path) -> None:
    options = {"boost": {"views": {"log": True, "weight": 0.1}}}
    corpus = Corpus(["a goose"], ["a"], [json.dumps({"views": 2**53})], columns={"views": "number"})
    bundle = write_site_bundle(tmp_path / "bundle", corpus, KeywordOptions(stemming=None), options)
    with pytest.raises(BundleError, match="boosts by the column views, whose whole numbers a browser rounds"):
        write_site(bundle, tmp_path / "site")


def test_a_missing_npm_and_an_error_of_npm_are_said(
    site_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = run("site", site_bundle, "--out", tmp_path / "site", "--model")
    assert error_line(missing).startswith("error: npm: is not installed, expected Node.js 20 or newer; get it")
    (tmp_path / "npm").write_text("#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\nexit 7\n")
    (tmp_path / "npm").chmod(0o755)
    failed = run("site", site_bundle, "--out", tmp_path / "site", "--model")
    assert "npm ci: exit 7 (npm error code ENOTFOUND); expected the packages of" in error_line(failed)


@pytest.mark.parametrize(
    ("metadata", "folder", "page"),
    [
        ({"url": "guide/a.html#doors"}, "build", "find%20it/"),
        ({"url": "/docs/guide/a.html"}, "'build/find it'", ""),
        ({"url": "https://example.com/guide/a.html"}, "'build/find it'", ""),
        ({"title": "a row of a table"}, "'build/find it'", ""),
    ],
)
def test_the_command_at_the_end_serves_the_folder_that_the_links_of_results_begin_at(
    metadata: dict[str, str], folder: str, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = Corpus(["The ferry"], ["a"], [json.dumps(metadata)])
    bundle = write_site_bundle(tmp_path / "bundle", corpus, KeywordOptions(stemming=None))
    done = run("site", bundle, "--out", "build/find it")
    ready = "build/find it/ is ready, N MB. Any web server of files can show it."
    assert re.sub(r"\d+\.\d", "N", done.out.splitlines()[-2]) == ready
    assert done.out.splitlines()[-1] == (
        f"Try it: python -m http.server --bind 127.0.0.1 --directory {folder} 8000, "
        f"then open http://localhost:8000/{page}"
    )


def test_a_folder_without_the_packages_is_refused(site_bundle: Path, tmp_path: Path) -> None:
    done = run("site", site_bundle, "--out", tmp_path / "site", "--model", "--packages", tmp_path)
    assert ": No such file or directory" in error_line(done)


def test_the_lock_has_a_hash_for_each_package_and_no_address() -> None:
    lock = json.loads((HERE / "package-lock.json").read_text())
    locked = {name: entry for name, entry in lock["packages"].items() if name}
    assert all(entry["integrity"].startswith("sha512-") for entry in locked.values())
    assert not any("resolved" in entry for entry in locked.values())


def test_a_site_is_written_without_the_packages_that_convert_a_model() -> None:
    code = "import sys, semsearch.site.site; print({'onnx', 'torch', 'transformers', 'polars'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def write_program(path: Path, script: str, interpreter: str = "/bin/sh") -> None:
    path.write_text(f"#!{interpreter}\n{script}\n")
    path.chmod(0o755)


def test_npm_installs_what_the_lock_has_into_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(tmp_path / "npm", 'mkdir node_modules && echo "$@" > node_modules/said')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    with installed_packages(None) as modules:
        assert (modules / "said").read_text() == "ci --omit=dev --ignore-scripts --no-audit --no-fund\n"
        for name in ("package.json", "package-lock.json"):
            assert (modules.parent / name).read_bytes() == (HERE / name).read_bytes()
    assert not modules.exists()
    write_program(tmp_path / "npm", "echo 'a warning' >&2; exit 3")
    with (
        pytest.raises(PackagesError, match=r"^npm ci: exit 3 \(no reason\); expected the packages of .*lock.json; try"),
        installed_packages(None),
    ):
        pass
    with installed_packages(tmp_path) as modules:
        assert modules == tmp_path / "node_modules"


def test_letters_whose_case_folding_is_another_are_listed() -> None:
    assert (folded_letters()["ß"], folded_letters()["\u017f"], folded_letters().get("A")) == ("ss", "s", None)


ADDED: dict[str, Any] = {"id": 0, "content": "[X]", "single_word": False, "normalized": False}


@pytest.mark.parametrize(
    ("changes", "end", "message"),
    [
        ({"model": {"type": "BPE"}}, "", "its model is BPE, expected WordPiece; use a BERT model"),
        ({"normalizer": None}, "", "its normalizer is None, expected BertNormalizer;"),
        ({"pre_tokenizer": {}}, "", "its pre_tokenizer is None, expected BertPreTokenizer;"),
        ({}, "", "ids of its tokens are not consecutive, expected 0, 1, 2 and so on;"),
        (
            {"added_tokens": [ADDED | {"single_word": True}]},
            "\na",
            r"the added token '\[X\]' depends on the text around",
        ),
        (
            {"added_tokens": [ADDED, ADDED | {"normalized": True}]},
            "\na",
            r"the added token '\[X\]' depends on the text",
        ),
    ],
)
def test_a_tokenizer_that_a_browser_has_not_is_refused(
    tmp_path: Path, changes: dict[str, Any], end: str, message: str
) -> None:
    described: dict[str, Any] = {name: {"type": kind} for name, kind in BERT.items()} | {"added_tokens": []} | changes
    (tmp_path / TOKENIZER).write_text(json.dumps(described) + end)
    with pytest.raises(BundleError, match=rf"tokenizer\.txt: {message}"):
        read_wordpiece(tmp_path, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_column_of_whole_numbers_is_rounded_from_2_to_53_on(sign: int) -> None:
    most = 2**53
    assert not _has_large(np.array([sign * (most - 1), 0]))
    assert _has_large(np.array([0, sign * most]))
    assert not _has_large(np.array([1e300]))
    assert not _has_large(np.array([], np.int64))


def test_the_size_that_is_compared_is_that_of_the_files_of_a_first_visit() -> None:
    sizes = dict.fromkeys(FIRST, 500_000) | {"model": 9_000_000}
    files: Any = SimpleNamespace(listed=dict.fromkeys(FIRST[1:]) | {"model": None}, bytes_of=sizes.__getitem__)
    total = (len(FIRST) - 1) / 2
    _check_size(Path("bundle"), files, total)
    listed = ", ".join(f"{name} 0.5" for name in FIRST[1:])
    expected = f"bundle: a visit would load {total:.1f} MB ({listed}), expected at most {total - 0.01:g}; serve"
    with pytest.raises(BundleError, match=re.escape(expected)):
        _check_size(Path("bundle"), files, total - 0.01)


def test_texts_in_s3_vectors_have_no_site() -> None:
    manifest: Any = SimpleNamespace(corpus=SimpleNamespace(vectors="there"))
    with pytest.raises(
        BundleError, match=r"^bundle: its texts are in S3 Vectors, expected in the bundle; serve it with"
    ):
        _check(Path("bundle"), manifest)
