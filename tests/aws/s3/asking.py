"""Ask a function whose bundle is in S3, and look at what it keeps on the disk."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from semsearch.app.reloading.s3 import BundleReloader

Start = Callable[..., tuple[BundleReloader, httpx.Client]]
NOWHERE = Path("/nowhere")


class Behind(NamedTuple):
    """A function that serves the version `old`, while the pointer names the version `new`."""

    switch: BundleReloader
    client: httpx.Client
    old: str
    new: str


def ask(client: httpx.Client, **fields: Any) -> tuple[str, str]:
    """Return the version that answered and the edition that the answer is from."""
    reply = client.post("/similar", json={"text": "angry goose", "num_results": 3} | fields)
    assert reply.status_code == 200, reply.text
    found = {"".join(re.findall(r"Edition \d", text["text"])) for text in reply.json()["results"]}
    assert len(found) == 1
    return reply.headers["x-bundle"], found.pop()


def left(environment: dict[str, str]) -> list[str]:
    """Return the names in the folder for what is fetched, apart from locks."""
    return sorted(path.name for path in fetched(environment).iterdir() if path.suffix != ".lock")


def fetched(environment: dict[str, str]) -> Path:
    """Return the folder for what is fetched."""
    (folder,) = Path(environment["TMPDIR"]).glob("semantic-search-*")
    return folder
