"""The code that docs/clients.md shows runs as it stands there, and prints what the page says."""

import re
import subprocess
import sys

import pytest

from tests.project import ROOT

PAGE = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


def test_the_page_shows_each_client() -> None:
    assert list(SNIPPETS) == [
        "LangChain",
        "LlamaIndex",
        "Haystack",
        "openai",
        "LangChain's embeddings",
        "LlamaIndex's embeddings",
        "huggingface_hub",
        "Cohere, Jina and TEI: rerank",
        "MCP",
    ]


@pytest.mark.parametrize("client", SNIPPETS)
def test_each_snippet_runs(client: str, address: str) -> None:
    code = SNIPPETS[client]
    assert code.count("http://localhost:8000") == 1
    code = code.replace("http://localhost:8000", address)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
