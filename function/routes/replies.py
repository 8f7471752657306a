"""JSON replies of the routes, and how large they are."""

import json
from typing import Any

from fastapi import Response


def json_reply(content: dict[str, Any]) -> Response:
    """Give a reply as it is: what the routes made themselves is not validated again."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text, media_type="application/json")


def bytes_beyond(reply: Response, most: int) -> int:
    """Give the bytes of a reply's body on its way out of Lambda if they are more than `most`, else 0.

    There it is one string in a JSON of Lambda's own: quotes and backslashes are two bytes each. Whether other scripts
    stay UTF-8 or are escaped too, up to three times as long, depends on Lambda's runtime (awslambdaric's marshaller, by
    AWS_EXECUTION_ENV): the longer is counted.
    """
    if 3 * len(reply.body) + 2 <= most:
        return 0  # as nearly every reply: no need to count
    found = len(json.dumps(bytes(reply.body).decode()))
    return found if found > most else 0
