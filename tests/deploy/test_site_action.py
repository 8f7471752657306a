"""The script of action.yml, in an empty folder without GitHub: two pushes of a built site."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from semsearch.engine.bundle import PASSAGES
from semsearch.engine.passages import Passages
from semsearch.indexing.corpus import Corpus
from tests.browser.site.world import write_site_bundle
from tests.project import ROOT

SCRIPT = ROOT / "deploy" / "site_action.sh"
PAGES = {"index": "An angry goose", "a/index": "The night nurse", "drafts/b": "The mayor slept", "404": "Not found"}


@pytest.mark.slow  # runs the whole action twice
def test_a_push_with_one_changed_page_embeds_one_page(tmp_path: Path) -> None:
    corpus = Corpus(["The ferry"], ["a"], ["{}"])
    (tmp_path / "cache").mkdir()
    bundle = write_site_bundle(tmp_path / "cache" / "bundle", corpus)  # so that the tests' model embeds the pages
    for name, text in PAGES.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / f"{name}.html").write_text(f"<h1>Page</h1><p>{text}.", encoding="utf-8")
    settings = {"HTML": "site", "EXCLUDE": "drafts/*\nnothing/*"}

    def push() -> int:
        """Return how many texts a push embeds."""
        environment = {**settings, "CACHE": "cache", "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
        done = subprocess.run(
            [SCRIPT, "build"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        (embedded,) = re.findall(r"(\d+) texts embedded", done.stdout)
        return int(embedded)

    assert push() == 2
    passages = Passages(bundle / PASSAGES)
    assert [passages[row].metadata["url"] for row in range(2)] == ["a/", "./"]
    find = tmp_path / "site" / "find"
    first = (find / "index.html").read_bytes()
    (code,) = (find / "code").iterdir()
    shutil.rmtree(find)  # the folder is empty in the next workflow
    (tmp_path / "site" / "index.html").write_text("<h1>Page</h1><p>Forty ducks crossed.", encoding="utf-8")
    assert push() == 1
    assert (find / "index.html").read_bytes() != first
    assert len([*(find / "code").iterdir()]) == 2
    listed = json.loads((code / "site.json").read_bytes())["files"].values()
    assert all((find / each["path"]).is_file() for each in listed)  # those of the first push are there too
