"""Rows in memory for an index that is changed, and its texts."""

from pathlib import Path
from typing import Any

from semsearch import Search


def coats(count: int) -> list[dict[str, Any]]:
    """Return rows with ids: c-0 with the price 0, and so on."""
    return [{"sku": f"c-{number}", "text": f"A warm coat {number}", "price": number} for number in range(count)]


def found(bundle: Path) -> dict[str, str]:
    """Return all texts of an index by their ids, in their order."""
    return {hit.id: hit.text for hit in Search(bundle).search(filter={}, top_k=100)}
