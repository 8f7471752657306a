"""JSON replies of the routes, and how large they are."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from semsearch.app.http import HttpError
from semsearch.engine.quantization import Embeddings
from semsearch.search.reply import json_bytes, json_text

if TYPE_CHECKING:
    from fastapi import Response

# Bytes of a reply for each value of an embedding as a number, with its comma: 12.9 on average for 384 values, and more
# where most values are smaller. And bytes for each text besides: brackets, and the names of OpenAI's fields.
BYTES_PER_VALUE, BYTES_PER_TEXT = 15, 100
LOG10_OF_2 = 0.30103
POWERS_OF_TEN = np.array([10.0**power for power in range(60)])  # float32 values are at least 2 ** -149


def json_reply(content: Any) -> "Response":
    """Return the content as the reply of a route of FastAPI, without validating again what the route made itself."""
    return text_reply(json_bytes(content))


def text_reply(text: str | bytes) -> "Response":
    """Return a text that is JSON as the reply of a route of FastAPI."""
    from fastapi import Response  # only those routes need it

    return Response(text, media_type="application/json")


def embedding_texts(embeddings: Embeddings) -> list[str]:
    """Return each row of embeddings (n, dim) float32 as a list in JSON, so that a client reads the same float32 values.

    Between 2 ** (e - 1) and 2 ** e, float32 values are 2 ** (e - 24) apart, or 2 ** (e - 25) just below. Values that
    are rounded to finer decimals than that stay distinct. pydantic writes the fewest digits that identify a float64,
    which are exactly these decimals.
    """
    _, exponents = np.frexp(embeddings)
    scales = POWERS_OF_TEN[np.maximum((25 - exponents) * LOG10_OF_2, 0).astype(np.intp) + 1]
    rounded = np.rint(embeddings * scales) / scales
    return [json_text(row) for row in rounded.tolist()]


def bytes_per_text(dim: int, *, is_base64: bool = False) -> int:
    """Return how many bytes of a reply an embedding of `dim` values takes at most, as numbers or in base64."""
    if is_base64:
        return BYTES_PER_TEXT + 4 * -(-4 * dim // 3)
    return BYTES_PER_TEXT + BYTES_PER_VALUE * dim


def refuse_bytes(body: bytes | memoryview, most: int, reply: str, advice: str) -> None:
    """Raise HttpError with status 413 if the body of a reply takes more bytes than `most` on its way out of Lambda.

    Lambda puts the body into JSON of its own, as one string: quotes and backslashes take two bytes each. Some of
    Lambda's runtimes also escape all characters beyond ASCII, up to three times as long (awslambdaric's marshaller, by
    AWS_EXECUTION_ENV). The longer form is counted.
    """
    if 3 * len(body) + 2 <= most:
        return  # nearly every reply is that small, and need not be counted
    found = len(json.dumps(bytes(body).decode()))
    if found > most:
        raise HttpError(413, f"{reply} is {found} bytes, at most {most}; {advice}")
