"""GPTQ: round weights to 8 bit, and correct later weights for the rounding error of each earlier one.

Source: Frantar et al., https://arxiv.org/abs/2210.17323
"""

import numpy as np
from numpy.typing import NDArray

LARGEST_WEIGHT = 127
DAMPING = 0.01  # share of the mean of the Hessian's diagonal, as in the paper
BLOCK = 128  # inputs rounded between two updates of all later weights; changes the speed alone

Weights = NDArray[np.float32]  # (inputs, outputs)


def round_weights(weights: Weights, hessian: NDArray[np.float64]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return the weights as signed bytes and a scale for each output, so that the products change least (GPTQ).

    weights is (inputs, outputs) float32, hessian (inputs, inputs) float64; the result is (inputs, outputs) int8 and
    (outputs,) float32.
    """
    rest = weights.astype(np.float64)
    inputs = len(rest)
    scales = np.abs(rest).max(axis=0) / LARGEST_WEIGHT
    scales[scales == 0] = 1.0
    damped = hessian + np.eye(inputs) * (DAMPING * np.diag(hessian).mean() + np.finfo(np.float64).tiny)
    # upper triangular: row i distributes the error of input i over later inputs
    factor = np.linalg.cholesky(np.linalg.inv(damped)).T
    codes = np.empty(rest.shape, np.int8)
    for begin in range(0, inputs, BLOCK):
        end = min(begin + BLOCK, inputs)
        errors = np.empty((end - begin, rest.shape[1]))
        for i in range(begin, end):
            code = np.rint(rest[i] / scales).clip(-LARGEST_WEIGHT, LARGEST_WEIGHT)
            codes[i] = code
            errors[i - begin] = (rest[i] - code * scales) / factor[i, i]
            rest[i + 1 : end] -= np.outer(factor[i, i + 1 : end], errors[i - begin])
        rest[end:] -= factor[begin:end, end:].T @ errors
    return codes, scales.astype(np.float32)
