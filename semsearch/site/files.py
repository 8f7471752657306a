"""The files of a static site: its page, its search box, its data, the corpus's files and the JavaScript packages."""

import hashlib
import json
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

import numpy as np

import semsearch
from semsearch.engine.bundle import COLUMNS, INDEX, KEYWORDS, PASSAGES, IndexInfo
from semsearch.engine.metadata.columns import PARTS, SECTIONS
from semsearch.engine.passages import Passages
from semsearch.engine.tensors import AnyArray, map_tensors
from semsearch.indexing.errors import PackagesError
from semsearch.indexing.tensor_files import save_tensors

PAGE_FOLDER = Path(semsearch.__file__).parent / "app" / "page"
BROWSER = Path(__file__).parent / "browser"
SERVICE_WORKER, OWN_STYLE, PAGE, BOX = "service-worker.js", "site.css", "page.js", "search.js"
CODE, WORKER = "code", "worker"
RUNTIME_CODE = "ort.js"  # onnxruntime-web, in a site with the model
WASM_POLICY = " 'wasm-unsafe-eval'"  # onnxruntime-web compiles WebAssembly
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "worker-src": "'self'",
    "style-src": "'self'",
    "img-src": "data:",  # the icon
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "semantic-search",
}
NAMED = re.compile(r'(<link rel="stylesheet" href="|<script src=")([\w.-]+)"')
SCRIPTS = re.compile(r'(?:<script src="[\w.-]+"></script>\n)+')
# what a script of the page has only because the box imports it as a module
MODULE_LINES = re.compile(rb"^(?:import .*\n|export )", re.MULTILINE)
IMPORT = re.compile(rb'^import .* from "\./(.*)";\n', re.MULTILINE)
HEAD = '<meta name="color-scheme"'
TITLE = "Semantic search"
NO_SCRIPT = re.compile(r"(This page needs JavaScript\.)[^<]*(<code>.*?</code>[^<]*)?")


def write_page(site: Path, title: str, described: dict[str, object], libraries: Mapping[str, str]) -> None:
    """Write index.html, search.js, the service worker and the folder with the code, named by the hash of its files.

    The scripts of the page become one file, page.js, and the modules of the worker another, worker/worker.js, because
    a browser requests modules that import each other one after the other. search.js, whose address stays the same,
    loads the box from the folder.

    title is the title of the corpus, "" if it has none. described is the content of site.json; this function adds the
    names of the files of code. libraries has the sources of further modules of the worker by name.
    """
    contents = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for folder in (PAGE_FOLDER, BROWSER)
        for path in _files(folder)
    }
    page, service_worker = contents.pop("index.html").decode(), contents.pop(SERVICE_WORKER)
    scripts = {name: contents[name] for name in re.findall(r'<script src="([\w.-]+)"', page)}
    for name in [name for name, script in scripts.items() if not MODULE_LINES.search(script)]:
        del contents[name]
    contents[PAGE] = b"".join(MODULE_LINES.sub(b"", script) for script in scripts.values())
    contents["page.css"] += contents.pop(OWN_STYLE)
    contents |= {f"{WORKER}/{name}": source.encode() for name, source in libraries.items()}
    runtime = f"{WORKER}/{RUNTIME_CODE}"
    modules = {name: contents.pop(name) for name in [*contents] if name.startswith(WORKER) and name != runtime}
    contents[f"{WORKER}/{WORKER}.js"] = _joined(modules, f"{WORKER}/{WORKER}.js")
    contents["site.json"] = json.dumps(described | {"code": sorted([*contents, "site.json"])}).encode()
    digest = hashlib.sha256()
    for name, content in sorted(contents.items()):
        digest.update(f"{name} {len(content)} ".encode() + content)
    folder = f"{CODE}/{digest.hexdigest()[:HASH]}"
    (site / folder / WORKER).mkdir(parents=True)
    for name, content in contents.items():
        (site / folder / name).write_bytes(content)
    (site / SERVICE_WORKER).write_bytes(service_worker)
    (site / BOX).write_text(f'export * from "./{folder}/{BOX}";\n', encoding="utf-8")
    page = _own_page(page, folder, has_runtime=RUNTIME_CODE in libraries).replace(TITLE, escape(title or TITLE))
    (site / "index.html").write_text(page, encoding="utf-8")


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".ts")


def _joined(modules: dict[str, bytes], name: str) -> bytes:
    """Return a module after all modules that it imports, each once. All are removed from `modules`."""
    source = modules.pop(name, b"")
    imported = [_joined(modules, f"{WORKER}/{other.decode()}") for other in IMPORT.findall(source)]
    return b"".join([*imported, IMPORT.sub(b"", source)])


def _own_page(page: str, folder: str, *, has_runtime: bool) -> str:
    policy = "; ".join(f"{name} {value}" for name, value in POLICY.items())
    if has_runtime:
        policy = policy.replace("script-src 'self'", f"script-src 'self'{WASM_POLICY}")
    page = NAMED.sub(rf'\1{folder}/\2"', SCRIPTS.sub(f'<script src="{PAGE}"></script>\n', page))
    page = NO_SCRIPT.sub(r"\1", page)
    return page.replace(HEAD, f'<meta http-equiv="content-security-policy" content="{policy}">\n{HEAD}', 1)


FOLDER = "data"
GZIP = 16 + zlib.MAX_WBITS  # selects zlib's gzip format, without a time in the header: the same bytes each time
HASH = 16  # hexadecimal digits of a hash in a name


class DataFiles:
    """The data files of one site; `listed` has the path, the bytes and the SHA-256 of each by its name."""

    def __init__(self, site: Path) -> None:
        """Take the site's folder."""
        self._site = site
        self.listed: dict[str, dict[str, str | int]] = {}
        (site / FOLDER).mkdir()

    def add(self, name: str, content: bytes) -> None:
        """Write one file, gzipped."""
        # vectors repeat nothing: without a search for repetitions they become a sixth smaller
        packed = min((_gzip(content, strategy) for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY)), key=len)
        digest = hashlib.sha256(packed).hexdigest()
        path = f"{FOLDER}/{name}-{digest[:HASH]}.bin"
        (self._site / path).write_bytes(packed)
        self.listed[name] = {"path": path, "bytes": len(packed), "sha256": digest}

    def add_tensors(self, name: str, tensors: dict[str, AnyArray]) -> None:
        """Write tensors as one safetensors file, offsets in 32 bits, which JavaScript reads as numbers."""
        narrow = dict(tensors)
        for key, tensor in tensors.items():
            if _is_offset(key, tensor):
                narrow[key] = tensor.astype(np.uint32)
        with NamedTemporaryFile() as file:
            save_tensors(Path(file.name), narrow)
            self.add(name, Path(file.name).read_bytes())

    def bytes_of(self, *names: str) -> int:
        """Return the sum of the bytes of these files."""
        return sum(int(self.listed[name]["bytes"]) for name in names)


def _gzip(content: bytes, strategy: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, GZIP, zlib.DEF_MEM_LEVEL, strategy)
    return packer.compress(content) + packer.flush()


def _is_offset(name: str, tensor: AnyArray) -> bool:
    return tensor.dtype == np.uint64 and name.endswith("offsets")


SHARD = 1 << 18  # bytes of passages from which on a shard ends, before it is gzipped


def add_corpus(files: DataFiles, bundle: Path, index: IndexInfo) -> list[int]:
    """Write the data files of the corpus, and return the first row of each shard of passages."""
    tensors = map_tensors(bundle / INDEX)
    files.add_tensors("index", {name: tensor for name, tensor in tensors.items() if name != "bits"})
    if index.keywords is not None:
        _add_keywords(files, bundle / KEYWORDS)
    if index.columns:
        columns = map_tensors(bundle / COLUMNS)
        for number, name in enumerate(index.columns):
            parts = {part: columns[key] for part in PARTS if (key := f"{name}.{part}") in columns}
            files.add_tensors(f"column-{number}", parts)
        if SECTIONS in columns:
            files.add_tensors(SECTIONS, {SECTIONS: columns[SECTIONS]})
    return _add_passages(files, Passages(bundle / PASSAGES))


def _add_keywords(files: DataFiles, path: Path) -> None:
    """Write the postings, and the words as another file, which only a misspelled word needs.

    The terms become one text with a term in each line, which a browser reads at once.
    """
    tensors = map_tensors(path)
    strings = tensors.strings("terms", "terms.offsets").check()
    terms = np.insert(strings.content, strings.offsets[1:-1].astype(np.intp), ord("\n"))
    kept = {name: tensors[name] for name in ("postings.offsets", "rows", "impacts", "scales")}
    files.add_tensors("keywords", {"terms": terms} | kept)
    files.add("words", tensors["words"].tobytes().rstrip(b"\n"))


def _add_passages(files: DataFiles, passages: Passages) -> list[int]:
    starts: list[int] = []
    shard: list[str] = []
    size = 0
    for row in range(len(passages) + 1):
        if row == len(passages) or size >= SHARD:
            files.add(f"passages-{len(starts)}", f"[{','.join(shard)}]".encode())
            starts.append(row - len(shard))
            shard, size = [], 0
        if row < len(passages):
            passage = passages[row]
            shard.append(json.dumps([passage.id, passage.text, passage.metadata], ensure_ascii=False))
            size += len(shard[-1])
    ids = [passages.id(row) for row in range(len(passages))]
    files.add("ids", json.dumps(ids, ensure_ascii=False).encode())
    return starts


HERE = Path(__file__).parent
PACKAGE_FILES = ("package.json", "package-lock.json")
INSTALL = ("ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund")
RUNTIME = "onnxruntime-web/dist/ort.wasm.bundle.min.mjs"
WASM = "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm"  # uses one thread unless the page is isolated
STEMMER = "porter2/dist/index.js"


def find_program(name: str) -> str:
    """Return the path of node or npm. Raises PackagesError if it is not installed."""
    path = shutil.which(name)
    if path is None:
        raise PackagesError(f"{name}: is not installed, expected Node.js 20 or newer; get it from https://nodejs.org")
    return path


@contextmanager
def installed_packages(folder: Path | None) -> Iterator[Path]:
    """Yield a folder node_modules with the packages: in `folder`, or in a temporary folder that npm fills.

    Raises PackagesError if npm is missing or fails.
    """
    if folder is not None:
        yield folder / "node_modules"
        return
    npm = find_program("npm")
    with TemporaryDirectory() as temporary:
        for name in PACKAGE_FILES:
            shutil.copy(HERE / name, temporary)
        done = subprocess.run([npm, *INSTALL], cwd=temporary, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            said = next((line for line in done.stderr.splitlines() if " error " in line), "no reason")
            expected = f"the packages of {HERE / PACKAGE_FILES[1]}"
            raise PackagesError(f"npm ci: exit {done.returncode} ({said}); expected {expected}; try `npm ping`")
        yield Path(temporary) / "node_modules"
