"""A plugin for MkDocs: `mkdocs build` also writes the search of the site, and adds <semantic-search> to each page.

`mkdocs serve` does not write the search, because it builds the site again after each change of a page.
"""

import re
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mkdocs.config import config_options
from mkdocs.config.base import Config
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, get_plugin_logger
from mkdocs.utils import get_relative_url

from semsearch.engine.errors import ExpectedError
from semsearch.site.pages import write_search

NOT_FOUND = "404.html"
_logger = get_plugin_logger("semantic-search")
# The element is inserted at the end of Material's header, or else at the beginning of the body.
PLACES = (re.compile(r'<nav class="md-header__inner.*?(?=</nav>)', re.DOTALL), re.compile("<body[^>]*>"))


class Options(Config):  # type: ignore[misc]  # its types are not installed
    """The options of the plugin in mkdocs.yml."""

    out = config_options.Type(str, default="find")  # folder in the site that the search is written to
    bundle = config_options.Type(str, default=".cache/semantic-search")  # folder of the index, relative to mkdocs.yml
    exclude = config_options.ListOfItems(config_options.Type(str), default=[])  # patterns of pages to leave out
    attributes = config_options.Type(dict, default={})  # attributes of the element


class SemanticSearch(BasePlugin[Options]):  # type: ignore[misc]
    """The plugin `semantic-search`. It adds two tags to each page, and no inline script."""

    def on_startup(self, *, command: str, dirty: bool) -> None:
        """Store whether MkDocs builds or serves the site."""
        self._is_served = command == "serve"

    def on_post_page(self, output: str, *, page: Any, config: Any) -> str:
        """Return the page with the script and the element."""
        return self._add_box(output, get_relative_url(f"{self.config.out}/search.js", page.url))

    def on_post_template(self, output_content: str, *, template_name: str, config: Any) -> str:
        """Return 404.html with the script and the element; a host shows it at any address."""
        if template_name != NOT_FOUND:
            return output_content
        base = urlsplit(config.site_url or "/").path.rstrip("/")
        return self._add_box(output_content, f"{base}/{self.config.out}/search.js")

    def _add_box(self, output: str, script: str) -> str:
        """Return a page with the script in the head, and the element in Material's header or first in the body."""
        if self._is_served:
            return output
        named = "".join(f' {name}="{escape(str(value))}"' for name, value in self.config.attributes.items())
        element = f"<semantic-search{named}></semantic-search>"
        if (found := next(filter(None, (place.search(output) for place in PLACES)), None)) is not None:
            output = output[: found.end()] + element + output[found.end() :]
        return output.replace("</head>", f'<script type="module" src="{escape(script)}"></script>\n</head>', 1)

    def on_post_build(self, *, config: Any) -> None:
        """Make or update the index of the pages, and write the search into the site. Raises PluginError if it fails."""
        if self._is_served:
            return
        site = Path(config.site_dir)
        try:
            write_search(
                site,
                Path(config.config_file_path).parent / self.config.bundle,
                site / self.config.out,
                title=config.site_name,
                exclude=self.config.exclude,
                say=_logger.info,
            )
        except ExpectedError as error:
            raise PluginError(f"semantic-search: {error}") from error
