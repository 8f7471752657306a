"""The site for screen readers and for narrow screens."""

from pathlib import Path
from threading import Event

import pytest

from tests.browser.page.test_accessibility import axe, outside, violations
from tests.browser.site.conftest import Host, Visit, wait_until
from tests.browser.site.test_visits import found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("part", ["keyword", "offline"])
def test_axe_finds_nothing_and_no_screen_is_too_narrow(
    site: Path, host: Host, visit: Visit, axe: str, scheme: str, part: str
) -> None:
    own = host(site)
    if part == "keyword":
        own.held["model-"] = Event()
    page = visit(own, color_scheme=scheme, bypass_csp=True, viewport={"width": 320, "height": 700})
    wait_until(page, part)
    found(page)
    assert outside(page, 320) == []
    assert violations(page, axe) == []


__all__ = ["axe"]
