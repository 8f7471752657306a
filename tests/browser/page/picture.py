"""Take a picture of the page for the documents: python -m tests.browser.page.picture, after `make test-page`.

By default it serves the bundle of Python's documentation and writes the README's docs/page.png. --box build/docs-site
takes one of the search box in the documentation that `make docs` has written; write it to --out docs/box.png.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from bench.browser import Rate, serving
from tests.browser.page.browser import open_browser
from tests.project import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

QUESTION = "run another program and capture its output"
BEHIND = "docs/python/"  # behind the box
WIDTH, HEIGHT = 820, 620  # CSS pixels; the picture has twice as many
COLOURS = 128  # enough for text and bars


def main() -> None:
    """Serve the bundle, search and write the picture."""
    parser = argparse.ArgumentParser("python -m tests.browser.page.picture", description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="default: bundle/")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "page.png", help="default: docs/page.png")
    parser.add_argument("--question", default=QUESTION, help=f"default: {QUESTION}")
    parser.add_argument("--box", type=Path, metavar="SITE", help="the search box of this site instead of the page")
    options = parser.parse_args()
    from PIL import Image

    served = serve(options.bundle) if options.box is None else serving(options.box, Rate())
    search = _search_page if options.box is None else _search_box
    with open_browser() as browser, served as address:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=2)
        search(page, address, options.question)
        picture = Image.open(BytesIO(page.screenshot(caret="hide")))
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(options.out, optimize=True)
    print(f"{options.out}: {options.out.stat().st_size / 1000:.0f} kB")


def _search_page(page: "Page", address: str, question: str) -> None:
    page.goto(address)
    for text in ("warm up", question):  # the first request is slower, and its reply reports the start
        with page.expect_response("**/similar"):
            page.get_by_label("Search for").fill(text)
        page.locator("#hits:not([aria-busy]) li.hit").first.wait_for()


def _search_box(page: "Page", address: str, question: str) -> None:
    page.goto(address + BEHIND)
    page.evaluate("import('/find/search.js').then(({ open }) => open()).then((search) => search.load())")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill(question)
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("ArrowDown")


@contextmanager
def serve(bundle: Path) -> Iterator[str]:
    """Serve a bundle with `semsearch serve` and yield its address. Raises SystemExit if it does not start."""
    command = [sys.executable, "-m", "semsearch", "serve", str(bundle.absolute()), "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        printed = ""
        for line in server.stderr:
            printed += line
            if found := re.search(r"running on (\S+)", line):
                try:
                    yield found[1]
                finally:
                    server.terminate()
                return
    raise SystemExit(printed.strip())


if __name__ == "__main__":
    main()
