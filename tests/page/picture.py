"""python -m tests.page.picture: take a picture of the page for the documents, after `make demo` and `make test-page`.

By default it serves the bundle of Python's documentation and writes the README's docs/page.png.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from tests.page.browser import open_browser
from tests.project import ROOT

QUESTION = "run another program and capture its output"
WIDTH, HEIGHT = 820, 620  # CSS pixels; the picture has twice as many
COLOURS = 128  # enough for text and bars


def main() -> None:
    """Serve the bundle, search and write the picture."""
    parser = argparse.ArgumentParser("python -m tests.page.picture", description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="default: bundle/")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "page.png", help="default: docs/page.png")
    parser.add_argument("--question", default=QUESTION, help=f"default: {QUESTION}")
    options = parser.parse_args()
    from PIL import Image

    with open_browser() as browser, serve(options.bundle) as address:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=2)
        page.goto(address)
        for text in ("warm up", options.question):  # the first request is slower, and its reply reports the start
            with page.expect_response("**/similar"):
                page.get_by_label("Search for").fill(text)
            page.locator("#hits:not([aria-busy]) li.hit").first.wait_for()
        picture = Image.open(BytesIO(page.screenshot(caret="hide")))
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(options.out, optimize=True)
    print(f"{options.out}: {options.out.stat().st_size / 1000:.0f} kB")


@contextmanager
def serve(bundle: Path) -> Iterator[str]:
    """Serve a bundle with `python -m function` and yield its address. Raises SystemExit if it does not start."""
    command = [sys.executable, "-m", "function", "--bundle", str(bundle.absolute()), "--port", "0"]
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
