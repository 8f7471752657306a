"""What a request may call a text."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import PydanticCustomError


def _not_blank(text: str) -> str:
    if not text or text.isspace():
        raise PydanticCustomError("blank", "expected words, not an empty or blank text")
    return text


RequestText = Annotated[str, AfterValidator(_not_blank)]


class StrictRequest(BaseModel):
    """A request body that takes no value of another type and no field it does not know."""

    model_config = ConfigDict(strict=True, extra="forbid")
