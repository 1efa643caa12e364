"""A whole plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakeven.cost.hardware import hardware
from breakeven.errors import UsageError
from tests.unit.eagle.plan.builders import CHEAP, DEAR, H100, asked, data, plan


def test_a_cheap_verification_and_all_that_is_needed_is_a_go():
    found = plan(disk_bytes=10**14, gpu_hours=10**6)
    assert found.outcome == "go"
    assert {one.topic for one in found.reasons} == {"acceptance", "data", "memory and disk", "GPU hours"}
    assert found.not_judged == ()
    assert found.next_commands[-1] == "breakeven eagle run recipe.toml"


def test_a_dear_one_is_none_and_nothing_is_to_be_trained():
    found = plan(cost=DEAR, disk_bytes=10**14, gpu_hours=10**6)
    assert found.outcome == "no-go"
    assert not any("eagle" in command.split()[1] for command in found.next_commands)


def test_what_was_not_said_is_not_judged():
    found = plan()
    assert "GPU hours" not in {one.topic for one in found.reasons}
    assert found.not_judged[0].endswith("--gpu-hours")
    assert found.not_judged[1].endswith("--disk")


def test_a_published_head_is_tried_before_one_is_trained():
    found = plan(asked("kimi-k2.5", gpu=hardware("h200-sxm"), gpus=32, tp=8), CHEAP)
    assert found.heads[0] == "lightseekorg/kimi-k2.5-eagle3"
    trial = next(place for place, command in enumerate(found.next_commands) if "trial" in command)
    assert trial < found.next_commands.index("breakeven eagle init --out recipe.toml")
    assert found.heads[0] in found.next_commands[trial]


def test_layers_as_each_tool_counts():
    found = plan(asked("kimi-k2.5", gpu=hardware("h200-sxm"), gpus=32, tp=8))
    assert found.layers["vllm"] == (2, 30, 58) == found.layers["speculators"]
    assert found.layers["sglang"] == (1, 29, 57) == found.layers["specforge"]


def test_memory_by_parallelism():
    assert [(one.sharing, one.devices) for one in plan(gpus=8).memory] == [
        ("replicated", 8),
        ("sharded", 4),
        ("sharded", 8),
    ]
    assert [(one.sharing, one.devices) for one in plan(gpus=1).memory] == [("replicated", 1)]


def test_a_draft_vocabulary_that_is_too_large():
    with pytest.raises(UsageError, match="draft vocabulary of 1,000,000"):
        plan(of=data(draft_vocabulary=1_000_000))


def test_where_the_disk_is_too_small_the_tools_own_stages_are_not_typed():
    found = plan(disk_bytes=10**12, gpu_hours=10**6)
    assert found.outcome == "go", "online is open"
    assert not any("eagle run" in command for command in found.next_commands)
    assert any("train online" in said for said in found.warnings)


def test_a_head_that_fits_only_in_parts_is_not_trained_by_the_tools_own_stages():
    """14 GB of it whole, at the least; 12 GiB a device."""
    found = plan(gpu=replace(H100, memory_gib=12), disk_bytes=10**14, gpu_hours=10**6)
    assert found.routes[0].possible == "yes" and "the head sharded" in found.routes[0].why
    assert not any("eagle run" in command for command in found.next_commands)
    assert any("--fsdp-shard" in said for said in found.warnings)
