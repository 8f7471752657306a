"""The models of the bodies that the direct routes read.

FastAPI reads the bodies by them and describes them in the OpenAPI document. The direct routes read the same bodies by
their schemas alone (semsearch/app/routes/body_schemas.py).
"""

from typing import Literal

from pydantic import BaseModel

from semsearch.app.routes.fields import OneOrSeveral
from semsearch.search.request import RequestText, SimilarRequest, StrictRequest


class PredictRequest(StrictRequest):
    """One text or several; `prompt_name` puts the model's prompt for that role before each."""

    text: OneOrSeveral[RequestText]
    prompt_name: Literal["query", "document"] | None = None


BODY_MODELS: dict[str, type[BaseModel]] = {"/similar": SimilarRequest, "/predict": PredictRequest}
