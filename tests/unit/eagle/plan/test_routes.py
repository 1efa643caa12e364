"""Which ways of training a machine and a disk allow."""

from __future__ import annotations

from breakeven.cost.hardware import hardware
from breakeven.eagle.plan.routes import Route
from breakeven.interval import Interval
from tests.unit.eagle.plan.builders import data, plan

H200, PRO = hardware("h200-sxm"), hardware("rtx-pro-6000-ws")


def ways(**changes) -> dict[str, Route]:
    return {one.way: one for one in plan(**changes).routes}


def test_offline_goes_by_the_disk():
    """500,000 samples of 2,048 tokens: 33.6 TB."""
    answers = [ways(disk_bytes=size)["offline"].possible for size in (None, 10**13, 4 * 10**13)]
    assert answers == ["perhaps", "no", "yes"]
    assert "holds 149,012 samples" in ways(disk_bytes=10**13)["offline"].why
    ranged = data(tokens=Interval(2048, 1024, 8192))
    assert ways(of=ranged, disk_bytes=4 * 10**13)["offline"].possible == "perhaps"


def test_a_target_that_takes_every_device_leaves_none_beside_it():
    found = ways(model="kimi-k2.5", gpu=PRO, gpus=8, tp=8)
    assert found["online beside"].possible == "no"
    assert "takes all 8 devices" in found["online beside"].why
    assert found["online together"].possible in ("yes", "perhaps")


def test_room_beside_a_target():
    found = ways(model="kimi-k2.5", gpu=H200, gpus=32, tp=8)
    assert found["online beside"].possible == "yes"
    assert found["online beside"].why.startswith("8 for the target, 24 for training")


def test_a_target_that_fits_nowhere():
    found = ways(model="kimi-k2.5", gpu=H200, gpus=4, tp=4)
    assert {one.possible for one in found.values()} == {"no"}
    assert all("take 8 × h200-sxm, and there are 4" in one.why for one in found.values())


def test_activations_that_fit_no_device():
    found = ways(of=data(tokens=200_000.0), disk_bytes=10**18)
    assert {one.possible for one in found.values()} == {"no"}
