"""The site for the keyboard alone, for screen readers and for narrow screens."""

from pathlib import Path
from threading import Event

import pytest

from tests.browser.page.test_accessibility import axe, focused, outside, violations
from tests.browser.site.conftest import Host, Visit, wait_until
from tests.browser.site.test_visits import found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("part", ["keyword", "offline"])
def test_axe_finds_nothing(site: Path, host: Host, visit: Visit, axe: str, scheme: str, part: str) -> None:
    own = host(site)
    if part == "keyword":
        own.held["model-"] = Event()
    page = visit(own, color_scheme=scheme, bypass_csp=True)
    wait_until(page, part)
    found(page)
    assert violations(page, axe) == []


@pytest.mark.parametrize("width", [320, 768])
@pytest.mark.parametrize("part", ["keyword", "offline"])
def test_no_screen_is_too_narrow_for_it(site: Path, host: Host, visit: Visit, width: int, part: str) -> None:
    own = host(site)
    if part == "keyword":
        own.held["model-"] = Event()
    page = visit(own, viewport={"width": width, "height": 700})
    wait_until(page, part)
    found(page)
    assert outside(page, width) == []


def test_everything_can_be_done_without_a_mouse(site: Path, host: Host, visit: Visit) -> None:
    page = visit(host(site))
    wait_until(page, "offline")
    assert focused(page) == "query"
    page.keyboard.type("the baker")
    page.locator("li.hit").first.wait_for()
    page.wait_for_function("() => shown.request.text === 'the baker' && !hits.hasAttribute('aria-busy')")
    page.keyboard.press("ArrowDown")
    assert focused(page) == page.locator("li.hit .text").first.text_content()
    page.keyboard.press("Escape")
    assert focused(page) == "query"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type("")
    assert page.evaluate("document.activeElement.value") in ("keyword", "semantic")


__all__ = ["axe"]
