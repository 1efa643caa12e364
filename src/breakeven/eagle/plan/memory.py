"""Memory of each device: of training, by how it is shared out, and of the target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from breakeven.cost.geometry import Geometry
from breakeven.cost.hardware import Hardware
from breakeven.eagle.plan.assumed import MEMORY_SHARE
from breakeven.eagle.plan.head import HeadSize
from breakeven.eagle.plan.ranges import exactly, product, total
from breakeven.errors import UsageError
from breakeven.interval import Interval

Sharing = Literal["replicated", "sharded"]
"""Data parallel with the whole head on each device (DDP), or with its state shared out (FSDP)."""
WEIGHTS, GRADIENTS, ADAM = 4, 4, 8
"""Bytes of float32 for each trained parameter: itself, its gradient, two moments. With BF16 weights and a
float32 copy it comes to the same: 2 + 2 + 4 + 8."""
FROZEN = 4
"""Bytes for each parameter that is read only: float32 too, as breakeven.eagle.train holds a whole head."""
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """Bytes of each device, one sample at a time."""

    sharing: Sharing
    devices: int
    weights: float
    gradients: float
    adam: float
    frozen: float
    """Of the target, as HeadSize.frozen counts."""
    activations: Interval

    @property
    def total(self) -> Interval:
        """Without what a framework keeps besides: buffers, and BF16 copies of weights that are at work."""
        return total(exactly(self.weights + self.gradients + self.adam + self.frozen), self.activations)


def training_memory(
    head: HeadSize, sharing: Sharing, devices: int, tokens: Interval, steps: int
) -> TrainingMemory:
    """With samples of so many tokens."""
    shared_by = devices if sharing == "sharded" else 1
    trained = head.trained() / shared_by
    return TrainingMemory(
        sharing,
        devices,
        WEIGHTS * trained,
        GRADIENTS * trained,
        ADAM * trained,
        FROZEN * head.frozen() / shared_by,
        product(tokens, head.activation_bytes_per_token(steps)),
    )


def usable_bytes(device: Hardware) -> float:
    """Raises UsageError where its memory is not known."""
    if device.memory_gib is None:
        raise UsageError(
            f"the memory of {device.name} is not known, so what fits cannot be told: type  "
            "--train-hardware Y  with a device of which it is, such as h200-sxm"
        )
    return device.memory_gib * _GIB * MEMORY_SHARE.value.estimate


def target_devices(geometry: Geometry, device: Hardware) -> int:
    """The fewest that hold the target's weights and can share its attention heads, without a KV cache."""
    least = math.ceil(geometry.weight_bytes() / usable_bytes(device))
    heads = geometry.attention.heads
    return next((n for n in range(least, heads + 1) if heads % n == 0), least)


def target_bytes(geometry: Geometry, devices: int) -> float:
    """Of each device: the weights alone."""
    return geometry.weight_bytes() / devices
