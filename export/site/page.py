"""The search page as files of a site: function/page/ with the worker in the place of the server.

A static host cannot send a Content-Security-Policy, so the page has it in a meta element.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path

import function
from export.site.data_files import HASH

PAGE = Path(function.__file__).parent / "page"
BROWSER = Path(__file__).parent / "browser"
SERVICE_WORKER, OWN_STYLE, SERVER = "service-worker.js", "site.css", "server.js"
CODE, WORKER = "code", "worker"
POLICY = {
    "default-src": "'none'",
    "script-src": "'self' 'wasm-unsafe-eval'",  # onnxruntime-web compiles WebAssembly
    "worker-src": "'self'",
    "style-src": "'self'",
    "img-src": "data:",  # the icon
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "site",
}
NAMED = re.compile(r'(<link rel="stylesheet" href="|<script src=")([\w.-]+)"')
HEAD = '<meta name="color-scheme"'
TITLE = "Semantic search"
NO_SCRIPT = re.compile(r"(This page needs JavaScript\.)[^<]*(<code>.*?</code>[^<]*)?")


def write_page(site: Path, title: str, described: dict[str, object], libraries: Mapping[str, str]) -> None:
    """Write index.html, the service worker and the folder with the code, which is named by the hash of its files.

    title is that of the corpus, "" if it has none. described is the content of site.json, to which the names of the
    files of code are added. libraries are the sources of further modules by their names.
    """
    contents = {
        path.relative_to(folder).as_posix(): path.read_bytes() for folder in (PAGE, BROWSER) for path in _files(folder)
    }
    page, service_worker = contents.pop("index.html").decode(), contents.pop(SERVICE_WORKER)
    contents["page.css"] += contents.pop(OWN_STYLE)
    contents |= {f"{WORKER}/{name}": source.encode() for name, source in libraries.items()}
    contents["site.json"] = json.dumps(described | {"code": sorted([*contents, "site.json"])}).encode()
    digest = hashlib.sha256()
    for name, content in sorted(contents.items()):
        digest.update(f"{name} {len(content)} ".encode() + content)
    folder = f"{CODE}/{digest.hexdigest()[:HASH]}"
    (site / folder / WORKER).mkdir(parents=True)
    for name, content in contents.items():
        (site / folder / name).write_bytes(content)
    (site / SERVICE_WORKER).write_bytes(service_worker)
    (site / "index.html").write_text(_own_page(page, folder).replace(TITLE, escape(title or TITLE)), encoding="utf-8")


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _own_page(page: str, folder: str) -> str:
    """Return index.html with its policy and with the paths of the code."""
    policy = "; ".join(f"{name} {value}" for name, value in POLICY.items())
    page = NAMED.sub(rf'\1{folder}/\2"', page)
    page = NO_SCRIPT.sub(r"\1", page)
    return page.replace(HEAD, f'<meta http-equiv="content-security-policy" content="{policy}">\n{HEAD}', 1)
