"""Take a picture of the page for the documents: python -m tests.browser.page.picture, after `make test-page`.

By default it serves the bundle of Python's documentation and writes the README's docs/page.png. --box build/docs-site
takes one of the search box in the documentation that `make docs` has written; write it to --out docs/box.png. --all
takes four of the box, on a desktop and on a phone, light and dark, such as those of docs/search-box.md:

    python -m tests.browser.page.picture --all --box SITE --behind docs/intro/ --question "create a page" --out PICTURE

SITE is a built site with the search in its folder find/.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tests.browser.page.browser import open_browser
from tests.browser.page.static import Rate, serving
from tests.project import ROOT
from tests.server.running import address_of, started

if TYPE_CHECKING:
    from PIL.Image import Image
    from playwright.sync_api import Page

QUESTION = "run another program and capture its output"
WIDTH, HEIGHT = 820, 620  # CSS pixels; the picture has twice as many
COLOURS = 128  # enough for text and bars
WARM_UPS = 15
DESKTOP, PHONE = (900, 640), (360, 640)  # CSS pixels of the four pictures of --all


def main() -> None:
    """Serve the bundle, search and write the picture."""
    parser = argparse.ArgumentParser("python -m tests.browser.page.picture", description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="default: bundle/")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "page.png", help="default: docs/page.png")
    parser.add_argument("--question", default=QUESTION, help=f"default: {QUESTION}")
    parser.add_argument("--box", type=Path, metavar="SITE", help="the search box of this site instead of the page")
    parser.add_argument(
        "--behind", default="docs/python/", help="page of the site behind the box; default: %(default)s"
    )
    parser.add_argument("--all", action="store_true", help="four pictures of the box, side by side")
    options = parser.parse_args()
    from PIL import Image

    served = serve(options.bundle) if options.box is None else serving(options.box, Rate())
    search = _search_page if options.box is None else _search_box
    with open_browser() as browser, served as address:
        pictures = []
        for (width, height), scheme in _views(is_all=options.all):
            page = browser.new_page(
                viewport={"width": width, "height": height},
                device_scale_factor=1 if options.all else 2,
                color_scheme=scheme,
            )
            search(page, address + ("" if options.box is None else options.behind), options.question)
            pictures.append(Image.open(BytesIO(page.screenshot(caret="hide"))))
        picture = _side_by_side(pictures)
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(options.out, optimize=True)
    print(f"{options.out}: {options.out.stat().st_size / 1000:.0f} kB")


def _views(*, is_all: bool) -> "list[tuple[tuple[int, int], Literal['light', 'dark']]]":
    """Return the size and the colour scheme of each picture."""
    if not is_all:
        return [((WIDTH, HEIGHT), "light")]
    return [(DESKTOP, "light"), (PHONE, "light"), (DESKTOP, "dark"), (PHONE, "dark")]


def _side_by_side(pictures: "list[Image]") -> "Image":
    """Return one picture, or four in two rows."""
    from PIL import Image

    if len(pictures) == 1:
        return pictures[0]
    (width, height), narrow = pictures[0].size, pictures[1].size[0]
    whole = Image.new("RGB", (width + narrow, 2 * height))
    for number, picture in enumerate(pictures):
        whole.paste(picture, (width * (number % 2), height * (number // 2)))
    return whole


def _search_page(page: "Page", address: str, question: str) -> None:
    page.goto(address)
    for text in [f"warm up {number}" for number in range(WARM_UPS)] + [question]:  # the first requests are slower
        with page.expect_response("**/similar"):
            page.get_by_label("Search for").fill(text)
        page.locator("#hits:not([aria-busy]) li.hit").first.wait_for()


def _search_box(page: "Page", address: str, question: str) -> None:
    page.goto(address)
    page.evaluate("import('/find/search.js').then(({ open }) => open()).then((search) => search.load())")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill(question)
    page.locator("[part=hit]").first.wait_for()
    page.wait_for_timeout(500)  # milliseconds in which a theme ends its transitions


@contextmanager
def serve(bundle: Path) -> Iterator[str]:
    """Serve a bundle with `semsearch serve` and yield its address."""
    with started(bundle.absolute()) as server:
        yield address_of(server)


if __name__ == "__main__":
    main()
