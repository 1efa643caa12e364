import pytest

from breakeven.cost.anchored import Anchored
from breakeven.cost.step import PLAIN_STEP, Step
from breakeven.explain.records import Observation
from breakeven.explain.waterfall import least_all_reduce_s, verify_cost, waterfall
from tests.unit.explain.cases import CURVE_MS, calibrated, kimi, llama

NAMES = ["weights", "experts", "kv", "arithmetic", "all_reduce", "overhead", "rest"]
SEEN = Observation("x", 0.010, 0.012)


@pytest.mark.parametrize("plain_s", [0.016, 0.005])
def test_the_parts_are_those_of_the_anchored_model(plain_s: float):
    case = kimi(reuse=(0.2, 0.2))
    parts = waterfall(case, plain_s, 5)
    anchored = Anchored(case.modelled, plain_s)
    assert [part.name for part in parts] == NAMES
    assert sum(part.baseline_s for part in parts) == pytest.approx(plain_s)
    assert plain_s + verify_cost(parts).high == pytest.approx(anchored.seconds(Step(6)).estimate)


def test_what_is_read_once_adds_nothing():
    parts = {part.name: part.added_s.high for part in waterfall(kimi(context_tokens=4000), 0.016, 5)}
    assert parts["weights"] == parts["kv"] == parts["overhead"] == parts["rest"] == 0
    assert parts["experts"] > 0 and parts["all_reduce"] > 0 and parts["arithmetic"] > 0


def test_a_known_reuse_leaves_no_range_of_experts():
    experts = waterfall(kimi(reuse=(0.3, 0.3)), 0.016, 5)[1]
    assert experts.added_s.low == experts.added_s.high
    assert "at a reuse of 0.3" in experts.source


def test_a_profiled_part_takes_its_difference_from_the_rest():
    modelled = {part.name: part for part in waterfall(kimi(), 0.016, 5)}
    profiled = {part.name: part for part in waterfall(kimi(profiled_s={"all_reduce": 0.0062}), 0.016, 5)}
    more = 0.0062 - modelled["all_reduce"].baseline_s
    assert profiled["all_reduce"].baseline_s == 0.0062
    assert profiled["rest"].baseline_s == pytest.approx(modelled["rest"].baseline_s - more)
    assert profiled["all_reduce"].added_s == modelled["all_reduce"].added_s
    assert profiled["all_reduce"].source.startswith("plain step as profiled")


def test_one_device_sends_nothing():
    case = llama(SEEN)
    assert least_all_reduce_s(case, 5) == 0
    parts = {part.name: part for part in waterfall(case, 0.010, 5)}
    assert parts["all_reduce"].added_s.high == 0 and parts["experts"].source == "the model has none"


def test_more_sequences_wake_more_experts_and_send_more():
    one, four = (waterfall(kimi(sequences=n), 0.016, 5) for n in (1, 4))
    assert four[1].baseline_s > 3 * one[1].baseline_s
    assert least_all_reduce_s(kimi(sequences=4), 5) == pytest.approx(4 * least_all_reduce_s(kimi(), 5))


def test_a_calibrated_step_is_one_part_that_grows_as_the_curve_does():
    (dense,) = waterfall(kimi(measured=calibrated(moe=False)), 0.026, 5)
    assert (dense.name, dense.baseline_s) == ("step", 0.026)
    assert dense.added_s.estimate == pytest.approx(0.026 * (CURVE_MS[6] / CURVE_MS[1] - 1))
    assert "6 tokens instead of 1" in dense.source
    moe = verify_cost(waterfall(kimi(measured=calibrated()), 0.026, 5))
    ratio = calibrated().relative(Step(6), PLAIN_STEP)
    assert (moe.low, moe.high) == pytest.approx((0.026 * (ratio.low - 1), 0.026 * (ratio.high - 1)))
    assert moe.low < moe.estimate < dense.added_s.estimate < moe.high


def test_more_tokens_never_take_less_time_by_a_curve():
    flat = calibrated(moe=False, steps_ms={1: 13.0, 2: 13.0, 4: 13.0})
    assert flat.seconds(Step(3)).low < flat.seconds(PLAIN_STEP).estimate
    (part,) = waterfall(kimi(measured=flat), 0.013, 2)
    assert part.added_s.low == 0 < part.added_s.high
