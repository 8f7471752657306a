"""JSON replies: what Python's own JSON reads back."""

import json

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from semsearch.app.routes.replies import embedding_texts, json_reply


def test_what_is_not_a_number_is_null() -> None:
    reply = json_reply({"found": [float("nan"), float("inf"), "ż"]})
    assert (reply.body, reply.headers["content-type"]) == ('{"found":[null,null,"ż"]}'.encode(), "application/json")


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
