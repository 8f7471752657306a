"""GET /: a page to search with, as one file that asks for nothing else. Imported by the first request for it.

semsearch/app/page/ has the sources. index.html names its style and its scripts as any page does. Here they are put into
it, and the Content-Security-Policy allows just them, by their hashes, and requests to this server.
"""

import re
import zlib
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from semsearch.app.middleware import GZIP_FORMAT, takes_gzip

SOURCES = Path(__file__).parents[1] / "page"
STYLE = re.compile(r'<link rel="stylesheet" href="([\w.-]+)">')
SCRIPT = re.compile(r'<script src="([\w.-]+)"></script>')
OF_MODULES = re.compile(r"^(?:import .*\n|export )", re.MULTILINE)  # what scripts have that a search box imports too


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The page as it is sent, plain and compressed, with the headers that depend on it."""

    plain: bytes
    compressed: bytes
    headers: dict[str, str]


@cache
def load_page(sources: Path = SOURCES) -> SearchPage:
    """Return the page that these sources make; made once. Raises OSError if a file that index.html names is missing."""
    hashes: dict[str, list[str]] = {"style": [], "script": []}

    def put_in(match: re.Match[str], tag: str) -> str:
        content = "\n" + OF_MODULES.sub("", (sources / match[1]).read_text(encoding="utf-8"))
        hashes[tag].append(f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'")
        return f"<{tag}>{content}</{tag}>"

    text = (sources / "index.html").read_text(encoding="utf-8")
    text = STYLE.sub(lambda match: put_in(match, "style"), text)
    text = SCRIPT.sub(lambda match: put_in(match, "script"), text)
    plain = text.encode()
    policy = {
        "default-src": "'none'",
        "script-src": " ".join(hashes["script"]),
        "style-src": " ".join(hashes["style"]),
        "img-src": "data:",  # the icon
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",  # no text becomes HTML, whatever a script does with it
    }
    headers = {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "etag": f'W/"{sha256(plain).hexdigest()[:32]}"',  # weak: the same for the plain and the compressed bytes
        "cache-control": "no-cache",  # may be kept, and is asked for again with its ETag
        "vary": "accept-encoding",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",  # the address holds the query
    }
    return SearchPage(plain, zlib.compress(plain, 9, GZIP_FORMAT), headers)


def page_reply(request: Request) -> Response:
    """Return the page, compressed where the caller takes that; 304 without a body if the caller has it already."""
    page = load_page()
    if page.headers["etag"].removeprefix("W/") in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=page.headers)
    if takes_gzip(request.scope):
        headers = page.headers | {"content-encoding": "gzip"}
        return Response(page.compressed, headers=headers, media_type="text/html")
    return Response(page.plain, headers=page.headers, media_type="text/html")
