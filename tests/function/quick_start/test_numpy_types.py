"""NumPy without its types for checkers is NumPy, and who asks for the types gets them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

SCRIPT = """
import json, sys
import function.handler
before = [name for name in sys.modules if name.startswith("numpy._typing")]
import numpy as np
from numpy.typing import NDArray
values, vectors = np.linalg.eigh(np.diag([3.0, 1.0]))
print(json.dumps([before, str(NDArray[np.int8]), values.tolist(), type(np.linalg.eigh(np.eye(1))).__name__]))
"""


def test_a_start_leaves_the_types_to_who_asks_for_them(in_a_new_process: Callable[..., Any], bundle: Path) -> None:
    before, array, values, result = in_a_new_process(SCRIPT, BUNDLE_DIR=str(bundle))
    assert before == []
    assert array == "numpy.ndarray[tuple[typing.Any, ...], numpy.dtype[numpy.int8]]"
    assert (values, result) == ([1.0, 3.0], "EighResult")
