"""Memory of training, beside what SpecForge measured, and of the target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from breakeven.cost.hardware import hardware
from breakeven.cost.presets import preset
from breakeven.eagle.plan.head import HeadSize, head_of
from breakeven.eagle.plan.memory import FROZEN, WEIGHTS, target_devices, training_memory, usable_bytes
from breakeven.eagle.plan.ranges import exactly
from breakeven.eagle.train.config import head_config
from breakeven.errors import UsageError
from breakeven.interval import Interval
from tests.unit.eagle.train.tiny import DRAFTED, LAYERS, TARGET, TOKENS, tiny_recipe

MEDIUM = HeadSize(2048, 8192, 16, 4, 128, 32_000, 32_000)
LARGE = HeadSize(4096, 14_336, 32, 8, 128, 32_000, 32_000)
GIB = 2**30
PEAKS = [
    (MEDIUM, 4096, 9.17),
    (MEDIUM, 4096, 13.09),
    (MEDIUM, 4352, 9.60),
    (MEDIUM, 8192, 23.98),
    (MEDIUM, 2944, 7.21),
    (LARGE, 2944, 12.97),
    (LARGE, 8192, 33.03),
]
"""Head, positions in a microbatch (padding included), and peak GiB on one H200 with 7 steps: SpecForge,
docs/sections/benchmarks/eagle3-sequence-packing.md. What it only reads is BF16 there."""


@pytest.mark.parametrize(("head", "tokens", "peak"), PEAKS)
def test_measured_peaks_lie_within_five_percent_of_the_interval(head: HeadSize, tokens: int, peak: float):
    here = training_memory(head, "replicated", 1, exactly(tokens), 7)
    there = replace(here, frozen=here.frozen / 2).total
    assert 0.95 * there.low <= peak * GIB <= 1.05 * there.high


def test_what_is_shared_out():
    head = head_of(preset("llama-3.1-8b"), 32_000)
    whole, eighth = (
        training_memory(head, way, 8, Interval(2048, 1024, 4096), 7) for way in ("replicated", "sharded")
    )
    assert whole.weights + whole.gradients + whole.adam == 16 * head.trained()
    assert whole.frozen == 4 * (128_256 + 32_000) * 4096
    assert eighth.weights == whole.weights / 8
    assert eighth.frozen == whole.frozen / 8
    assert eighth.activations == whole.activations, "each device has its own sample"
    assert whole.activations.high > 2 * whole.activations.estimate


@pytest.mark.parametrize(
    ("model", "device", "devices"),
    [("llama-3.1-8b", "h100-sxm", 1), ("kimi-k2.5", "rtx-pro-6000-ws", 8), ("kimi-k2.5", "h200-sxm", 8)],
)
def test_devices_that_hold_the_target(model: str, device: str, devices: int):
    found = target_devices(preset(model), hardware(device))
    assert found == devices
    assert preset(model).attention.heads % found == 0
    assert preset(model).weight_bytes() <= found * usable_bytes(hardware(device))


def test_a_device_of_unknown_memory():
    with pytest.raises(UsageError, match=r"memory of xeon-granite.* type  --train-hardware"):
        usable_bytes(hardware("xeon-granite-rapids-12ch-mrdimm-8800"))


@pytest.mark.eagle
@pytest.mark.parametrize("drafted", [DRAFTED, TOKENS])
def test_training_holds_what_the_plan_counts(drafted: int, tmp_path: Path):
    """But for norms, which are vectors."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("speculators.models.eagle3")
    from breakeven.eagle.train.model import new_head

    recipe = tiny_recipe(tmp_path, drafted=drafted)
    target = recipe.stage("states") / "target.safetensors"
    head = new_head(head_config(TARGET, LAYERS, drafted, "eagle3"), range(drafted), target, 0)
    matrices = [one for one in head.parameters() if one.dim() > 1]
    planned = HeadSize(
        hidden=TARGET["hidden_size"],
        ff=TARGET["intermediate_size"],
        heads=TARGET["num_attention_heads"],
        kv_heads=TARGET["num_key_value_heads"],
        head_dim=TARGET["head_dim"],
        draft_vocabulary=drafted,
        target_vocabulary=TOKENS,
    )
    assert {one.dtype for one in matrices} == {torch.float32}
    assert {one.element_size() for one in matrices} == {WEIGHTS} == {FROZEN}
    assert sum(one.numel() for one in matrices if one.requires_grad) == planned.trained()
    assert sum(one.numel() for one in matrices if not one.requires_grad) == planned.frozen()
