"""Take every picture of the documents: `make pictures`, which first makes what they show."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tests.browser.page.browser import Browser, Page, open_browser
from tests.browser.page.static import Rate, serving
from tests.browser.site import pictured
from tests.project import ROOT
from tests.server.running import address_of, started

if TYPE_CHECKING:
    from PIL.Image import Image

BUILD = ROOT / "build"
PAGE = (820, 620)  # CSS pixels of the picture of a page; it has twice as many pixels
DESKTOP, PHONE = (900, 640), (360, 640)  # CSS pixels of the four pictures of a box
COLOURS = 128  # enough for text and bars
WARM_UPS = 15

Scheme = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in docs/ of the page over a bundle, or of the box over a page of a site."""

    name: str
    folder: Path  # bundle, or site with its search in find/
    question: str
    behind: str | None = None  # page of the site behind the box; None for a bundle
    is_all: bool = False  # on a desktop and on a phone, light and dark; otherwise one


PICTURES = [
    Picture("page.png", ROOT / "bundle", "run another program and capture its output"),
    Picture("page-documents.png", BUILD / "docs-bundle", "continue an export that was stopped"),
    Picture("box.png", BUILD / "docs-site", "how much does a million requests cost", "docs/python/"),
    Picture("box-material.png", BUILD / "docs-site", "go back to the version before", "docs/python/", is_all=True),
    Picture("box-docusaurus.png", pictured.DOCUSAURUS, "create a page", "docs/intro/", is_all=True),
    Picture("box-furo.png", pictured.FURO, "Search.search_many", "searching.html", is_all=True),
    Picture("box-html.png", pictured.HTML, "divide documents", "relevance.html", is_all=True),
]


def main() -> None:
    """Write the sites, and then take the pictures."""
    shutil.rmtree(pictured.FOLDER, ignore_errors=True)
    pictured.write_html()
    pictured.write_furo()
    pictured.write_docusaurus()
    with open_browser() as browser:
        for picture in PICTURES:
            take(browser, picture)


def take(browser: Browser, picture: Picture) -> None:
    """Search, and write the picture into docs/."""
    from PIL import Image

    views: list[tuple[tuple[int, int], Scheme]] = [(PAGE, "light")]
    if picture.is_all:
        views = [(DESKTOP, "light"), (PHONE, "light"), (DESKTOP, "dark"), (PHONE, "dark")]
    shots = []
    with serve(picture.folder) if picture.behind is None else serving(picture.folder, Rate()) as address:
        for (width, height), scheme in views:
            page = browser.new_page(
                viewport={"width": width, "height": height},
                device_scale_factor=1 if picture.is_all else 2,
                color_scheme=scheme,
            )
            if picture.behind is None:
                _search_page(page, address, picture.question)
            else:
                _search_box(page, address + picture.behind, picture.question)
            shots.append(Image.open(BytesIO(page.screenshot(caret="hide"))))
            page.close()
    out = ROOT / "docs" / picture.name
    whole = _side_by_side(shots) if picture.is_all else shots[0]
    whole.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(out, optimize=True)
    print(f"{out}: {out.stat().st_size / 1000:.0f} kB")


def _side_by_side(shots: "list[Image]") -> "Image":
    """Return four pictures in two rows."""
    from PIL import Image

    (width, height), narrow = shots[0].size, shots[1].size[0]
    whole = Image.new("RGB", (width + narrow, 2 * height))
    for number, shot in enumerate(shots):
        whole.paste(shot, (width * (number % 2), height * (number // 2)))
    return whole


def _search_page(page: Page, address: str, question: str) -> None:
    page.goto(address)
    for text in [f"{number} {question}" for number in range(WARM_UPS)] + [question]:  # the first requests are slower
        with page.expect_response("**/similar"):
            page.get_by_label("Search for").fill(text)
        page.locator("#hits:not([aria-busy]) li.hit").first.wait_for()


def _search_box(page: Page, address: str, question: str) -> None:
    page.goto(address)
    page.evaluate("import('/find/search.js').then(({ open }) => open()).then((search) => search.load())")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill(question)
    page.locator("[part=hit]").first.wait_for()
    page.wait_for_timeout(500)  # milliseconds in which a theme ends its transitions


@contextmanager
def serve(bundle: Path) -> Iterator[str]:
    """Serve a bundle with `semsearch serve` and yield its address."""
    with started(bundle) as server:
        yield address_of(server)


if __name__ == "__main__":
    main()
