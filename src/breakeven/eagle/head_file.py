"""A head with its weights, from its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from breakeven.eagle.export.tensors import EMBEDDING, OF_TARGET, TO_DRAFT, TO_TARGET, refuse_others, slots
from breakeven.eagle.head import LAYER, Head
from breakeven.eagle.head_shape import read_shape, weights_of
from breakeven.eagle.shape import HeadShape
from breakeven.errors import UsageError

OLD_LAYER = "midlayer."
"""As EAGLE and SpecForge call the layer."""


def load_head(
    folder: Path, layers: tuple[int, ...], depth: int, embedding: Tensor, device: torch.device
) -> Head:
    """`layers` and `depth` as read_shape takes them; `embedding` is the target's, (vocabulary, hidden), for
    heads without their own.

    Raises UsageError for a folder without a head, or a head that does not fit its own configuration, these
    layers, or a target with this embedding.
    """
    shape = read_shape(folder, layers, depth)
    _refuse_target(folder, shape, embedding)
    tensors = _tensors(weights_of(folder), shape)
    weights = {
        name: tensor.to(device, torch.float32)
        for name, tensor in {EMBEDDING: embedding, **tensors}.items()
        if tensor.is_floating_point()
    }
    return Head(shape, weights, _draft_ids(shape, tensors, folder).to(device))


def _tensors(path: Path, shape: HeadShape) -> dict[str, Tensor]:
    try:
        stored = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UsageError(
            f"{path} is damaged ({error}): restore it from a copy, or train the head again"
        ) from error
    found = {
        name.replace(OLD_LAYER, LAYER): tensor
        for name, tensor in stored.items()
        if not name.startswith(OF_TARGET) and (shape.maps_vocabulary or name not in (TO_TARGET, TO_DRAFT))
    }
    kinds = {name: (tuple(tensor.shape), _kind(tensor)) for name, tensor in found.items()}
    weight = kinds.get("fc.weight", ((), "float32"))[1]
    refuse_others(kinds, slots(shape, with_embedding=EMBEDDING in found), weight, str(path))
    return found


def _kind(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _refuse_target(folder: Path, shape: HeadShape, embedding: Tensor) -> None:
    vocabulary, hidden = embedding.shape
    if (shape.vocabulary, shape.hidden) != (vocabulary, hidden):
        raise UsageError(
            f"{folder}: the head is for a target of hidden size {shape.hidden:,} and {shape.vocabulary:,} "
            f"tokens, and the states are of one with {hidden:,} and {vocabulary:,}: evaluate a head of that "
            "target"
        )


def _draft_ids(shape: HeadShape, tensors: Mapping[str, Tensor], folder: Path) -> Tensor:
    ids = torch.arange(shape.draft_vocabulary)
    if shape.maps_vocabulary:
        ids = ids + tensors[TO_TARGET]
    if ids.min() < 0 or ids.max() >= shape.vocabulary or len(ids.unique()) != len(ids):
        raise UsageError(
            f"{folder}: {TO_TARGET} does not name {shape.draft_vocabulary:,} of the target's tokens, each "
            "once: restore the head from a copy, or train it again"
        )
    return ids
