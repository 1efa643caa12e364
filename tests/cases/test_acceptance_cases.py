"""The rows of cases.csv with area `acceptance`, one test each, named by the row's id."""

import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.page import Page
from breakeven.acceptance.per_request import from_chunk
from breakeven.acceptance.prometheus import between, is_reset, read_page
from breakeven.acceptance.stated import Stated, over_ranks, stated
from tests.cases.rows import assert_every_row_has_its_test

LENGTH = "mean_acceptance_length"


def vllm(drafts: int, drafted: int, accepted: int) -> Page:
    counts = {"drafts": drafts, "draft_tokens": drafted, "accepted_tokens": accepted}
    page = read_page(
        "".join(f"vllm:spec_decode_num_{name}_total {value}\n" for name, value in counts.items())
    )
    assert page is not None
    return page


def sglang(*lengths: float | None) -> Page:
    name = "sglang:spec_accept_length"
    values = enumerate("NaN" if length is None else length for length in lengths)
    page = read_page("".join(f'{name}{{dp_rank="{rank}"}} {value}\n' for rank, value in values))
    assert page is not None
    return page


def ratio(ratios: tuple[Stated, ...], name: str) -> Stated:
    (one,) = (one for one in ratios if one.name == name)
    return one


def test_case_29_sglang_34743_ranks_that_report_nothing():
    """Of a page that does not say how many steps a rank's length is of, the common one is unknown; where the
    steps are known it is weighted by them. Never is it that of the first rank, nor 0."""
    ranks = [None, None, 2.90, 3.67]
    unknown = ratio(sglang(*ranks).reported, LENGTH)
    assert unknown.value is None and "2.90 to 3.67" in unknown.why
    assert ratio(sglang(None, None, 2.90, 2.90).reported, LENGTH).value.estimate == 2.90
    known = over_ranks(LENGTH, ranks, "replies", [0, 0, 30, 10])
    assert known.value.estimate == pytest.approx((30 * 2.90 + 10 * 3.67) / 40)
    assert sglang(None, None).spec is None


def test_case_30_sglang_29329_a_counter_that_is_lower_at_the_end():
    before, after = vllm(2000, 6000, 3900), vllm(300, 900, 600)
    assert is_reset(before, after), "and not merely unknown"
    assert between(before, after) is None
    assert not is_reset(before, vllm(2001, 6003, 3900))


def test_case_31_sglang_16694_a_lifetime_average_is_not_this_runs():
    before, after = vllm(100, 500, 290), vllm(200, 1000, 500)
    assert before.spec.mean_acceptance_length == pytest.approx(3.9)
    assert between(before, after).mean_acceptance_length == pytest.approx(3.1)
    assert between(sglang(3.9), sglang(3.5)) is None, "gauges alone are of nobody's run"


def test_case_32_vllm_42508_two_definitions_of_acceptance_length():
    """One run, of which a share was drafted: both lengths, each beside what it is."""
    ratios = stated(SpecCounters(steps=1000, drafts=430, drafted_tokens=2150, accepted_tokens=670))
    drafted, every = ratio(ratios, LENGTH), ratio(ratios, "tokens_per_step")
    assert (drafted.value.estimate, every.value.estimate) == pytest.approx((1 + 670 / 430, 1.67))
    assert "over steps that drafted" in drafted.definition
    assert "all decode steps" in every.definition


def test_case_33_llama_cpp_27676_no_step_count():
    counters = from_chunk({"timings": {"draft_n": 289, "draft_n_accepted": 158}}, output_tokens=None)
    ratios = stated(counters)
    assert ratio(ratios, "acceptance_rate").value.estimate == pytest.approx(0.547, abs=5e-4)
    length = ratio(ratios, LENGTH)
    assert length.value is None
    assert length.why == "not derivable: llama.cpp timings in the reply does not count steps that drafted"


def test_case_34_mlx_vlm_2324_more_accepted_than_the_reply_holds():
    timings = {"predicted_n": 2, "draft_rounds": 1, "draft_n": 7, "draft_n_accepted": 6}
    counted = from_chunk({"timings": timings}, output_tokens=2)
    assert counted.tokens_per_step == 1.0
    without_rounds = from_chunk({"timings": {**timings, "draft_rounds": None}}, output_tokens=2)
    assert without_rounds.steps == 1
    assert without_rounds.tokens_per_step == 1.0


def test_every_row_of_the_area_has_its_test():
    assert_every_row_has_its_test("acceptance", globals())
