"""Source: the trained head of a recipe, and what of its target an export needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from breakeven.eagle.export.tensors import EMBEDDING, TO_DRAFT, TO_TARGET, Found, refuse_others, slots
from breakeven.eagle.layers import LEAST_LAYERS, default_layers
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.shape import HeadShape, shape_of
from breakeven.errors import RunFormatError, UsageError

AGAIN = "type  breakeven eagle train RECIPE --fresh"


@dataclass(frozen=True, slots=True)
class Source:
    """Files of the earlier stages, found to fit each other."""

    shape: HeadShape
    head: Path
    """head.safetensors: float32, without what the head shares with its target."""
    weights: Path
    """target.safetensors: the embedding, among others."""
    target: Mapping[str, Any]
    """The target's configuration."""
    name: str
    """The target, as a server is told of it."""
    weight_type: str
    """In which the target is stored, and the head served: `bfloat16`, …"""

    @property
    def has_default_layers(self) -> bool:
        """Whether it reads the layers that engines choose by themselves."""
        layers = self.target.get("num_hidden_layers") or 0
        return layers >= LEAST_LAYERS and self.shape.layers == default_layers(layers)

    def tensors(self) -> dict[str, Any]:
        """All of the head by the library's names: weights in the target's type, and its embedding."""
        import torch

        kind = getattr(torch, self.weight_type)
        trained = self.trained()
        return {name: one.to(kind) if one.is_floating_point() else one for name, one in trained.items()}

    def trained(self) -> dict[str, Any]:
        """The same as they were trained, in float32; the embedding as it is stored."""
        from safetensors import safe_open
        from safetensors.torch import load_file

        with safe_open(self.weights, "pt") as file:
            return {**load_file(self.head), EMBEDDING: file.get_tensor(EMBEDDING)}


def source_of(recipe: Recipe) -> Source:
    """Raises UsageError for a head of another architecture or target, RunFormatError for damaged files."""
    best, states = recipe.stage("train") / "best", recipe.stage("states")
    shape = shape_of(read_json(best / "head.json"))
    head, weights = best / "head.safetensors", states / "target.safetensors"
    embedding, weight_type = found_in(weights).get(EMBEDDING, ((), ""))
    if embedding != (shape.vocabulary, shape.hidden):
        raise UsageError(
            f"the embedding in {weights} is {list(embedding)}, and the head was trained for one of "
            f"{[shape.vocabulary, shape.hidden]}: {AGAIN}"
        )
    source = Source(
        shape, head, weights, read_json(states / "target_config.json"), _name(recipe), weight_type
    )
    _refuse_other(source)
    return source


def read_json(path: Path) -> dict[str, Any]:
    """Raises RunFormatError."""
    try:
        said = orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if not isinstance(said, dict):
        raise _unreadable(path, TypeError("it is no table"))
    return said


def _refuse_other(source: Source) -> None:
    """Raises UsageError for tensors that are not those of the configuration, or a map that is none."""
    wanted = slots(source.shape, with_embedding=False)
    refuse_others(found_in(source.head), wanted, "float32", str(source.head))
    if source.shape.maps_vocabulary and not _maps(source.head):
        raise UsageError(f"{TO_TARGET} and {TO_DRAFT} of {source.head} name different tokens: {AGAIN}")


def _maps(head: Path) -> bool:
    """Whether d2t rises through just the tokens that t2d marks."""
    import torch
    from safetensors import safe_open

    with safe_open(head, "pt") as file:
        offsets, marks = file.get_tensor(TO_TARGET), file.get_tensor(TO_DRAFT)
    return bool(torch.equal(offsets + torch.arange(len(offsets)), marks.nonzero()[:, 0]))


def found_in(path: Path) -> Found:
    """Shape and type of every tensor of a file. Raises RunFormatError for one that is damaged or gone."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {
                name: (tuple(one.get_shape()), TYPES.get(one.get_dtype(), "")) for name, one in slices.items()
            }
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from error


TYPES: Mapping[str, str] = {
    "F32": "float32",
    "BF16": "bfloat16",
    "F16": "float16",
    "I64": "int64",
    "BOOL": "bool",
}
"""Types of a safetensors file, as torch names them."""


def _unreadable(path: Path, error: Exception) -> RunFormatError:
    return RunFormatError(f"{path} cannot be read ({error}): make its stage again with  --fresh")


def _name(recipe: Recipe) -> str:
    """A folder by its whole path, since servers start elsewhere; else the name as it stands."""
    folder = recipe.beside(recipe.target.model)
    return str(folder.resolve()) if folder.is_dir() else recipe.target.model
