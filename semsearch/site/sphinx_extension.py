"""An extension of Sphinx: an HTML build also writes the search of the site, and adds <semantic-search> to each page.

The folder sphinx_templates/ has templates with the names of those that draw the search boxes of Sphinx's themes. Each
includes semantic-search.html, the script and the element, which other templates can include too.
"""

from functools import partial
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.logging import getLogger

from semsearch.engine.errors import ExpectedError
from semsearch.site.pages import write_search

_logger = getLogger(__name__)
BUILDERS = ("html", "dirhtml")  # builders whose output is a site of pages
TEMPLATES = Path(__file__).parent / "sphinx_templates"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the options in conf.py, the templates and the step at the end of a build."""
    app.add_config_value("semsearch_out", "find", "html", str)  # folder in the site that the search is written to
    app.add_config_value("semsearch_bundle", ".cache/semantic-search", "", str)  # folder of the index, beside conf.py
    app.add_config_value("semsearch_exclude", [], "", list)  # patterns of pages to leave out
    app.add_config_value("semsearch_attributes", {}, "html", dict)  # attributes of the element
    app.connect("config-inited", _add_templates)
    app.connect("html-page-context", _add_context)
    app.connect("build-finished", _write_search)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _add_templates(app: Sphinx, config: Any) -> None:
    """Add the templates behind those of the site, which can replace them, and before those of the theme."""
    config.templates_path = [*config.templates_path, str(TEMPLATES)]
    config.exclude_patterns = [*config.exclude_patterns, config.semsearch_bundle]  # the index contains a text file


def _add_context(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Set what semantic-search.html reads, so that only pages of a site have the element."""
    if app.builder.name in BUILDERS:
        context["semsearch_script"] = f"{app.config.semsearch_out}/search.js"
        context["semsearch_attributes"] = app.config.semsearch_attributes


def _write_search(app: Sphinx, error: Exception | None) -> None:
    """Make or update the index of the pages, and write the search into the site. Raises ExtensionError if it fails."""
    if error is not None or app.builder.name not in BUILDERS:
        return
    config, site = app.config, Path(app.outdir)
    try:
        write_search(
            site,
            Path(app.confdir) / config.semsearch_bundle,
            site / config.semsearch_out,
            title=config.html_title,
            exclude=config.semsearch_exclude,
            say=partial(_logger.info, "semsearch: %s"),
        )
    except ExpectedError as problem:
        raise ExtensionError(f"semsearch.sphinx: {problem}") from problem
