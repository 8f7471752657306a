"""Write a static site: everything that a browser needs to search a bundle, in a folder for any static host.

index.html, search.js, service-worker.js     the only names that stay the same
code/HASH/                        the page, the search box, the worker's modules and site.json, which lists the data
data/NAME-HASH.bin                the data, gzipped: queries, index, keywords, columns, passages, model and runtime

code/ and data/ also have the files of the former build; former.py says why.

The vectors of the query table are two files. A visit first loads those of the tokens that the corpus has, and loads the
others in the background or when a query needs one.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from semsearch.engine.bundle import COLUMNS, PASSAGES, QUERY_TABLE, BundleError, CorpusInfo, Manifest, check_bundle
from semsearch.engine.embedder import VECTORS, Embedder, QueryTable
from semsearch.engine.keyword.analyzer import stop_words_of
from semsearch.engine.loading import load_bundle
from semsearch.engine.metadata.columns import Columns
from semsearch.engine.passages import Passages
from semsearch.engine.tensors import AnyArray, map_tensors
from semsearch.engine.values import EXACT_FLOATS
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.vectors.floor import floors_of
from semsearch.indexing.vectors.query_table import learn_table
from semsearch.site.data import FOLDER, DataFiles, add_corpus
from semsearch.site.former import copy_former, keep_site, replace_files
from semsearch.site.packages import RUNTIME, WASM, installed_packages
from semsearch.site.page import BOX, CODE, RUNTIME_CODE, SERVICE_WORKER, write_page
from semsearch.site.stemmers import stemmers_module
from semsearch.site.words import folded_letters, read_wordpiece

SCOPES = ("version", "language")  # columns whose value the box takes from its page; search.js has the same names
FIRST = ("keywords", "vocabulary", "index", "queries")  # data files that a visit loads until it searches by meaning
FORMER = "former"  # name for the bytes of the former build's files
OWN = (FOLDER, CODE, BOX, SERVICE_WORKER, "index.html")  # files and folders of a site; the last three name the others
TEMPORARY = ".site-"  # beginning of the name of a folder in which a site is written

# Megabytes that a visit loads until it can search by meaning: about 50,000 texts; 4 seconds at 50 Mbit/s
MOST_MEGABYTES = 24


def write_site(
    bundle: Path,
    out: Path,
    most_megabytes: float = MOST_MEGABYTES,
    packages: Path | None = None,
    with_model: bool = False,
    on_progress: OnProgress = no_progress,
    keep: Path | None = None,
) -> dict[str, int]:
    """Write the site of a bundle into a new folder or over an older site, and return the bytes of each data file.

    Files of the older site stay until the next build. Their bytes are those of FORMER; 0 if they are too many, so that
    none stays. keep is a folder that gets a copy of what the next build needs, in case `out` is new or empty then.

    The query table of a bundle without one is learned now, and the floors are measured with it. with_model adds the
    model, which replaces the table once the page of the site has loaded it; a search box keeps the table. The site
    leaves out the columns that `rounded_columns` returns. The model needs packages: a folder in which `npm ci` has
    installed them; without it, npm does so now.
    Raises BundleError if a browser cannot search the bundle, if the site is larger than most_megabytes, or if the
    folder holds something else, and PackagesError if npm is missing.
    """
    manifest = check_bundle(bundle)
    _check(bundle, manifest)
    for folder in (out, keep):
        if folder is not None:
            _check_folder(folder)
    left_out = rounded_columns(bundle)
    if boosted := [name for name in left_out if name in manifest.corpus.boost]:
        found = f"boosts by the column {boosted[0]}, whose whole numbers a browser rounds"
        raise BundleError(f"{bundle}: {found}, expected other columns; index the texts with another --boost")
    kept = {name: kind for name, kind in manifest.corpus.columns.items() if name not in left_out}
    index = replace(manifest.corpus, columns=kept, other_suffixes={})  # a site is public
    options, vocabulary = read_wordpiece(bundle, manifest.model)
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out, prefix=TEMPORARY) as temporary:
        site = Path(temporary)
        files = DataFiles(site)
        on_progress("corpus", 0)
        starts = add_corpus(files, bundle, index)
        files.add("vocabulary", "\n".join(vocabulary).encode())
        on_progress("corpus", 1)
        if manifest.queries is not None:
            vectors: AnyArray = map_tensors(bundle / QUERY_TABLE)[VECTORS]
        else:
            vectors, _ = learn_table(bundle, manifest, Embedder.open(bundle, manifest.model), (), on_progress)
            if index.floor:  # it was measured with the model
                searched = replace(load_bundle(bundle), table=QueryTable(vectors))
                index = replace(index, floor=floors_of(searched, on_progress))
        for name, tensors in _query_tables(bundle, manifest, vectors).items():
            files.add_tensors(name, tensors)
        libraries = {}
        if with_model:
            from semsearch.site.browser_model import make_browser_model  # needs the extra `export`

            on_progress("model", 0)
            with installed_packages(packages) as modules:
                files.add("runtime", (modules / WASM).read_bytes())
                libraries[RUNTIME_CODE] = (modules / RUNTIME).read_text(encoding="utf-8")
            files.add("model", make_browser_model(bundle).SerializeToString())
            on_progress("model", 1)
        _check_size(bundle, files, most_megabytes)
        on_progress("page", 0)
        languages = [None] if index.keywords is None else index.keywords.stemmers
        shown = replace(manifest, corpus_or_none=index).as_json()
        described: dict[str, object] = {
            "info": {name: shown[name] for name in ("model", "index")} | {"scopes": _scopes(bundle, index)},
            "columns": list(index.columns),  # a list, because JavaScript sorts keys of an object that are whole numbers
            "left_out": left_out,
            "files": files.listed,
            "starts": starts,
            "wordpiece": options,
            "folded": folded_letters(),
            "stop_words": sorted(stop_words_of(languages)),
        }
        libraries["stemmers.js"] = stemmers_module(languages)
        code = write_page(site, index.title, described, libraries)
        last = out if keep is None or (out / CODE).is_dir() else keep
        former = copy_former(last, site, code)
        replace_files(site, out, OWN)
        if keep is not None:
            keep_site(out, keep)
        on_progress("page", 1)
    sizes = {name: files.bytes_of(name) for name in files.listed}
    return sizes if former is None else sizes | {FORMER: former}


def _scopes(bundle: Path, index: CorpusInfo) -> dict[str, list[str]]:
    """Return the values of the columns by which the box searches only the version and the language of its page."""
    columns = Columns(bundle / COLUMNS, index.columns, index.rows)
    found = {}
    for name in SCOPES:
        if index.columns.get(name) == "string":
            values = columns[name].values
            found[name] = [bytes(values[place]).decode("utf-8", "replace") for place in range(len(values))]
    return found


def rounded_columns(bundle: Path) -> list[str]:
    """Return the columns with whole numbers that JavaScript would round, so that a filter would find other texts."""
    kinds = check_bundle(bundle).corpus.columns
    numbers = [name for name, kind in kinds.items() if kind in ("number", "numbers")]
    if not numbers:
        return []
    tensors = map_tensors(bundle / COLUMNS)
    return [name for name in numbers if _has_large(tensors[f"{name}.values"])]


def _has_large(numbers: AnyArray) -> bool:
    if numbers.dtype.kind == "f":
        return False  # JavaScript has the same floats
    return max(-int(numbers.min(initial=0)), int(numbers.max(initial=0))) >= EXACT_FLOATS


def _query_tables(bundle: Path, manifest: Manifest, vectors: AnyArray) -> dict[str, dict[str, AnyArray]]:
    """Return the tensors of two files: tokens of the corpus with their vectors, and all other tokens with theirs."""
    embedder = Embedder.open(bundle, manifest.model, is_lazy=True)
    passages = Passages(bundle / PASSAGES)
    texts = embedder.tokenize([passages.text(row) for row in range(len(passages))], role="query")
    is_used = np.zeros(len(vectors), bool)
    is_used[np.concatenate([text.ids for text in texts])] = True
    return {
        name: {"tokens": np.flatnonzero(mask).astype(np.uint32), VECTORS: vectors[mask]}
        for name, mask in (("queries", is_used), ("others", ~is_used))
    }


def _check(bundle: Path, manifest: Manifest) -> None:
    info = manifest.corpus
    if info.vectors is not None:
        raise BundleError(f"{bundle}: its texts are in S3 Vectors, expected in the bundle; serve it with the function")
    if not manifest.has_model:
        found = "has no model, expected one that embeds what visitors type"
        raise BundleError(f"{bundle}: {found}; serve it with the function or `semsearch serve`")


def _check_folder(folder: Path) -> None:
    if folder.is_dir():
        names = sorted(path.name for path in folder.iterdir() if not path.name.startswith(TEMPORARY))
        if names and CODE not in names:
            raise BundleError(f"{folder}: holds {names[0]}, expected a new folder or an older site; name another")


def _check_size(bundle: Path, files: DataFiles, most_megabytes: float) -> None:
    sizes = {name: files.bytes_of(name) for name in FIRST if name in files.listed}
    total = sum(sizes.values()) / 1e6
    if total > most_megabytes:
        listed = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in sizes.items())
        raise BundleError(
            f"{bundle}: a visit would load {total:.1f} MB ({listed}), expected at most {most_megabytes:g}; serve the "
            "bundle with the function, or raise the limit with --most-megabytes"
        )
