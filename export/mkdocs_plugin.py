"""A plugin of MkDocs: `mkdocs build` also makes the search of the site, and its pages have the box <semantic-search>.

`mkdocs serve` makes no search, because it builds the site again after each change of a page.
"""

import re
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config import config_options
from mkdocs.config.base import Config
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin
from mkdocs.utils import get_relative_url

from export.cli import main as export
from function.engine.bundle import MANIFEST

# the places for the element: the end of Material's header, or else the beginning of the page
PLACES = (re.compile(r'<nav class="md-header__inner.*?(?=</nav>)', re.DOTALL), re.compile("<body[^>]*>"))


class Options(Config):  # type: ignore[misc]  # its types are not installed
    """What mkdocs.yml can set."""

    out = config_options.Type(str, default="find")  # folder of the search in the site
    bundle = config_options.Type(str, default=".cache/semantic-search")  # beside mkdocs.yml: what an update needs
    exclude = config_options.ListOfItems(config_options.Type(str), default=[])  # patterns of pages to leave out
    packages = config_options.Type(str, default="")  # --packages of `semsearch site`
    attributes = config_options.Type(dict, default={"keys": "ctrl+k"})  # of the element


class SemanticSearch(BasePlugin[Options]):  # type: ignore[misc]
    """The plugin `semantic-search`. A page gets two tags and no inline code."""

    def on_startup(self, *, command: str, dirty: bool) -> None:
        """Remember whether the site is built or served."""
        self._is_served = command == "serve"

    def on_post_page(self, output: str, *, page: Any, config: Any) -> str:
        """Return a page with the script in its head and the element in Material's header, or where its body begins."""
        if self._is_served:
            return output
        script = get_relative_url(f"{self.config.out}/search.js", page.url)
        named = "".join(f' {name}="{escape(str(value))}"' for name, value in self.config.attributes.items())
        element = f"<semantic-search{named}></semantic-search>"
        if (found := next(filter(None, (place.search(output) for place in PLACES)), None)) is not None:
            output = output[: found.end()] + element + output[found.end() :]
        return output.replace("</head>", f'<script type="module" src="{escape(script)}"></script>\n</head>', 1)

    def on_post_build(self, *, config: Any) -> None:
        """Make or update the index of the pages, and write the search. Raises PluginError."""
        if self._is_served:
            return
        site, bundle = Path(config.site_dir), Path(config.config_file_path).parent / self.config.bundle
        index = ["--corpus", str(site), "--out", str(bundle), "--title", config.site_name, "--queries", "table"]
        index += [word for pattern in self.config.exclude for word in ("--exclude", pattern)]
        index += ["--update", str(bundle)] if (bundle / MANIFEST).is_file() else []
        packages = ["--packages", self.config.packages] if self.config.packages else []
        if export(index) or export(["site", str(bundle), "--out", str(site / self.config.out), *packages]):
            raise PluginError("semantic-search: the search was not made, because of the error above")
