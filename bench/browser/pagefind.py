"""Pagefind, a static search by words, over the same passages: bytes, milliseconds and what it finds."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.report import PEERS, Missing

if TYPE_CHECKING:
    from playwright.sync_api import Page

INDEX = """
import { createIndex, close } from "pagefind";
import { readFileSync } from "node:fs";
const { index } = await createIndex();
for (const [id, text] of JSON.parse(readFileSync(0, "utf8"))) {
  await index.addCustomRecord({ url: `/${encodeURIComponent(id)}`, content: text, language: "en" });
}
await index.writeFiles({ outputPath: process.argv[2] });
await close();
"""
ASK = """async ([queries, count]) => {
  const pagefind = await import("./pagefind/pagefind.js");
  await pagefind.init();
  const replies = [];
  for (const query of queries) {
    const begin = performance.now();
    const { results } = await pagefind.search(query);
    const best = await Promise.all(results.slice(0, count).map((result) => result.data()));
    const ids = best.map(({ url }) => decodeURIComponent(url.split("/").at(-1)));
    replies.push({ ids, milliseconds: performance.now() - begin });
  }
  return replies;
}"""


def make_pagefind(work: Path, passages: Sequence[tuple[str, str]]) -> Path:
    """Write Pagefind's index of passages, each an id and a text; return the folder that a host serves.

    Raises Missing if npm is missing or cannot install Pagefind.
    """
    npm, tools, site = shutil.which("npm"), work / "pagefind-tools", work / "pagefind"
    if npm is None:
        raise Missing("npm is not installed; it installs Pagefind, beside which the site is measured")
    tools.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PEERS / "pagefind" / name, tools)
    if not (tools / "node_modules").is_dir():
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=tools, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Missing(f"npm ci in {tools}: {done.stderr.strip().splitlines()[-1]}")
    (tools / "index.mjs").write_text(INDEX, encoding="utf-8")
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir()
    command = ["node", "index.mjs", str((site / "pagefind").absolute())]
    subprocess.run(command, cwd=tools, input=json.dumps(passages), text=True, check=True, stdout=subprocess.DEVNULL)
    (site / "index.html").write_text("<!doctype html><title>Pagefind</title>", encoding="utf-8")
    return site


def ask_pagefind(page: "Page", queries: Sequence[str], count: int) -> list[dict[str, Any]]:
    """Return the ids of the best results of each query and the milliseconds that it took."""
    replies: list[dict[str, Any]] = page.evaluate(ASK, [list(queries), count])
    return replies
