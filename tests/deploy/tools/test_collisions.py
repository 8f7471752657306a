"""The installed package beside the user's own files: modules called as the rooms of this project change nothing.

Each program runs in a folder with such files, from the wheel: the commands as a script and as a module, and the Python
API in a script without a main guard, as a notebook runs it, and with the folder in PYTHONPATH.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from semsearch.commands.main import COMMANDS
from tests.deploy.tools.test_wheel import installed, wheel
from tests.export_fixtures import TINY_BERT

__all__ = ["installed", "wheel"]

FILES = (
    *("function.py", "export/__init__.py", "engine.py", "search.py", "app.py", "commands.py", "indexing.py"),
    *("conversion.py", "client.py", "site_.py", "handler.py"),
)
SCRIPT = f"""
import semsearch
from semsearch import Search, index
rows = [{{"text": f"{{word}} and the goose number {{number}}"}} for number, word in enumerate(["ferry", "judge"] * 40)]
summary = index(rows, "made", model={str(TINY_BERT)!r}, cache=False)
hits = Search("made").search("the judge and the goose", top_k=1)
print(semsearch.__file__, summary.manifest.corpus.rows, hits[0].text)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with modules that end any program that imports them."""
    for file in FILES:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("raise SystemExit('a module of the user was imported')", encoding="utf-8")
    return tmp_path


def run(folder: Path, installed: Path, *words: str | Path, here: str = "", text: str = "") -> str:
    """Run a program in the folder, with the wheel in PYTHONPATH, and `here` too. Returns what it prints."""
    paths = os.pathsep.join(filter(None, [here, str(installed)]))
    environment = os.environ | {"PYTHONPATH": paths, "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(words, cwd=folder, env=environment, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("words", "here"), [(["-"], ""), (["script.py"], ".")])
def test_the_api_makes_an_index_with_a_conversion_and_searches(
    folder: Path, installed: Path, words: list[str], here: str
) -> None:
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    *_, last = run(folder, installed, sys.executable, *words, here=here, text=SCRIPT).splitlines()
    assert last.startswith(f"{installed}/semsearch/__init__.py 80 judge and the goose number")


@pytest.mark.parametrize(("is_module", "here"), [(True, ""), (False, ".")])
def test_each_command_runs(folder: Path, installed: Path, is_module: bool, here: str) -> None:
    program: list[str | Path] = [sys.executable, installed / "bin" / "semsearch"]
    if is_module:
        program = [sys.executable, "-m", "semsearch"]

    def semsearch(*words: str, text: str = "") -> str:
        return run(folder, installed, *program, *words, here=here, text=text)

    for command in COMMANDS:
        assert semsearch(command, "--help").startswith(f"Usage: semsearch {command}")
    (folder / "docs").mkdir()
    (folder / "docs" / "a.md").write_text("# Geese\n\nAn angry goose won first prize.\n", encoding="utf-8")
    semsearch("model", "convert", str(TINY_BERT), "--out", "bundle")
    assert "bundle/ is ready" in semsearch("index", "docs", "--out", "bundle")
    assert "angry goose" in semsearch("query", "bundle", "goose")
    assert " ok" in semsearch("verify", "bundle")
    assert json.loads(semsearch("evaluate", "bundle", "--make-questions", "1"))["relevant"]
    assert semsearch("key", "team-a").startswith("team-a:")
    assert '"command"' in semsearch("install-mcp", "claude-code", "docs")
    listed = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n'
    assert '"search"' in semsearch("mcp", "bundle", text=listed)
