"""What the plugins of MkDocs and Sphinx do at the end of a build, without either."""

import re
from pathlib import Path

from semsearch.indexing.corpus import Corpus
from semsearch.site.pages import LinesOut, write_search
from tests.browser.site.world import write_site_bundle


def test_a_build_says_progress_warnings_and_the_summary_line_by_line(tmp_path: Path) -> None:
    bundle = write_site_bundle(tmp_path / "bundle", Corpus(["The ferry"], ["a"], ["{}"]))  # the tests' model is in it
    pages = tmp_path / "pages"
    (pages / "drafts").mkdir(parents=True)
    for name in ("a", "b", "c", "drafts/d"):
        (pages / f"{name}.html").write_text("<h1>Das Haus</h1><p>Der Bäcker und die Fähre sind nicht da.")
    said: list[str] = []
    write_search(pages, bundle, pages / "find", title="Häuser", exclude=["drafts/*"], say=said.append)
    assert (pages / "find" / "search.js").is_file()
    assert not any("\n" in line for line in said)
    steps = [
        line.partition(":")[0] for line in said if re.search(r": 100%(, [\d,]+ texts/s)?, took \d+:\d\d:\d\d$", line)
    ]
    assert [step for step in steps if step in ("read texts", "embed texts", "learn the queries", "page")] == [
        *("read texts", "embed texts", "learn the queries", "page"),
    ]
    (warning,) = [line for line in said if line.startswith("warning: ")]
    assert warning.startswith(
        "warning: pages: found mostly texts in another language (100% of a sample, most like German)"
    )
    summary = said[said.index(warning) + 1 :]
    assert summary[0] == "texts      9 from pages"
    assert any(line.startswith("files      3 read; 1 skipped: an excluded path") for line in summary)
    assert any(line.startswith("queries    a table learned from 180 spans: ") for line in summary)


def test_a_line_is_said_when_it_is_complete() -> None:
    said: list[str] = []
    out = LinesOut(said.append)
    assert [out.write(part) for part in ("one", " two \nthree\n\nfo", "ur")] == [3, 15, 2]
    assert said == ["one two", "three", ""]
