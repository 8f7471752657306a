"""The Chromium of this machine, for the tests of the page and for its picture.

Playwright drives it. `make test-page` installs Playwright into a folder of its own, because nothing else needs it.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tests.project import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Response, Route
else:  # Playwright is not installed where its tests are skipped
    Browser = Page = Response = Route = Any

__all__ = ["INSECURE", "TOOLS", "Browser", "Page", "Response", "Route", "browser_problem", "open_browser"]

TOOLS = ROOT / "build" / "page-tools"
INSECURE = "site.test"  # a name of this machine that is no secure context to the browser, unlike 127.0.0.1
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser_problem() -> str | None:
    """Return why no browser can be started on this machine; None if one can."""
    if not any(map(shutil.which, NAMES)):
        return "no Chromium is installed; on Debian, `apt-get install chromium` installs it"
    if str(TOOLS) not in sys.path:
        sys.path.append(str(TOOLS))  # last, so that the project's packages come from its own environment
    if find_spec("playwright") is None:
        return f"{TOOLS}: Playwright is not there; run `make test-page`, which installs it"
    return None


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the machine's Chromium without a window, and stop it at the end. Raises SystemExit if there is none."""
    if (problem := browser_problem()) is not None:
        raise SystemExit(problem)
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, NAMES)))
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's sandbox refuses to work for root
    arguments = [*as_root, f"--host-resolver-rules=MAP {INSECURE} 127.0.0.1"]
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=arguments) as browser,
    ):
        yield browser
