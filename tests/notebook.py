"""docs/python.md as a notebook: `python -m tests.notebook` writes docs/python.ipynb."""

import json
import re
from typing import Any

from tests.project import ROOT

PAGE, NOTEBOOK = ROOT / "docs" / "python.md", ROOT / "docs" / "python.ipynb"
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def as_notebook(page: str) -> str:
    """Return a page as a notebook of format 4.5, in which each block of Python is a cell of code."""
    cells: list[dict[str, Any]] = []
    for number, part in enumerate(re.split(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)):
        cell: dict[str, Any] = {
            "id": f"cell-{number}",
            "metadata": {},
            "source": part.strip().splitlines(keepends=True),
        }
        if number % 2:
            cells.append(cell | {"cell_type": "code", "execution_count": None, "outputs": []})
        else:
            cells.append(cell | {"cell_type": "markdown"})
    return json.dumps({"cells": cells, "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(as_notebook(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
