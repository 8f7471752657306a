"""Bundles without the rows that were removed after they were published. Imported for such a bundle only."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from function.engine.bundle import BundleError
from function.engine.loading import Loaded, LoadedTexts


def without_rows(bundle: Loaded, rows: Sequence[int]) -> Loaded:
    """Return the bundle without some rows, which no search finds or counts, with the parts that are open already.

    Raises BundleError if the bundle does not have all of them.
    """
    count = len(bundle.passages) if isinstance(bundle, LoadedTexts) else 0
    if max(rows) >= count or not isinstance(bundle, LoadedTexts):
        raise BundleError(f"{bundle.folder}: row {max(rows)} was removed, expected one of {count} rows; publish again")
    allowed = np.ones(count, np.bool_)
    allowed[list(rows)] = False
    found = replace(bundle, allowed=allowed)
    vars(found).update({name: part for name, part in vars(bundle).items() if name not in vars(found)})
    return found
