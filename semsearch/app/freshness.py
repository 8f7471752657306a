"""What answers say of the index of a folder: when it was made, and what has happened since."""

from collections.abc import Callable
from dataclasses import dataclass

from semsearch.engine.loading import AnyBundle


@dataclass(frozen=True, slots=True)
class Since:
    """What has happened since an index was made: how many files changed, and the error of the last update, if any.

    changed is None if nobody counts them.
    """

    changed: int | None = None
    error: str = ""


def describe_index(made: str, since: Since) -> str:
    """Return when an index was made, how many files changed since, and the error of its last update."""
    parts = [f"made {made}"]
    if since.changed is not None:
        parts.append(f"files changed since: {since.changed:,}")
    if since.error:
        parts.append(f"error of the last update: {since.error}")
    return "; ".join(parts)


def describe_behind(current: Callable[[], AnyBundle], since: Callable[[], Since]) -> str:
    """Return what describes the index of the current bundle if something has happened since it was made, else ""."""
    found = since()
    if found == Since():
        return ""
    return describe_index(current().made, found)
