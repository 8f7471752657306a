"""JSON replies of the routes."""

import json
from typing import Any

from fastapi import Response


def json_reply(content: dict[str, Any]) -> Response:
    """Give a reply as it is: what the routes made themselves is not validated again."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text, media_type="application/json")
