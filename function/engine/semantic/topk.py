"""The largest of many values, found without sorting all of them."""

import numpy as np

from function.engine.arrays import AnyArray, Array

SAMPLE = 1_024  # values that a threshold is guessed from
# The guess should let this many times `count` values pass, so that too few pass only rarely.
SURPLUS = 1.25


def largest(values: AnyArray, count: int) -> Array[np.intp]:
    """Return the places of the `count` largest values, ascending; of equal values the first are taken.

    values is (n,); all n places are returned if there are no more. A sample of the values gives a threshold that a
    little more than `count` of them should pass, and only those are compared with each other. If too few pass, all
    values are compared.
    """
    if count >= len(values):
        return np.arange(len(values))
    step = len(values) // SAMPLE
    if step > 1:
        sample = values[::step]
        rank = min(len(sample), int(SURPLUS * count / step) + 8)
        passing = np.flatnonzero(values >= np.partition(sample, -rank)[-rank])
        if len(passing) >= count:
            return passing[_largest(values[passing], count)]
    return _largest(values, count)


def _largest(values: AnyArray, count: int) -> Array[np.intp]:
    if count == len(values):
        return np.arange(count)
    if values.dtype == np.uint16:
        values = values.astype(np.int32)  # NumPy partitions them faster
    least = np.partition(values, -count)[-count]
    chosen = values >= least
    surplus = int(np.count_nonzero(chosen)) - count
    if surplus:
        chosen[np.flatnonzero(values == least)[-surplus:]] = False
    return np.flatnonzero(chosen)
