"""Put the measured tables into README.md, between the marks that name them."""

import argparse
import re

from bench.environments import PROJECT
from bench.report import RESULTS, console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the tables are those in bench/results/."""


def run(options: argparse.Namespace) -> int:
    """Rewrite README.md."""
    readme = PROJECT / "README.md"
    text = readme.read_text(encoding="utf-8")
    for table in sorted(RESULTS.glob("*.md")):
        name = table.stem
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        marked = re.search(pattern, text, flags=re.DOTALL)
        if marked is not None:
            text = text[: marked.end(1)] + table.read_text() + text[marked.start(2) :]
        console.print(f"{name}: {'put in' if marked else 'README.md has no place for it'}")
    readme.write_text(text, encoding="utf-8")
    return 0
