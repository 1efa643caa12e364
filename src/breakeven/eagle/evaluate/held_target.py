"""What a states folder keeps of the target: its embedding, and its last norm with the output matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import orjson
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from breakeven.eagle.shape import RMS_EPS
from breakeven.eagle.states.held import MEND
from breakeven.eagle.states.target import EMBEDDING, TEXT_CONFIG, WEIGHTS
from breakeven.eagle.states.target_head import TargetHead
from breakeven.errors import RunFormatError

UNREADABLE = (OSError, SafetensorError, ValueError, KeyError, TypeError, AttributeError)


class HeldTarget(NamedTuple):
    """Of a target, without its layers."""

    embedding: Tensor
    """Shape (vocabulary, hidden), on the CPU."""
    head: TargetHead
    depth: int
    """How many layers it has."""


def held_target(folder: Path, device: Any) -> HeldTarget:
    """With the head on that device. Raises RunFormatError for files that are damaged."""
    try:
        weights = load_file(folder / WEIGHTS)
        config = orjson.loads((folder / TEXT_CONFIG).read_bytes())
        eps, depth = config.get("rms_norm_eps", RMS_EPS), config["num_hidden_layers"]
        moved = {name: one.to(device) for name, one in weights.items()}
        return HeldTarget(weights[EMBEDDING], TargetHead.of(moved, eps), depth)
    except UNREADABLE as error:
        raise RunFormatError(f"{folder} lacks its target, or it is damaged ({error}): {MEND}") from error
