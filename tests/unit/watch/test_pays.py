"""Whether speculation pays now."""

from __future__ import annotations

from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.forecast.decode import MOST_STEP_TOKENS
from breakeven.interval import Interval
from breakeven.watch.pays import (
    NO_CALIBRATION,
    Drafts,
    Speculation,
    speculation,
    speedup_of,
)
from breakeven.watch.window import Counted
from breakeven.watch.yardstick import Yardstick
from tests.unit.forecast.costs import FREE, Line, drafting
from tests.unit.watch.pages import MODEL, calibration, counted

YARDSTICK = Yardstick(calibration(), flat_s=0.0)


def judged(found: Counted, yardstick: Yardstick | None = YARDSTICK) -> Speculation:
    return speculation(found, yardstick, "vllm", MODEL)


def test_one_sequence_is_the_formula_of_a_drafter_that_drafts_on_a_share_of_steps():
    """T = 10 ms + 1 ms for each token: a step that verifies 4 takes 15 / 11 plain ones."""
    drafts = Drafts(Interval(0.4, 0.4, 0.4), 4.0, 1.5)
    found, ratio = speedup_of(drafts, [1], Line(), drafting(step=0.0011, drafted=0.0022, token=0.00011))
    assert ratio.estimate == pytest.approx(0.6 + 0.4 * 15 / 11 + 0.1 + 0.4 * (0.2 + 4 * 0.01))
    assert found.estimate == pytest.approx(1.6 / ratio.estimate)


def test_the_speedup_is_the_mean_of_the_readings_own():
    drafts = Drafts(Interval(0.4, 0.4, 0.4), 4.0, 1.5)
    each = [speedup_of(drafts, [c], Line(), FREE)[0].estimate for c in (1, 1, 9)]
    found, ratio = speedup_of(drafts, [1, 1, 9], Line(), FREE)
    assert found.estimate == pytest.approx(sum(each) / 3) and found.estimate > 1.6 / ratio.estimate


def test_two_readings_give_a_range_and_three_an_error_of_their_mean():
    drafts = Drafts(Interval(0.4, 0.4, 0.4), 4.0, 1.5)
    one, nine = (speedup_of(drafts, [c], Line(), FREE)[0].estimate for c in (1, 9))
    two = speedup_of(drafts, [1, 9], Line(), FREE)[0]
    assert (two.low, two.high) == pytest.approx((nine, one))
    found = [one, one, nine]
    three = speedup_of(drafts, [1, 1, 9], Line(), FREE)[0]
    assert three.high - three.estimate == pytest.approx(4.3027 * stdev(found) / 3**0.5, rel=1e-4)


@pytest.mark.parametrize(("drafts", "there"), [(1, False), (99, False), (100, True)])
def test_few_drafts_tell_nothing(drafts: int, there: bool):
    found = judged(counted(drafts=drafts, drafted=4 * drafts, accepted=3 * drafts))
    assert (found.speedup is not None) == there
    if not there:
        assert found.answer == "not derivable" and found.why.startswith(f"{drafts} draft")
        assert found.accepted_per_draft == 3


def test_it_pays_where_drafts_are_accepted():
    found = judged(counted(accepted=1400, running=(1.0, 1.0)))
    assert found.answer == "pays" and found.why == ""
    assert found.speedup is not None and found.step_ratio is not None
    assert found.speedup.estimate == pytest.approx(2.4 / found.step_ratio.estimate)
    assert found.step_ratio.estimate == pytest.approx(0.6 + 0.4 * 12 / 10, rel=1e-3)
    assert (found.drafted_per_draft, found.accepted_per_draft, found.sequences) == (4, 3.5, 1)


def test_it_costs_where_they_are_not():
    found = judged(counted(accepted=20, running=(3.0, 4.0, 4.0)))
    assert found.answer == "costs"
    assert found.speedup is not None and found.speedup.high < 1


def test_it_is_undecided_where_the_interval_holds_1():
    found = judged(counted(accepted=140, running=(2.0,)), Yardstick(calibration(moe=None)))
    assert found.answer == "undecided"
    assert found.speedup is not None and found.speedup.low < 1 < found.speedup.high


def test_a_draft_share_between_bounds_widens_the_interval():
    load = Load(output_tokens=1600)
    narrow, wide = judged(counted(running=(1.0,))), judged(counted(steps=None, load=load, running=(1.0,)))
    assert narrow.speedup is not None and wide.speedup is not None
    assert wide.speedup.estimate == pytest.approx(narrow.speedup.estimate)
    assert wide.speedup.high - wide.speedup.low > narrow.speedup.high - narrow.speedup.low


def test_readings_that_differ_widen_the_interval():
    same, other = judged(counted(running=(4.0,) * 4)), judged(counted(running=(1.0, 7.0, 1.0, 7.0)))
    assert same.speedup is not None and other.speedup is not None
    assert other.speedup.high - other.speedup.low > same.speedup.high - same.speedup.low


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, "one reading so far"),
        (Counted(5.0, None, Load(), (1.0,)), "counts no drafts"),
        (counted(drafts=0, drafted=0, accepted=0), "nothing was drafted"),
        (counted(steps=None), "how rare drafts are is not known"),
        (counted(running=()), "no reading found a request in the batch"),
        (counted(running=(float(MOST_STEP_TOKENS),)), "more than a step holds"),
        (counted(running=(1e300,)), "more than a step holds"),
        (counted(drafted=400 * 1001), "longer than any drafter"),
    ],
)
def test_what_is_not_derivable_says_why(found: Counted | None, why: str):
    said = speculation(found, YARDSTICK, "vllm", MODEL)
    assert said.answer == "not derivable" and why in said.why and said.speedup is None


def test_a_server_that_counts_steps_and_output_but_no_drafted_tokens_needs_k():
    """SGLang: 400 verify calls, each a step that drafted, and 1,000 tokens out of them."""
    spec = SpecCounters(steps=400, drafts=400, emitted_tokens=1000, source="SGLang /metrics")
    found = Counted(60.0, spec, Load(), (1.0,))
    assert "--k N" in judged(found).why
    said = judged(found, Yardstick(calibration(), flat_s=0.0, k=4))
    assert (said.drafted_per_draft, said.accepted_per_draft) == (4, 1.5)
    assert said.speedup is not None and said.step_ratio is not None
    assert said.speedup.estimate == pytest.approx(2.5 / said.step_ratio.estimate)


def test_tokens_that_the_end_of_a_reply_cut_off_do_not_count():
    spec = SpecCounters(1000, 400, 1600, 600, emitted_tokens=1500, source="vLLM /metrics")
    said = judged(Counted(60.0, spec, Load(), (1.0,)))
    assert said.speedup is not None and said.step_ratio is not None
    assert said.speedup.estimate == pytest.approx(1.5 / said.step_ratio.estimate)


def test_without_a_calibration_the_drafts_are_told_all_the_same():
    found = judged(counted(), None)
    assert (found.answer, found.why) == ("not derivable", NO_CALIBRATION)
    assert (found.drafted_per_draft, found.accepted_per_draft) == (4, 1.5)


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (calibration(engine="llama.cpp"), "of another engine: llama.cpp, not vllm"),
        (calibration(model="other"), f"of another model: other, not {MODEL}"),
    ],
)
def test_a_calibration_of_another_server_is_not_used(of, why: str):
    found = judged(counted(), Yardstick(of))
    assert found.answer == "not derivable" and why in found.why


def test_what_is_not_known_of_the_server_does_not_stand_against_it():
    assert judged(counted(), Yardstick(calibration(engine=None, model=None))).speedup is not None
    assert speculation(counted(), YARDSTICK, "vllm", None).speedup is not None


def test_a_step_beyond_the_curve_is_said_to_be():
    found = judged(counted(running=(12.0,)))
    assert any("beyond the last measured point" in note for note in found.notes)
    assert any(note.startswith("drafting: ") for note in found.notes)


@given(
    share=st.floats(0.01, 1.0),
    spread=st.floats(0.0, 0.5),
    drafted=st.floats(1.0, 12.0),
    accepted=st.floats(0.0, 1.0),
    batches=st.lists(st.integers(1, 20), min_size=1, max_size=5),
)
def test_the_estimate_lies_within_its_interval(
    share: float, spread: float, drafted: float, accepted: float, batches: list[int]
):
    drafts = Drafts(
        Interval(share, share * (1 - spread), min(share * (1 + spread), 1.0)), drafted, accepted * drafted
    )
    speedup, ratio = speedup_of(drafts, batches, Line(error=0.2), drafting(0.0001, 0.0002, 0.0001))
    assert 0 <= speedup.low <= speedup.estimate * (1 + 1e-9) and speedup.estimate <= speedup.high * (1 + 1e-9)
    assert 1 <= ratio.low <= ratio.estimate * (1 + 1e-9) and ratio.estimate <= ratio.high * (1 + 1e-9)
    if len(set(batches)) == 1:
        assert speedup.estimate == pytest.approx((1 + share * drafts.accepted) / ratio.estimate)
