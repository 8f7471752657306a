"""JSON replies: what Python's own JSON reads back."""

import json

from hypothesis import given
from hypothesis import strategies as st

from function.routes.replies import json_reply

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(content=st.dictionaries(st.text(), values, max_size=4))
def test_a_reply_is_the_content_in_json(content: dict[str, object]) -> None:
    reply = json_reply(content)
    assert json.loads(bytes(reply.body)) == content
    assert reply.headers["content-type"] == "application/json"


def test_what_is_not_a_number_is_null() -> None:
    assert json_reply({"found": [float("nan"), float("inf")]}).body == b'{"found":[null,null]}'
