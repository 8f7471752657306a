"""Write the page of a static site, its search box, and the code of both."""

import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path

from semsearch.site.data import HASH

PAGE_FOLDER = Path(__file__).parents[1] / "app" / "page"
BROWSER = Path(__file__).parent / "browser"
SERVICE_WORKER, OWN_STYLE, PAGE, BOX, BOX_TEXTS = "service-worker.js", "site.css", "page.js", "search.js", "texts.js"
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
NO_FOLDER = b"code/HASH"  # in search.js, what becomes the folder of the code
HEAD = '<meta name="color-scheme"'
TITLE = "Semantic search"
NO_SCRIPT = re.compile(r"(This page needs JavaScript\.)[^<]*(<code>.*?</code>[^<]*)?")


def write_page(site: Path, title: str, described: dict[str, object], libraries: Mapping[str, str]) -> str:
    """Write index.html, search.js, the service worker and the folder with the code, and return that folder's path.

    The folder is named by the hash of its files. The scripts of the page become one file, page.js, and the modules of
    the worker another, worker/worker.js, because a browser requests modules that import each other one after the
    other. search.js, whose address stays the same, has the element and the texts of the box in one file: where only
    a cache has the search.js of an older build, its button works without the older folder.

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
    box = contents[BOX_TEXTS] + IMPORT.sub(b"", contents.pop(BOX))
    contents[f"{WORKER}/{WORKER}.js"] = _joined(modules, f"{WORKER}/{WORKER}.js")
    contents["site.json"] = json.dumps(described | {"code": sorted([*contents, "site.json"])}).encode()
    digest = hashlib.sha256()
    for name, content in sorted(contents.items()):
        digest.update(f"{name} {len(content)} ".encode() + content)
    folder = f"{CODE}/{digest.hexdigest()[:HASH]}"
    for name, content in contents.items():
        path = site / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (site / SERVICE_WORKER).write_bytes(service_worker)
    (site / BOX).write_bytes(box.replace(NO_FOLDER, folder.encode()))
    page = _own_page(page, folder, has_runtime=RUNTIME_CODE in libraries).replace(TITLE, escape(title or TITLE))
    (site / "index.html").write_text(page, encoding="utf-8")
    return folder


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
