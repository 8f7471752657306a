"""The types of fields that hold texts or whole numbers, for the models of requests."""

from typing import Annotated, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from semsearch.app.settings import MOST_TEXTS
from semsearch.search.query import CHARACTERS_PER_TEXT
from semsearch.search.request import CHARACTERS_PER_NAME
from semsearch.search.request_values import TEXT_FORM, TEXTS_FORM, form_of_texts, whole_number

# clients send blank texts too
ClientText = Annotated[str, Field(min_length=1, max_length=CHARACTERS_PER_TEXT)]
ModelName = Annotated[str, Field(max_length=CHARACTERS_PER_NAME)]


Text = TypeVar("Text")
Count = Annotated[int, Field(ge=1), BeforeValidator(whole_number)]
Several = Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS, fail_fast=True)]
OneOrSeveral = Annotated[
    Annotated[Text, Tag(TEXT_FORM)] | Annotated[Several[Text], Tag(TEXTS_FORM)], Discriminator(form_of_texts)
]


class ClientRequest(BaseModel):
    """A request body of clients of other APIs: unknown fields are ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)
