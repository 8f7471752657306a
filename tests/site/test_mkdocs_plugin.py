"""The plugin of MkDocs, in a real `mkdocs build` with Material, whose packages `make docs` installs."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from semsearch.engine.bundle import PASSAGES
from semsearch.engine.passages import Passages
from semsearch.indexing.corpus import Corpus
from tests.browser.site.world import write_site_bundle
from tests.project import ROOT

TOOLS = ROOT / "build" / "docs-tools"
CONFIG = """\
site_name: Stories
site_url: https://example.com/project/
theme: {name: material, font: false}
plugins:
  - semantic-search: {exclude: [drafts/*], attributes: {placeholder: Ask}}
"""


@pytest.mark.slow  # `make docs` builds this project's documents so
def test_a_build_makes_the_search_and_puts_the_box_into_materials_header(tmp_path: Path) -> None:
    if not (TOOLS / "installed").exists():
        pytest.skip(f"{TOOLS}: MkDocs is not there; `make docs` installs it")
    assert [each.value for each in entry_points(group="mkdocs.plugins", name="semantic-search")] == [
        "semsearch.site.mkdocs_plugin:SemanticSearch"
    ]
    (tmp_path / "mkdocs.yml").write_text(CONFIG, encoding="utf-8")
    for name, text in {"index": "An angry goose", "guide/a": "The night nurse", "drafts/b": "The mayor"}.items():
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / f"{name}.md").write_text(f"# Page\n\n{text}.\n", encoding="utf-8")
    (tmp_path / ".cache").mkdir()
    # so that the tests' model embeds the pages
    bundle = write_site_bundle(tmp_path / ".cache" / "semantic-search", Corpus(["The ferry"], ["a"], ["{}"]))
    (packages,) = TOOLS.glob("lib/python*/site-packages")
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{packages}", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "find" / "index.html").is_file()
    kept = tmp_path / ".cache" / "semantic-search-site"
    assert (kept / "search.js").read_bytes() == (tmp_path / "site" / "find" / "search.js").read_bytes()
    passages = Passages(bundle / PASSAGES)
    assert [passages[row].metadata["url"] for row in range(len(passages))] == ["guide/a/#page", "./#page"]
    page = (tmp_path / "site" / "guide" / "a" / "index.html").read_text(encoding="utf-8")
    assert '<script type="module" src="../../find/search.js"></script>\n</head>' in page
    (header,) = re.findall(r'<nav class="md-header__inner.*?</nav>', page, re.DOTALL)
    assert header.endswith('<semantic-search placeholder="Ask"></semantic-search></nav>')
    lost = (tmp_path / "site" / "404.html").read_text(encoding="utf-8")
    assert '<script type="module" src="/project/find/search.js"></script>\n</head>' in lost
    assert lost.count('<semantic-search placeholder="Ask"></semantic-search></nav>') == 1
    assert "<semantic-search" not in (tmp_path / "site" / "sitemap.xml").read_text(encoding="utf-8")
    said = re.sub(r"took [\d:]+", "took T", done.stderr)
    assert "INFO    -  semantic-search: read texts: 100%, took T\n" in said
    assert re.search(r"^INFO    -  semantic-search: documents +2 HTML; 2 passages$", said, re.MULTILINE)
    assert re.search(r"^INFO    -  semantic-search: queries +a table learned from \d+ spans: ", said, re.MULTILINE)
