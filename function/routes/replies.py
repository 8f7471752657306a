"""JSON replies of the routes, and how large they are."""

import json
from typing import Any

from fastapi import Response
from pydantic_core import to_json


def json_reply(content: dict[str, Any]) -> Response:
    """Return the content as a reply, without validating again what a route made itself.

    pydantic's writer takes a seventh of the time of Python's for an embedding. What is not a number becomes null.
    """
    return Response(to_json(content, inf_nan_mode="null"), media_type="application/json")


def bytes_beyond(reply: Response, most: int) -> int:
    """Return how many bytes a reply's body takes on its way out of Lambda if they are more than `most`, else 0.

    Lambda puts the body into JSON of its own, as one string: quotes and backslashes take two bytes each. Some of
    Lambda's runtimes also escape all characters beyond ASCII, up to three times as long (awslambdaric's marshaller, by
    AWS_EXECUTION_ENV). The longer form is counted.
    """
    if 3 * len(reply.body) + 2 <= most:
        return 0  # nearly every reply is that small, and need not be counted
    found = len(json.dumps(bytes(reply.body).decode()))
    return found if found > most else 0
