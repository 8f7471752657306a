"""What a direct route reads from a body: an object with the fields of the route's model."""


class BodyFields:
    """The fields of a body as attributes. pydantic_core makes it where it would make an instance of the model.

    The slots are those of pydantic's BaseModel, all of which pydantic_core sets.
    """

    __slots__ = ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")
