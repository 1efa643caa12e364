"""A head's folder: as it was trained, as an engine loads it, or as others publish theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from breakeven.eagle.layers import engine_layers, read_from
from breakeven.eagle.shape import LAYER_IDS, OF_LAYER, HeadShape, shape_of
from breakeven.errors import UsageError

CONFIGS = ("head.json", "config.json")
WEIGHTS = ("head.safetensors", "model.safetensors")
"""Of a head in training, and of an export."""
NEEDED = "name the folder of an EAGLE-3 head"


def config_of(folder: Path) -> Path:
    """The file that says a head's shape. Raises UsageError where none does."""
    return _first(folder, CONFIGS)


def weights_of(folder: Path) -> Path:
    """The file that holds a head's weights. Raises UsageError where none does."""
    return _first(folder, WEIGHTS)


def names_layers(folder: Path) -> bool:
    """Whether its configuration says which layers' states the head reads. Raises UsageError for no head."""
    shape, _ = _said(config_of(folder))
    return bool(shape.layers)


def read_shape(folder: Path, layers: tuple[int, ...], depth: int) -> HeadShape:
    """`layers` are those whose inputs the head will be given, as vLLM counts, of a target with `depth`.

    A head that names none reads what engines choose by themselves then. Raises UsageError for a folder
    without a head, a head of another architecture, or one that reads others.
    """
    path = config_of(folder)
    shape, flat = _said(path)
    chosen = engine_layers(depth)
    if not shape.layers and layers != chosen:
        raise UsageError(
            f"{path} has no {LAYER_IDS}: engines give such a head layers {list(chosen)}, and the states are "
            f'of {list(layers)}; write  "{LAYER_IDS}": {list(layers)}  there if it was trained on these, '
            "else make states of those"
        )
    if shape.layers and layers not in _meant(shape.layers, flat, chosen):
        raise UsageError(
            f"{path}: the head reads layers {list(shape.layers)}, and the states are of {list(layers)}: make "
            "states of its layers, or evaluate a head that was trained on these"
        )
    return replace(shape, layers=layers)


def _said(path: Path) -> tuple[HeadShape, bool]:
    """The shape, with the layers' ids as they stand there; and whether the configuration is a flat one."""
    said = _read(path)
    flat = OF_LAYER not in said
    return shape_of(_as_trainer(said, path) if flat else said), flat


def _meant(ids: tuple[int, ...], flat: bool, chosen: tuple[int, ...]) -> Sequence[tuple[int, ...]]:
    """Layers that these ids can be, as vLLM counts. Flat configurations come in two conventions: if by one
    of them the ids are those that engines choose, it is that one."""
    possible = (ids, read_from(ids, "sglang")) if flat else (ids,)
    return (chosen,) if chosen in possible else possible


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
