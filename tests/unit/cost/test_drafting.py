"""What is taken for the drafter's own time, where there is a figure of it and where there is none."""

from __future__ import annotations

import pytest

from breakeven.cost.drafting import FITTED_HEADS, FLAT_S, LOOKUP_S, drafting_cost
from breakeven.drafters.registry import BUILT_IN, drafter_class
from breakeven.interval import Interval

ALL_S = [1e-3 * head.ms_per_token for head in FITTED_HEADS]
NOTHING = Interval(0, 0, 0)
ENGINES = ("vllm", "sglang", "tensorrt-llm", "tgi", "llama.cpp", "transformers", "own", "none", None, "?")
LOOKUPS = [name for name in BUILT_IN if name not in ("oracle", "recorded")]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", [*BUILT_IN, "ngram", "suffix", "eagle", "eagle3", "mtp", "medusa", "Mine"])
def test_anything_has_a_cost_with_a_source(engine: str | None, method: str):
    cost = drafting_cost(engine, method)
    assert len(cost.source) > 20
    for seconds in (cost.step_s, cost.drafted_step_s, cost.token_s):
        assert 0 <= seconds.low <= seconds.estimate <= seconds.high < 2e-3


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_lookup_takes_nothing_for_a_token_more(name: str):
    assert drafting_cost(drafter_class(name).engine, name).token_s == NOTHING


def test_a_lookup_takes_the_published_share_of_a_verification():
    """0.6 % of 7.09 ms, and of that with 512 tokens of 21.0 µs."""
    assert pytest.approx(0.006 * 7.093e-3, rel=0.02) == LOOKUP_S.estimate
    assert pytest.approx(0.006 * (7.093e-3 + 512 * 21.0e-6), rel=0.04) == LOOKUP_S.high
    for engine, method in (("vllm", "ngram"), ("vllm", "vllm-suffix"), ("sglang", "sglang-ngram")):
        cost = drafting_cost(engine, method)
        assert (cost.step_s, cost.drafted_step_s) == (LOOKUP_S, FLAT_S)
    assert "figures of vLLM" in drafting_cost("sglang", "sglang-ngram").source


def test_of_llamacpp_nothing_is_known():
    cost = drafting_cost("llama.cpp", "llamacpp-ngram-mod")
    assert (cost.step_s.estimate, cost.drafted_step_s.estimate, cost.token_s) == (0, 0, NOTHING)
    assert (cost.step_s.high, cost.drafted_step_s.high) == (LOOKUP_S.estimate, FLAT_S.estimate)
    assert "nothing is known" in cost.source


@pytest.mark.parametrize(
    ("engine", "method", "ms"),
    [
        ("vllm", "eagle", 0.741),
        ("vllm", "eagle3", (1.188 + 0.137) / 2),
        ("SGLang", "EAGLE3", 0.725),
        ("tensorrt-llm", "eagle3", 0.725),
        ("sglang", "eagle", 0.741),
        (None, "mtp", (0.725 + 0.741) / 2),
        ("none", "recorded", 0.725),
    ],
)
def test_a_head_takes_the_median_of_the_nearest_fits_within_all(engine: str | None, method: str, ms: float):
    token_s = drafting_cost(engine, method).token_s
    assert token_s.estimate == pytest.approx(1e-3 * ms)
    assert (token_s.low, token_s.high) == (min(ALL_S), max(ALL_S))


def test_what_stands_in_for_a_figure_is_said():
    assert "want of a figure of mtp" in drafting_cost("vllm", "mtp").source
    assert "want" not in drafting_cost("vllm", "eagle3").source


def test_an_upper_bound_costs_nothing():
    cost = drafting_cost("none", "oracle")
    assert cost.step_s == cost.drafted_step_s == cost.token_s == NOTHING


def test_a_drafter_of_ones_own_may_be_free_or_slow():
    cost = drafting_cost("own", "mine")
    assert cost.token_s == Interval(0, 0, max(ALL_S)) and cost.drafted_step_s == FLAT_S
