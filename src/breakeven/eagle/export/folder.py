"""Writes a head in one engine's format: config.json and model.safetensors, each whole or not there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from breakeven.eagle.export.format import Format
from breakeven.eagle.export.source import Source
from breakeven.eagle.export.tensors import slots
from breakeven.trace.files import storing, write_atomically, write_bytes_atomically

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def write_folder(folder: Path, made: Format, source: Source, tensors: Mapping[str, Any], k: int) -> None:
    """`tensors` are the source's, by the library's names.

    Raises UsageError, before anything is written, for a head that the engine cannot serve; StorageError.
    """
    config = orjson.dumps(made.config(source, k), option=orjson.OPT_INDENT_2)
    wanted = slots(source.shape, with_embedding=made.with_embedding)
    kept = made.named({name: tensors[name].contiguous() for name in wanted})
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(folder / CONFIG, config)
        write_atomically(folder / WEIGHTS, lambda path: _save(path, kept, folder / CONFIG))


def _save(path: Path, tensors: Mapping[str, Any], like: Path) -> None:
    """With the rights of another file: safetensors lets only the owner read, and a server is another user."""
    from safetensors.torch import save_file

    save_file(dict(tensors), path, {"format": "pt"})
    path.chmod(like.stat().st_mode)
