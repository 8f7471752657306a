"""Embed passages with the float model on a device of PyTorch, in a worker of semsearch/indexing/vectors/device.py.

When memory runs out, a batch is halved, and later batches stay that small.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from semsearch.conversion.reference import load_original, pool_original
from semsearch.engine.tensors import AnyArray
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.models.source import Source
from semsearch.indexing.vectors.device import Ids, Lengths


class DeviceModel:
    """A float model on one device."""

    def __init__(self, source: Source, dtype: str, device: str) -> None:
        """Load the model. dtype is float16 or float32. Raises ModelError if it cannot be loaded."""
        import torch

        model, _ = load_original(source, attention=None)
        self._model = model.to(device, getattr(torch, dtype))
        self._source, self._dtype, self._device = source, dtype, device
        self._padding = model.config.pad_token_id or 0
        self._most_tokens: int | None = None  # maximum of a batch, known once memory has run out

    def embed(self, ids: Ids, lengths: Lengths) -> AnyArray:
        """Return the unit embeddings of texts, (n, dim) of the dtype.

        Raises ModelError if a value is not finite, or if one text alone takes too much memory.
        """
        found = np.concatenate(list(self._embed_parts(ids, lengths)))
        if not np.isfinite(found).all():
            raise ModelError(
                f"--dtype {self._dtype}: {self._source.name} returns values that are not finite; expected numbers; "
                "choose --dtype float32"
            )
        return found

    def _embed_parts(self, ids: Ids, lengths: Lengths) -> Iterator[AnyArray]:
        import torch

        while len(lengths):
            texts = len(lengths)
            if self._most_tokens is not None:
                texts = max(1, self._most_tokens // int(lengths[0]))
            part = lengths[:texts]
            size = int(part.sum())
            try:
                found = self._run(ids[:size], part)
            except torch.OutOfMemoryError as error:
                if len(part) == 1:
                    raise ModelError(
                        f"--device {self._device}: memory runs out with one text of {size} tokens; expected room for "
                        "it; end other programs there, or choose another device"
                    ) from error
                self._most_tokens = len(part) * int(lengths[0]) // 2
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
                continue
            yield found
            ids, lengths = ids[size:], lengths[texts:]

    def _run(self, ids: Ids, lengths: Lengths) -> AnyArray:
        import torch

        is_token = np.arange(lengths[0]) < lengths[:, np.newaxis]
        padded = np.full(is_token.shape, self._padding, np.int64)
        padded[is_token] = ids
        mask = torch.from_numpy(is_token.astype(np.int64)).to(self._device)
        with torch.inference_mode():
            tokens = self._model(input_ids=torch.from_numpy(padded).to(self._device), attention_mask=mask)
            pooled = pool_original(self._source, tokens.last_hidden_state.float(), mask)[:, : self._source.dim]
            unit = torch.nn.functional.normalize(pooled, dim=1)
            found: AnyArray = unit.to(getattr(torch, self._dtype)).cpu().numpy()
        return found


_opened: dict[str, DeviceModel] = {}  # by device, in a worker's process


def embed_batch(source: Source, dtype: str, device: str, ids: Ids, lengths: Lengths) -> AnyArray:
    """Return the unit embeddings of texts, (n, dim) of the dtype. The first call loads the model.

    Raises ModelError as `DeviceModel` does.
    """
    if device not in _opened:
        _opened[device] = DeviceModel(source, dtype, device)
    return _opened[device].embed(ids, lengths)


def find_devices(device: str) -> dict[str, str]:
    """Return the name of each device that `device` means: "cuda" is all GPUs, "auto" a GPU or else the processor.

    Raises ModelError if PyTorch sees no such device.
    """
    if device == "auto" and find_spec("torch") is None:
        return {"cpu": "cpu"}
    import torch

    seen = {f"cuda:{number}": torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())}
    if torch.backends.mps.is_available():
        seen["mps"] = "mps"
    seen["cpu"] = "cpu"
    if device == "auto":
        device = next(iter(seen)).partition(":")[0]
    wanted = {each: name for each, name in seen.items() if device in (each, each.partition(":")[0])}
    if not wanted:
        raise ModelError(
            f"--device {device}: PyTorch {torch.__version__} sees {', '.join(seen)}; expected one of these; choose "
            "another device, or install the PyTorch of this GPU"
        )
    return wanted


def work(command: str, *arguments: Any) -> Any:
    """Answer a call of the parent process: `find_devices` or `embed_batch`."""
    if command == "find":
        return find_devices(*arguments)
    return embed_batch(*arguments)
