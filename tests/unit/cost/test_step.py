from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.cost.anchored import Anchored
from breakeven.cost.hardware import Link, hardware
from breakeven.cost.modelled import INCREMENT_ERROR, PARTS, PREDICTION_ERROR, Modelled
from breakeven.cost.presets import preset
from breakeven.cost.step import PLAIN_STEP, Step, StepCost
from breakeven.errors import UsageError
from breakeven.interval import Interval

H100 = hardware("h100-sxm")
DENSE = Modelled(preset("llama-3.1-8b"), H100)
MIXED = Modelled(preset("qwen3-30b-a3b"), H100)
KIMI = Modelled(preset("kimi-k2.5"), hardware("rtx-pro-6000-ws"), tp=8)
MODELS = st.sampled_from([DENSE, MIXED, KIMI, replace(KIMI, ep=8)])
STEPS = st.builds(
    Step, tokens=st.integers(1, 16), sequences=st.integers(1, 256), context_tokens=st.integers(0, 100_000)
)
MEASURED = st.floats(1e-4, 1.0)


def rise_ms(model: Modelled, part: str, to: Step) -> float:
    return 1e3 * (model.parts(to)[part] - model.parts(PLAIN_STEP)[part])


@pytest.mark.parametrize("batch", [1, 16, 64, 128])
@pytest.mark.parametrize("k", [0, 3])
def test_as_measured_on_an_h100(batch: int, k: int):
    """The regression of arXiv 2601.11580, Llama-3.1-8B with 500 tokens of context each."""
    measured_s = 5.886e-3 + 1.207e-3 + 21.0e-6 * batch * (k + 1) + 39.3e-9 * batch * 500
    assert DENSE.seconds(Step(k + 1, batch, 500)).estimate == pytest.approx(measured_s, rel=0.05)


def test_six_tokens_of_kimi_read_3_to_5_ms_more_of_experts():
    """The range of reuse from 0.3 to none; the write-up blamed experts for 9 ms."""
    six = Step(tokens=6)
    assert rise_ms(replace(KIMI, reuse=0.3), "experts", six) == pytest.approx(3.4, abs=0.1)
    assert rise_ms(replace(KIMI, reuse=0.0), "experts", six) == pytest.approx(4.9, abs=0.1)


def test_parts_of_a_plain_step_of_kimi_by_hand():
    parts = KIMI.parts(PLAIN_STEP)
    geometry, per_s = KIMI.geometry, 8 * 1792e9 * 0.80
    assert parts["weights"] + parts["experts"] == pytest.approx(geometry.bytes_read_per_step() / per_s)
    assert parts["all_reduce"] == pytest.approx(122 * KIMI.hardware.link.all_reduce_s(2 * 7168, 8))
    assert tuple(parts) == PARTS


@given(MODELS, STEPS, MEASURED)
def test_parts_sum_to_seconds_within_the_interval(model: Modelled, step: Step, measured_s: float):
    costs: list[StepCost] = [model, Anchored(model, measured_s, Step(sequences=step.sequences))]
    for cost in costs:
        found, parts = cost.seconds(step), cost.parts(step)
        assert sum(parts.values()) == pytest.approx(found.estimate)
        assert min(parts.values()) >= -1e-12
        assert 0 <= found.low <= found.estimate * (1 + 1e-9)
        assert found.estimate <= found.high * (1 + 1e-9)


@given(MODELS, STEPS, STEPS, MEASURED)
def test_more_of_anything_never_costs_less(model: Modelled, a: Step, b: Step, measured_s: float):
    fields = ("tokens", "sequences", "context_tokens")
    less = Step(**{name: min(getattr(a, name), getattr(b, name)) for name in fields})
    more = Step(**{name: max(getattr(a, name), getattr(b, name)) for name in fields})
    for cost in (model, Anchored(model, measured_s)):
        assert cost.seconds(less).estimate <= cost.seconds(more).estimate * (1 + 1e-9)


@given(MODELS, STEPS, MEASURED)
def test_exact_at_the_anchor(model: Modelled, at: Step, measured_s: float):
    found = Anchored(model, measured_s, at).seconds(at)
    assert found.estimate == pytest.approx(measured_s)
    if at.tokens == 1:
        assert (found.low, found.high) == pytest.approx((measured_s, measured_s))


def test_an_anchor_above_the_model_adds_the_models_increment():
    cost, step = Anchored(DENSE, 10e-3), Step(tokens=8)
    increment = DENSE.seconds(step).estimate - DENSE.seconds(PLAIN_STEP).estimate
    found = cost.seconds(step)
    assert found.estimate == pytest.approx(10e-3 + increment)
    assert found.high - found.low == pytest.approx(2 * INCREMENT_ERROR * increment)
    assert cost.parts(step)["rest"] == pytest.approx(10e-3 - DENSE.seconds(PLAIN_STEP).estimate)


def test_an_anchor_below_the_model_shrinks_every_part():
    measured_s = DENSE.seconds(PLAIN_STEP).estimate / 2
    parts, modelled = Anchored(DENSE, measured_s).parts(Step(8)), DENSE.parts(Step(8))
    assert parts == pytest.approx({**{name: s / 2 for name, s in modelled.items()}, "rest": 0.0})


def test_an_anchor_narrows_the_interval_and_the_unknown_reuse_of_experts_widens_it():
    step = Step(tokens=6)
    measured_s = MIXED.seconds(PLAIN_STEP).estimate
    anchored, model = Anchored(MIXED, measured_s).seconds(step), MIXED.seconds(step)
    assert model.low < anchored.low < anchored.high < model.high
    assert anchored.high - anchored.estimate > INCREMENT_ERROR * (anchored.estimate - measured_s)


@given(MODELS, STEPS, STEPS, MEASURED)
def test_relative_is_a_ratio_in_its_interval(model: Modelled, a: Step, b: Step, measured_s: float):
    for cost in (model, Anchored(model, measured_s), Anchored(model, measured_s, Step(1, 32, 500))):
        found = cost.relative(a, b)
        assert found.estimate == pytest.approx(cost.seconds(a).estimate / cost.seconds(b).estimate)
        assert 0 < found.low <= found.estimate <= found.high
        assert cost.relative(a, a) == Interval(1, 1, 1)


@given(MODELS, STEPS, st.floats(0, 15), MEASURED)
def test_relative_rises_with_tokens(model: Modelled, less: Step, further: float, measured_s: float):
    more, base = replace(less, tokens=less.tokens + further), replace(less, tokens=1)
    for cost in (model, Anchored(model, measured_s)):
        a, b = cost.relative(less, base), cost.relative(more, base)
        slack = 1 + 1e-9
        assert a.estimate <= b.estimate * slack and a.low <= b.low * slack and a.high <= b.high * slack


def test_relative_of_a_model_by_hand():
    base, step = Step(1, 4, 500), Step(4, 4, 500)
    rise = DENSE.seconds(step).estimate / DENSE.seconds(base).estimate - 1
    found = DENSE.relative(step, base)
    wide = (1 + rise) * (1 + PREDICTION_ERROR)
    assert (found.low, found.high) == pytest.approx((1, max(1 + rise * 1.5 / 0.65, wide)))
    back = DENSE.relative(base, step)
    assert (back.low, back.high) == pytest.approx((1 / found.high, 1 / found.low))


def test_a_ratio_is_never_said_to_be_surer_than_the_published_rows_show():
    """Small models on a large device: the increment is nothing, what is left out is not."""
    found = Anchored(DENSE, 14e-3).relative(Step(4), PLAIN_STEP)
    assert found.estimate < 1.01 and found.low == 1
    assert found.high == pytest.approx(found.estimate * (1 + PREDICTION_ERROR))


def test_from_the_anchor_the_ratio_is_as_well_known_as_the_step():
    cost, step = Anchored(MIXED, 6e-3), Step(6)
    seconds, ratio = cost.seconds(step), cost.relative(step, PLAIN_STEP)
    assert ratio.estimate == pytest.approx(seconds.estimate / 6e-3)
    assert ratio.high == pytest.approx(max(seconds.high / 6e-3, ratio.estimate * (1 + PREDICTION_ERROR)))
    assert ratio.low == pytest.approx(min(seconds.low / 6e-3, ratio.estimate / (1 + PREDICTION_ERROR)))


def test_away_from_the_anchor_errors_of_the_two_steps_cancel():
    cost, base, step = Anchored(DENSE, 7e-3), Step(1, 64, 4000), Step(2, 64, 4000)
    whole, ratio = cost.seconds(base), cost.relative(step, base)
    assert (ratio.high - ratio.low) / ratio.estimate < 0.25 * (whole.high - whole.low) / whole.estimate


def test_a_step_far_below_the_anchor_still_takes_time():
    cost = Anchored(DENSE, 20e-3, Step(1, 128, 8000))
    found = cost.seconds(PLAIN_STEP)
    assert 0 < found.low < found.estimate < found.high < 20e-3


def test_what_is_not_modelled_is_said():
    (said,) = DENSE.warnings(PLAIN_STEP)
    assert said.startswith("not modelled: ") and Anchored(DENSE, 7e-3).warnings(PLAIN_STEP) == (said,)
    assert any("longer to compute" in text for text in DENSE.warnings(Step(8, 256)))
    guessed = replace(DENSE, tp=2, hardware=replace(H100, link=Link("NVLink 9", 50)))
    assert any(
        "AllReduce among 2 × h100-sxm was not measured" in text for text in guessed.warnings(PLAIN_STEP)
    )
    doubtful = Modelled(DENSE.geometry, hardware("h20"))
    assert any("of h20, no source confirms" in text for text in doubtful.warnings(PLAIN_STEP))


def test_each_says_where_it_comes_from():
    assert DENSE.source == "modelled"
    assert Anchored(DENSE, 7e-3).source == "anchored"


def test_tensor_parallelism_splits_the_reading_and_adds_all_reduces():
    one, eight = DENSE.parts(Step(1, 4, 4000)), replace(DENSE, tp=8).parts(Step(1, 4, 4000))
    assert one["all_reduce"] == 0 < eight["all_reduce"]
    for part in ("weights", "kv", "arithmetic"):
        assert eight[part] == pytest.approx(one[part] / 8)


def test_kv_heads_are_not_cut_and_a_latent_is_on_every_device():
    step = Step(context_tokens=10_000)
    many = replace(DENSE, tp=16, hardware=replace(H100, link=Link("NVLink 4", 450)))
    assert many.parts(step)["kv"] == pytest.approx(DENSE.parts(step)["kv"] / 8)
    alone = replace(KIMI, tp=1)
    assert KIMI.parts(step)["kv"] == pytest.approx(alone.parts(step)["kv"])


def test_whole_experts_on_devices_wait_for_the_busiest_until_all_are_awake():
    sliced, whole = KIMI, replace(KIMI, ep=8)
    assert whole.parts(PLAIN_STEP)["experts"] > 2 * sliced.parts(PLAIN_STEP)["experts"]
    all_awake = Step(16, 256)
    assert whole.parts(all_awake)["experts"] == pytest.approx(sliced.parts(all_awake)["experts"], rel=0.01)


def test_without_a_measured_curve_latency_and_rate_serve():
    near, far = (
        replace(DENSE, tp=2, hardware=replace(H100, link=Link(kind, 50)))
        for kind in ("NVLink 9", "PCIe Gen5")
    )
    call_s = 30e-6 + 4096 * 2 / (50e9 * 0.5)
    assert far.parts(PLAIN_STEP)["all_reduce"] == pytest.approx(64 * call_s)
    assert near.parts(PLAIN_STEP)["all_reduce"] < far.parts(PLAIN_STEP)["all_reduce"]


@pytest.mark.parametrize(
    ("tp", "link", "says"),
    [
        (2, None, "no link between devices"),
        (2, Link("PCIe Gen5", None), "the rate of PCIe Gen5 is not known"),
        (0, H100.link, "tp 0"),
    ],
)
def test_devices_that_cannot_work_together_are_refused(tp: int, link: Link | None, says: str):
    with pytest.raises(UsageError, match=says):
        Modelled(DENSE.geometry, replace(H100, link=link), tp=tp)


def test_groups_of_experts_that_do_not_divide_the_devices_are_refused():
    with pytest.raises(UsageError, match="ep must divide tp"):
        replace(KIMI, ep=3)


def test_a_device_of_unknown_arithmetic_is_refused():
    with pytest.raises(UsageError, match=r"no BF16 rate is known of epyc-genoa.* --calibration"):
        Modelled(DENSE.geometry, hardware("epyc-genoa-12ch-ddr5-4800"))


@pytest.mark.parametrize("values", [(0, 1, 0), (1, 0, 0), (1, 1, -1)])
def test_an_impossible_step_is_refused(values: tuple[int, int, int]):
    with pytest.raises(UsageError, match="give at least 1, 1 and 0"):
        Step(*values)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_measurement_is_refused(seconds: float):
    with pytest.raises(UsageError, match="a measured step of"):
        Anchored(DENSE, seconds)
