"""JSON replies: what Python's own JSON reads back."""

import json
from base64 import b64encode

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from semsearch.app.http import HttpError
from semsearch.app.routes.replies import bytes_per_text, embedding_texts, json_reply, refuse_bytes


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


def test_an_embedding_has_no_more_decimals_than_it_needs() -> None:
    embeddings = np.array([[0.1, -0.7, 1.0, 0.003]], np.float32)
    assert embedding_texts(embeddings) == ["[0.100000001,-0.69999999,1.0,0.003]"]


def test_the_bytes_of_an_embedding_are_estimated_and_in_base64_known() -> None:
    assert bytes_per_text(384) == 100 + 384 * 15
    for dim in (1, 2, 3, 384):
        assert bytes_per_text(dim, is_base64=True) == 100 + len(b64encode(bytes(4 * dim)))


@pytest.mark.parametrize("text", ["ż" * 9, "a" * 9, "\\" * 9, "é" * 3 + '"a'])
def test_a_reply_may_take_the_most_bytes_and_no_more(text: str) -> None:
    body, most = text.encode(), len(json.dumps(text))
    refuse_bytes(body, most, "text: the reply", "ask for less")
    with pytest.raises(HttpError) as caught:
        refuse_bytes(body, most - 1, "text: the reply", "ask for less")
    expected = (413, f"text: the reply is {most} bytes, at most {most - 1}; ask for less")
    assert (caught.value.status_code, caught.value.detail) == expected
