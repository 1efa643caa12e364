"""Writes a head in one engine's format: config.json and model.safetensors, each whole or not there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from breakeven.eagle.export.format import Format
from breakeven.eagle.export.source import Source
from breakeven.eagle.export.tensors import slots
from breakeven.trace.files import storing, write_bytes_atomically

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def write_folder(folder: Path, made: Format, source: Source, tensors: Mapping[str, Any], k: int) -> None:
    """`tensors` are the source's, by the library's names.

    Raises UsageError, before anything is written, for a head that the engine cannot serve; StorageError.
    """
    from safetensors.torch import save

    config = orjson.dumps(made.config(source, k), option=orjson.OPT_INDENT_2)
    wanted = slots(source.shape, with_embedding=made.with_embedding)
    kept = made.named({name: tensors[name].contiguous() for name in wanted})
    # safetensors writes files that only their owner may read, and a server is another user
    weights = save(kept, {"format": "pt"})
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(folder / CONFIG, config)
        write_bytes_atomically(folder / WEIGHTS, weights)
