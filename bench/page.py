"""Take the picture of the page in the README: a bundle of Python's documentation, served and searched in a browser."""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from bench.browser import open_browser
from bench.folders import PROJECT
from bench.report import console

PICTURE = PROJECT / "docs" / "page.png"
QUESTION = "run another program and read what it prints"
WIDTH, HEIGHT = 820, 620  # CSS pixels; the picture has twice as many
COLOURS = 128  # enough for text and bars


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "--bundle", type=Path, default=Path("bundle"), help="default: bundle/, that `make demo` exports"
    )
    parser.add_argument("--out", type=Path, default=PICTURE, help="default: docs/page.png")


def run(options: argparse.Namespace) -> int:
    """Serve the bundle, search and write the picture; return the exit code."""
    from PIL import Image

    with serve(options.bundle) as address, open_browser() as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=2)
        page.goto(address)
        for text in ("warm up", QUESTION):  # the first request is slower, and tells of the start
            with page.expect_response("**/similar"):
                page.get_by_label("Search for").fill(text)
            page.locator("#hits:not([aria-busy]) li.hit").first.wait_for()
        picture = Image.open(BytesIO(page.screenshot(caret="hide")))
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(options.out, optimize=True)
    console.print(f"{options.out}: {options.out.stat().st_size / 1000:.0f} kB")
    return 0


@contextmanager
def serve(bundle: Path) -> Iterator[str]:
    """Serve a bundle with `python -m function` and return its address; SystemExit with its words if it does not run."""
    command = [sys.executable, "-m", "function", "--bundle", str(bundle), "--port", "0"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = ""
        for line in server.stderr:
            said += line
            if found := re.search(r"running on (\S+)", line):
                try:
                    yield found[1]
                finally:
                    server.terminate()
                return
    raise SystemExit(said.strip())
