"""The search box where React 19, Vue 3 or a script of the page makes the element."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser.page.browser import Page, Route
from tests.browser.site.conftest import Host
from tests.browser.site.test_box import NO_COLUMNS, QUESTION, OpenBox, ask, open_box, project
from tests.browser.site.world import PACKAGES

# The development build of React, because only that mounts everything twice in StrictMode. It is CommonJS.
REACT = {
    "react": "react/cjs/react.development.js",
    "scheduler": "scheduler/cjs/scheduler.development.js",
    "react-dom": "react-dom/cjs/react-dom.development.js",
    "react-dom/client": "react-dom/cjs/react-dom-client.development.js",
}
REQUIRE = """
const process = { env: {} };
const loaded = {};
function require(name) {
  if (!loaded[name]) {
    const module = { exports: {} };
    sources[name](module, module.exports);
    loaded[name] = module.exports;
  }
  return loaded[name];
}
"""
VUE = "@vue/runtime-dom/dist/runtime-dom.global.js"
# Each defines show(attributes), which mounts the element or renders it again; null unmounts it.
SHOW = {
    "html": """
const element = document.createElement("semantic-search");
function show(attributes) {
  if (!attributes) return element.remove();
  for (const name of element.getAttributeNames()) if (!(name in attributes)) element.removeAttribute(name);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  root.append(element);
}""",
    "react": """
const { createElement, StrictMode } = require("react");
const reactRoot = require("react-dom/client").createRoot(root);
function show(attributes) {
  const element = attributes && createElement("semantic-search", attributes);
  require("react-dom").flushSync(() => reactRoot.render(createElement(StrictMode, null, element)));
}""",
    "vue": """
const { h, render } = VueRuntimeDOM;
const show = (attributes) => render(attributes && h("semantic-search", attributes), root);
""",
}
FRAMEWORKS = list(SHOW)


def framework_source(framework: str) -> str:
    """Return the source of a framework for the script of a page."""
    modules = PACKAGES / "node_modules"
    match framework:
        case "react":
            functions = (
                f"{json.dumps(name)}(module, exports) {{\n{(modules / REACT[name]).read_text()}\n}}" for name in REACT
            )
            return f"const sources = {{\n{','.join(functions)}\n}};{REQUIRE}"
        case "vue":
            return (modules / VUE).read_text()
    return ""


def open_page(framework: str, project: Path, host: Host, open_box: OpenBox, attributes: dict[str, Any]) -> Page:
    """Open a page in which a framework mounts the element before search.js defines it."""
    source = framework_source(framework) + SHOW[framework]
    (project.parent / f"{framework}.js").write_text(f"{source}\nshow({json.dumps(attributes)});")
    return open_box(host(project), element=f'<div id="root"></div><script src="{framework}.js"></script>')


def show(page: Page, attributes: dict[str, Any] | None) -> None:
    page.evaluate("(attributes) => show(attributes)", attributes)


def open_and_close(page: Page, key: str) -> None:
    """Open the box by a key, and close it."""
    page.keyboard.press(key)
    page.get_by_role("combobox").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("combobox").wait_for(state="hidden")


def opens_nothing(page: Page, key: str) -> bool:
    page.keyboard.press(key)
    page.wait_for_timeout(50)  # milliseconds, in which the script of the box would be there
    is_closed: bool = page.get_by_role("combobox").count() == 0
    return is_closed


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_element_follows_its_attributes_however_often_it_is_mounted(
    framework: str, project: Path, host: Host, open_box: OpenBox
) -> None:
    page = open_page(framework, project, host, open_box, {"keys": "ctrl+j", "placeholder": "Find"})
    button = page.get_by_role("button", name="Find", exact=True)
    open_and_close(page, "Control+j")
    assert opens_nothing(page, "Control+k")
    for key in ("m", "y"):
        show(page, None)
        assert opens_nothing(page, f"Control+{key}")
        show(page, {"keys": f"ctrl+{key}", "placeholder": "Find", "limit": "1", "target": "_blank"})
        button.wait_for()
        open_and_close(page, f"Control+{key}")
        show(page, {"keys": "ctrl+j", "placeholder": "Seek", "limit": "2", "filter": '{"path": "river.html"}'})
        assert opens_nothing(page, f"Control+{key}")
        assert page.locator("semantic-search [part=button] kbd").text_content() == "ctrl j"
        page.get_by_role("button", name="Seek", exact=True).click()
        page.get_by_role("combobox", name="Seek").fill(QUESTION)
        page.get_by_role("option").first.wait_for()
        assert page.locator("semantic-search [part=hit] .heading").all_text_contents() == ["River"]
        assert page.get_by_role("option").first.get_attribute("target") is None
        page.keyboard.press("Escape")
    show(page, {})
    page.get_by_role("button", name="Search", exact=True).wait_for()
    open_and_close(page, "Control+k")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_key_for_the_api_reaches_the_element(framework: str, project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_page(framework, project, host, open_box, {"api": "api/", "api-key": "first"})
    sent: list[str] = []

    def reply(route: Route) -> None:
        sent.append(route.request.headers["authorization"])
        route.fulfill(json={"results": [], "truncated": False})

    page.route("**/api/info", lambda route: route.fulfill(json=NO_COLUMNS))
    page.route("**/api/similar", reply)
    for key in ("first", "second"):
        show(page, {"api": "api/", "api-key": key})
        with page.expect_response("**/api/similar"):
            page.keyboard.press("Control+k")
            page.get_by_role("combobox").fill(f"{key} question")
        page.keyboard.press("Escape")
    assert sent == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(("framework", "listener"), [("react", "onselect"), ("vue", "onSelect")])
def test_a_framework_listens_to_the_choice_of_a_result(
    framework: str, listener: str, project: Path, host: Host, open_box: OpenBox
) -> None:
    page = open_page(framework, project, host, open_box, {})
    page.evaluate(f"show({{ {listener}(event) {{ event.preventDefault(); window.chosen = event.detail.url; }} }})")
    ask(page)
    page.keyboard.press("Enter")
    assert page.evaluate("chosen").endswith("/project/guide/kitchen.html#walls")


PROPERTIES = {
    "keys": "ctrl+j",
    "placeholder": "Find",
    "mode": "keyword",
    "limit": "3",
    "filter": '{"path":"river.html"}',
    "target": "_blank",
    "api": "api/",
    "apiKey": "a-key",
    "key": "a-key",
}


@pytest.mark.parametrize("is_connected", [False, True])
@pytest.mark.parametrize("is_defined", [False, True])
def test_each_attribute_is_a_property_before_and_after_the_element_is_connected_and_defined(
    is_connected: bool, is_defined: bool, project: Path, host: Host, open_box: OpenBox
) -> None:
    make = f"""
        const element = document.createElement("semantic-search");
        if ({json.dumps(is_connected)}) root.append(element);
        Object.assign(element, {json.dumps(PROPERTIES)});
        root.append(element);
    """
    root = '<div id="root"></div>'
    if is_defined:
        page = open_box(host(project), element=f"{root}<semantic-search></semantic-search>")
        page.evaluate(f"() => {{ document.querySelector('semantic-search').remove(); {make} }}")
    else:
        (project.parent / "early.js").write_text(make)
        page = open_box(host(project), element=f'{root}<script src="early.js"></script>')
    element = page.locator("semantic-search")
    names = ["api-key" if name == "apiKey" else name for name in PROPERTIES]
    read = "(element, names) => names.map((name) => element.getAttribute(name))"
    assert element.evaluate(read, names) == [*PROPERTIES.values()]
    assert element.evaluate("(element, names) => names.map((name) => element[name])", [*PROPERTIES]) == [
        *PROPERTIES.values()
    ]
    assert page.get_by_role("button", name="Find", exact=True).locator("kbd").text_content() == "ctrl j"
    element.evaluate(
        "(element) => Object.assign(element, { filter: { path: 'market.html' }, limit: 2, api: undefined })"
    )
    assert element.evaluate(read, ["filter", "limit", "api"]) == ['{"path":"market.html"}', "2", None]


__all__ = ["open_box", "project"]
