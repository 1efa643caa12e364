"""Route: how target and training share the devices, and which of the ways the machine and the disk allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from breakeven.cost.geometry import Geometry
from breakeven.eagle.plan.asked import Asked
from breakeven.eagle.plan.head import HeadSize
from breakeven.eagle.plan.hours import Hours
from breakeven.eagle.plan.memory import (
    Sharing,
    target_bytes,
    target_devices,
    training_memory,
    usable_bytes,
)
from breakeven.eagle.plan.ranges import exactly, total
from breakeven.eagle.plan.storage import Storage
from breakeven.interval import Interval
from breakeven.units import count, size

Possible = Literal["yes", "no", "perhaps"]
Way = Literal["offline", "online beside", "online together"]


@dataclass(frozen=True, slots=True)
class Route:
    """One way."""

    way: Way
    possible: Possible
    why: str
    gpu_hours: Interval


def routes_of(asked: Asked, head: HeadSize, storage: Storage, hours: Hours) -> tuple[Route, ...]:
    """All three, the one that this tool's own stages take first."""
    return (
        Route("offline", *_offline(asked, head, storage), hours.offline),
        Route("online beside", *_beside(asked, head), hours.online),
        Route("online together", *_together(asked, head), hours.online),
    )


def _offline(asked: Asked, head: HeadSize, storage: Storage) -> tuple[Possible, str]:
    """States are made and kept first, then the target leaves and the head is trained."""
    holds, gpus = target_devices(asked.geometry, asked.machine.gpu), asked.machine.gpus
    if holds > gpus:
        return "no", _too_large(asked, holds)
    fits, words = _training_fits(asked, head, gpus)
    if fits == "no":
        return fits, words
    disk = asked.budget.disk_bytes
    need = f"the states take {_sizes(storage.whole)}"
    if disk is None:
        return "perhaps", f"{need}, and the size of the disk was not said: --disk"
    if storage.whole.low > disk:
        return "no", f"{need}, and the disk has {size(disk)}: it holds {_samples(storage)} samples"
    if storage.whole.high > disk:
        return "perhaps", f"{need}, and the disk has {size(disk)}"
    return fits, f"{need} of {size(disk)}; {words}"


def _beside(asked: Asked, head: HeadSize) -> tuple[Possible, str]:
    """Some devices run the target, the others train on what they send."""
    holds, gpus = target_devices(asked.geometry, asked.machine.gpu), asked.machine.gpus
    if holds > gpus:
        return "no", _too_large(asked, holds)
    left = gpus - holds
    if not left:
        return "no", f"the target takes all {count(gpus, 'device')}, so none is left to train on"
    fits, words = _training_fits(asked, head, left)
    return fits, f"{holds} for the target, {left} for training: {words}"


def _together(asked: Asked, head: HeadSize) -> tuple[Possible, str]:
    """Every device holds a part of the target and trains."""
    geometry, gpus = asked.geometry, asked.machine.gpus
    holds = target_devices(geometry, asked.machine.gpu)
    if holds > gpus:
        return "no", _too_large(asked, holds)
    of_target = target_bytes(geometry, _most_shares(geometry, gpus))
    memory = training_memory(head, "sharded", gpus, asked.data.tokens_per_sample, asked.data.steps).total
    both = total(exactly(of_target), memory)
    usable = usable_bytes(asked.machine.gpu)
    words = f"{_sizes(both)} of {size(round(usable))} on each device, without a KV cache"
    return _judged(both, usable), words


def _most_shares(geometry: Geometry, gpus: int) -> int:
    """Devices among which the target is shared out: they share its attention heads."""
    heads = geometry.attention.heads
    return max(n for n in range(1, min(gpus, heads) + 1) if heads % n == 0)


def _training_fits(asked: Asked, head: HeadSize, devices: int) -> tuple[Possible, str]:
    """Replicated where that is sure to fit, else sharded."""
    usable, data = usable_bytes(asked.machine.gpu), asked.data
    ways: tuple[Sharing, Sharing] = ("replicated", "sharded")
    found = [training_memory(head, way, devices, data.tokens_per_sample, data.steps) for way in ways]
    chosen = next((one for one in found if one.total.high <= usable), found[-1])
    how = "the whole head on each device" if chosen.sharing == "replicated" else "the head sharded"
    words = f"training takes {_sizes(chosen.total)} of {size(round(usable))} on each, {how}"
    return _judged(chosen.total, usable), words


def _judged(need: Interval, usable: float) -> Possible:
    if need.high <= usable:
        return "yes"
    return "no" if need.low > usable else "perhaps"


def _too_large(asked: Asked, holds: int) -> str:
    weights = size(asked.geometry.weight_bytes())
    return (
        f"the target's weights, {weights}, take {holds} × {asked.machine.gpu.name}, and there are "
        f"{asked.machine.gpus}"
    )


def _samples(storage: Storage) -> str:
    fits = storage.samples_that_fit
    if fits is None:
        return "no known number of"
    ends = [f"{round(n):,}" for n in (fits.low, fits.high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _sizes(n_bytes: Interval) -> str:
    ends = [size(round(n)) for n in (n_bytes.low, n_bytes.high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
