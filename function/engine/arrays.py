"""Array types by the type of their values; docstrings state the shapes.

numpy.typing has them too, but importing numpy.typing would lengthen the cold start.
"""

from typing import Any, TypeVar

import numpy as np

_Scalar = TypeVar("_Scalar", bound=np.generic)

Array = np.ndarray[tuple[Any, ...], np.dtype[_Scalar]]
AnyArray = Array[Any]
