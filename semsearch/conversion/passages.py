"""Embed passages with the float model on a device of PyTorch, in a worker of semsearch/indexing/vectors/device.py.

When memory runs out, a batch is halved, and later batches stay that small.
"""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from semsearch.conversion.reference import load_original, pool_original
from semsearch.engine.tensors import AnyArray, Array
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.models.source import Source

Tokens = Array[np.int32]  # (tokens,): the token ids of one text


class DeviceModel:
    """A float model on one device."""

    def __init__(self, source: Source, dtype: str, device: str) -> None:
        """Load the model. dtype is float16 or float32. Raises ModelError if it cannot be loaded."""
        import torch

        model, _ = load_original(source, attention=None)
        self._model = model.to(device, getattr(torch, dtype))
        self._source, self._dtype, self._device = source, dtype, device
        self._padding = model.config.pad_token_id or 0
        self._most_texts: int | None = None  # of a batch; known once memory has run out
        self._most_tokens: int | None = None

    def embed(self, texts: Sequence[Tokens]) -> AnyArray:
        """Return the unit embeddings of texts, (n, dim) of the dtype. The longest text comes first.

        Raises ModelError if a value is not finite, or if one text alone takes too much memory.
        """
        return np.concatenate(list(self._embed_parts(texts)))

    def _embed_parts(self, texts: Sequence[Tokens]) -> Iterator[AnyArray]:
        import torch

        while len(texts):
            most = len(texts)
            if self._most_tokens is not None:
                most = max(1, self._most_tokens // len(texts[0]))
            part = texts[:most]
            try:
                found = self._run(part)
            except torch.OutOfMemoryError as error:
                if len(part) == 1:
                    raise ModelError(
                        f"--device {self._device}: memory runs out with one text of {len(part[0])} tokens; expected "
                        "room for it; end other programs there, or choose another device"
                    ) from error
                self._most_tokens = len(part) * len(part[0]) // 2
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
                continue
            if not np.isfinite(found).all():
                raise ModelError(
                    f"--dtype {self._dtype}: {self._source.name} returns values that are not finite; expected numbers; "
                    "choose --dtype float32"
                )
            yield found
            texts = texts[most:]

    def _run(self, texts: Sequence[Tokens]) -> AnyArray:
        import torch

        ids = np.full((len(texts), len(texts[0])), self._padding, np.int64)
        mask = np.zeros(ids.shape, np.int64)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        is_token = torch.from_numpy(mask).to(self._device)
        with torch.inference_mode():
            tokens = self._model(input_ids=torch.from_numpy(ids).to(self._device), attention_mask=is_token)
            pooled = pool_original(self._source, tokens.last_hidden_state.float(), is_token)[:, : self._source.dim]
            unit = torch.nn.functional.normalize(pooled, dim=1)
            found: AnyArray = unit.to(getattr(torch, self._dtype)).cpu().numpy()
        return found


_opened: dict[str, DeviceModel] = {}  # by device, in a worker's process


def embed_batch(source: Source, dtype: str, device: str, texts: Sequence[Tokens]) -> AnyArray:
    """Return the unit embeddings of texts, (n, dim) of the dtype, longest texts first. The first call loads the model.

    Raises ModelError as `DeviceModel` does.
    """
    if device not in _opened:
        _opened[device] = DeviceModel(source, dtype, device)
    return _opened[device].embed(texts)


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
