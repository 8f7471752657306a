"""The code that docs/clients.md shows runs as it stands there, and prints what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import on_the_server
from tests.project import ROOT

PAGE = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))

GENERATED = "Generated clients"
(GENERATE,) = re.findall(r"^openapi-python-client generate .*$", PAGE, re.MULTILINE)


@on_the_server
@pytest.mark.parametrize("client", SNIPPETS)
def test_each_snippet_runs(client: str, address: str, tmp_path: Path) -> None:
    code, folder = SNIPPETS[client], ROOT
    if client == GENERATED:
        words = GENERATE.replace("http://localhost:8000", address).split()
        folder = tmp_path
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        subprocess.run(words, cwd=folder, env=os.environ | {"PATH": path}, check=True, timeout=120)
    assert code.count("http://localhost:8000") == 1
    code = code.replace("http://localhost:8000", address)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
