"""8-bit rows: what the codes may be, and how little is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from semsearch.engine.quantization import Embeddings, dequantize, quantize, quantize_query

# values as embeddings have them: far from where float32 ends
values = st.just(0.0) | st.floats(2**-20, 128, width=32) | st.floats(-128, -(2**-20), width=32)
matrices = arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=40), elements=values)


def unit_rows(rows: int, dim: int, seed: int) -> Embeddings:
    values = np.random.default_rng(seed).standard_normal((rows, dim))
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), np.float32)


@given(matrices)
def test_a_row_and_its_opposite_have_opposite_codes_and_one_scale(embeddings: Embeddings) -> None:
    codes, scales = quantize(embeddings)
    opposite_codes, opposite_scales = quantize(-embeddings)
    np.testing.assert_array_equal(opposite_codes, -codes)
    np.testing.assert_array_equal(opposite_scales, scales)


@given(matrices)
def test_a_row_keeps_its_length(embeddings: Embeddings) -> None:
    lengths = np.linalg.norm(embeddings.astype(np.float64), axis=1)
    restored = dequantize(*quantize(embeddings)).astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(restored, axis=1), lengths, rtol=1e-5)


def test_each_value_comes_back_within_one_step_of_its_row() -> None:
    embeddings = unit_rows(500, 384, seed=3)
    steps = np.abs(embeddings).max(axis=1, keepdims=True) / 127
    assert (np.abs(dequantize(*quantize(embeddings)) - embeddings) <= steps).all()


def test_codes_are_the_nearest_of_127_steps_worked_by_hand() -> None:
    codes, scales = quantize(np.array([[2.54, -1.26, 0.035, 0.0, 0.009]], np.float32))  # a step is 0.02
    assert codes.tolist() == [[127, -63, 2, 0, 0]]
    length = (2.54**2 + 1.26**2 + 0.035**2 + 0.009**2) ** 0.5
    assert scales[0] == pytest.approx(length / np.linalg.norm(codes[0].astype(float)), rel=1e-6)


def test_a_row_of_zeros_stays_zeros_with_scale_0() -> None:
    codes, scales = quantize(np.zeros((2, 5), np.float32))
    assert not codes.any()
    assert scales.tolist() == [0, 0]
    assert not dequantize(codes, scales).any()


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_value_that_is_not_finite_is_refused_and_its_row_named(value: float) -> None:
    embeddings = unit_rows(9, 4, seed=4)
    embeddings[6, 2] = value
    with pytest.raises(ValueError, match="row 6 holds a value that is not finite"):
        quantize(embeddings)
    with pytest.raises(ValueError, match="query: holds a value that is not finite"):
        quantize_query(embeddings[6])


@given(matrices)
def test_a_query_has_the_codes_of_a_row(embeddings: Embeddings) -> None:
    codes, _ = quantize(embeddings[:1])
    np.testing.assert_array_equal(quantize_query(embeddings[0]), codes)
