"""Arrays by what is in them; their shapes stand in the docstrings.

numpy.typing has the same, and a cold start would import all of it for these.
"""

from typing import Any, TypeVar

import numpy as np

_Scalar = TypeVar("_Scalar", bound=np.generic)

Array = np.ndarray[tuple[Any, ...], np.dtype[_Scalar]]
AnyArray = Array[Any]
