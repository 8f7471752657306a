"""JSON of replies, as pydantic writes it: several times as fast as Python's own writer."""

from typing import Any

from pydantic_core import to_json


def json_bytes(content: Any) -> bytes:
    """Return the content as JSON, as short as it can be; NaN and infinity become null."""
    return to_json(content, inf_nan_mode="null")


def json_text(content: Any) -> str:
    """Return the content as JSON, as `json_bytes` does."""
    return json_bytes(content).decode()
