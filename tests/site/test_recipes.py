"""The code in docs/search-box.md parses, and names attributes, options and files that exist."""

import ast
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.project import ROOT

PAGE = (ROOT / "docs" / "search-box.md").read_text(encoding="utf-8")
SITE = ROOT / "semsearch" / "site"
ELEMENT = re.compile(r"<semantic-search((?:\s[^>]*)?)>")
ANY_ELEMENT = {"lang", "style"}  # attributes of any element that the page uses
EVENTS = {"onselect"}  # as React calls them


def blocks(language: str) -> list[str]:
    """Return the blocks of code in a language, of which the page has at least one."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    return found


def attributes() -> set[str]:
    """Return the attributes of the element, from its source."""
    source = (SITE / "browser" / "search.js").read_text(encoding="utf-8")
    (properties,) = re.findall(r"^const PROPERTIES = \[(.*?)^\];", source, re.DOTALL | re.MULTILINE)
    return {
        re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", name) for name in re.findall(r'"(\w+)"', properties)
    }


def mkdocs_options() -> dict[str, Any]:
    (config,) = (read for each in blocks("yaml") if "plugins" in (read := yaml.safe_load(each)))
    options: dict[str, Any] = config["plugins"][0]["semantic-search"]
    return options


def sphinx_options() -> dict[str, Any]:
    (code,) = blocks("python")
    return {each.targets[0].id: ast.literal_eval(each.value) for each in ast.parse(code).body}  # type: ignore[attr-defined]


def test_each_attribute_exists() -> None:
    tags = [tag for language in ("html", "jsx") for block in blocks(language) for tag in ELEMENT.findall(block)]
    named = {name for tag in tags for name in re.findall(r"\s([\w-]+)=", tag)}
    scripts = "".join(blocks("js"))
    (written,) = re.findall(r"attributes = \{(.*)\}", scripts)
    named |= set(re.findall(r"(\w+): ", re.sub('".*?"', "", written)))
    named |= set(re.findall(r'setAttribute\("([\w-]+)"', scripts))
    named |= set(mkdocs_options()["attributes"]) | set(sphinx_options()["semsearch_attributes"])
    assert {"keys", "placeholder", "api-key", "style"} <= named <= attributes() | ANY_ELEMENT | EVENTS


def test_each_option_of_the_plugin_and_of_the_extension_is_there() -> None:
    plugin = (SITE / "mkdocs_plugin.py").read_text(encoding="utf-8")
    assert set(mkdocs_options()) == set(re.findall(r"^    (\w+) = config_options", plugin, re.MULTILINE))
    extension = (SITE / "sphinx_extension.py").read_text(encoding="utf-8")
    defined = re.findall(r'add_config_value\("(\w+)"', extension)
    assert set(sphinx_options()) == {"extensions", *defined}


def test_each_script_is_the_one_of_the_folder_that_the_commands_write() -> None:
    code = "".join(blocks("html") + blocks("js"))
    named = re.findall(r'(?:\bsrc=|\bsrc: |^import )"([^"]*)"', code, re.MULTILINE)
    several = {"/guide/find/search.js", "/guide/find/ /api/find/"}
    assert set(named) == {"/find/search.js", "../find/search.js", *several}
    assert (SITE / "browser" / "search.js").is_file()
    assert "--out site/find/" in PAGE


def test_zensicals_script_is_the_one_that_its_configuration_names() -> None:
    (config,) = map(tomllib.loads, blocks("toml"))
    (script,) = config["project"]["extra_javascript"]
    assert f"`docs/{script}`" in PAGE


def test_starlights_component_is_the_one_that_its_configuration_names() -> None:
    (component,) = re.findall(r'Search: "\./(.*?)"', "".join(blocks("js")))
    assert f"`{component}`" in PAGE


def test_each_script_is_one_that_node_can_read(tmp_path: Path) -> None:
    if (node := shutil.which("node")) is None:
        pytest.skip("Node.js is not installed")
    for number, block in enumerate(blocks("js")):
        path = tmp_path / f"{number}.mjs"
        path.write_text(block, encoding="utf-8")
        done = subprocess.run([node, "--check", path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
