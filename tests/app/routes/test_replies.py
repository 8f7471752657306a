"""JSON replies: what Python's own JSON reads back."""

import json

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from semsearch.app.routes.replies import embedding_texts, json_reply

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


@given(
    rows=st.lists(
        st.lists(st.floats(min_value=-2, max_value=2, width=32, allow_subnormal=True), min_size=3, max_size=3),
        min_size=1,
        max_size=3,
    )
)
@example(rows=[[0.0, -0.0, 2.0**-149]])
@example(rows=[[2.0**-13, np.nextafter(np.float32(2.0**-13), np.float32(0)), 2.0**-126]])
def test_an_embedding_in_json_reads_back_as_the_same_float32(rows: list[list[float]]) -> None:
    embeddings = np.array(rows, np.float32)
    read = np.array([json.loads(text) for text in embedding_texts(embeddings)]).astype(np.float32)
    np.testing.assert_array_equal(read.view(np.uint32), embeddings.view(np.uint32))


def test_all_float32_values_of_a_few_binades_read_back_the_same() -> None:
    for exponent in (-1, -4, -10, -30):
        begin = int(np.array(2.0**exponent, np.float32).view(np.uint32))
        bits = np.concatenate([np.arange(begin - 5_000, begin + 5_000), np.arange(begin, begin + 2**23, 101)])
        embeddings = bits.astype(np.uint32).view(np.float32)[np.newaxis]
        read = np.array(json.loads(embedding_texts(embeddings)[0])).astype(np.float32)
        np.testing.assert_array_equal(read, embeddings[0])
