"""The name of the tool that searches a corpus. `semsearch install-mcp` needs it too, and imports no server for it."""

import re
from unicodedata import normalize

from semsearch.engine.bundle import CorpusInfo

MOST_NAME = 40  # characters of the corpus's name in the name of a tool
SUFFIX = re.compile(r"(\.[a-z]{1,7}){1,2}$")  # such as ".csv" or ".jsonl.gz"


def tool_name(info: CorpusInfo) -> str:
    """Return the name of the corpus's own tool, such as `search_python_documentation`."""
    title = info.title or SUFFIX.sub("", info.source)
    letters = normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "_", letters.replace("'", "")).strip("_")[:MOST_NAME].rstrip("_")
    return f"search_{name or 'texts'}"
