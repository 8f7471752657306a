"""What a request may call a text."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import PydanticCustomError


def _check_text(text: str) -> str:
    if not text or text.isspace():
        raise PydanticCustomError("blank", "expected words, not an empty or blank text")
    try:
        text.encode()
    except UnicodeEncodeError as error:  # JSON can escape half of a surrogate pair: "\\ud800"
        raise PydanticCustomError("unicode", "expected valid Unicode, not half a surrogate pair") from error
    return text


RequestText = Annotated[str, AfterValidator(_check_text)]


class StrictRequest(BaseModel):
    """A request body that takes no value of another type and no field it does not know."""

    model_config = ConfigDict(strict=True, extra="forbid")
