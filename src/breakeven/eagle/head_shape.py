"""A head's folder: as it was trained, as an engine loads it, or as others publish theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from breakeven.eagle.layers import written_as
from breakeven.eagle.shape import HeadShape, shape_of
from breakeven.errors import UsageError

CONFIGS = ("head.json", "config.json")
WEIGHTS = ("head.safetensors", "model.safetensors")
"""Of a head in training, and of an export."""
OF_LAYER = "transformer_layer_config"
"""Where the trainer's library keeps the decoder layer; engines have it beside everything else."""
NEEDED = "name the folder of an EAGLE-3 head"


def config_of(folder: Path) -> Path:
    """The file that says a head's shape. Raises UsageError where none does."""
    return _first(folder, CONFIGS)


def weights_of(folder: Path) -> Path:
    """The file that holds a head's weights. Raises UsageError where none does."""
    return _first(folder, WEIGHTS)


def read_shape(folder: Path, layers: tuple[int, ...]) -> HeadShape:
    """`layers` are those whose inputs the head will be given, as vLLM counts.

    Raises UsageError for a folder without a head, a head of another architecture, or one that reads others.
    """
    path = config_of(folder)
    said = _read(path)
    shape = shape_of(said if OF_LAYER in said else _as_trainer(said, path))
    known = [list(layers), written_as(layers, "sglang"), []]
    if list(shape.layers) not in known:
        raise UsageError(
            f"{path}: the head reads layers {list(shape.layers)}, and the states are of {list(layers)}: make "
            "states of its layers, or evaluate a head that was trained on these"
        )
    return replace(shape, layers=layers)


def _first(folder: Path, names: Sequence[str]) -> Path:
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise UsageError(f"{folder} has neither {' nor '.join(names)}: {NEEDED}")
    return path


def _read(path: Path) -> dict[str, Any]:
    try:
        said = orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error}): {NEEDED}") from error
    if not isinstance(said, dict):
        raise UsageError(f"{path} is no table: {NEEDED}")
    return said


def _as_trainer(said: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """A flat configuration, as engines load it, in the trainer's words; some of it stands in eagle_config."""
    names = [str(name) for name in said.get("architectures") or ()]
    if not any("eagle3" in name.lower() for name in names):
        found = ", ".join(names) or "no architecture"
        raise UsageError(f"{path} is of {found}: {NEEDED}, such as LlamaForCausalLMEagle3")
    inner = said.get("eagle_config") or {}
    return {**said, **inner, OF_LAYER: said, "speculators_model_type": "eagle3"}
