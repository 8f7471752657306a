"""Write the passages of a corpus row by row, so that memory does not hold the corpus."""

from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from export.files.tensor_file import Tensor, save_tensors
from function.engine.passages import COLUMNS

Append = Callable[[str, str, str], None]


@contextmanager
def writing_passages(path: Path) -> Iterator[Append]:
    """Yield `append(text, id, metadata)`, and write a passages.safetensors of its rows if the block ends without error.

    metadata is one JSON object. The rows wait in temporary files in the path's folder, which needs room for them twice;
    24 bytes of each row stay in memory. The temporary files have no names, so a killed export leaves none behind.
    Raises OSError if the files cannot be written.
    """
    with ExitStack() as opened:
        files = [opened.enter_context(TemporaryFile(dir=path.parent)) for _ in COLUMNS]
        offsets = [array("Q", [0]) for _ in COLUMNS]

        def append(text: str, id: str, metadata: str) -> None:
            encoded = text.encode(), id.encode(), metadata.encode()
            for file, ends, value in zip(files, offsets, encoded, strict=True):
                file.write(value)
                ends.append(ends[-1] + len(value))

        yield append
        tensors: dict[str, Tensor] = {}
        for column, file, ends in zip(COLUMNS, files, offsets, strict=True):
            tensors |= {column: file, f"{column}.offsets": np.frombuffer(ends, np.uint64)}
        save_tensors(path, tensors)
