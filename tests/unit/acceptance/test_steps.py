"""Ratios of all decode steps where the source counts no steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.acceptance.stated import Stated
from breakeven.acceptance.steps import BY_TOKENS, decode_steps, emitted_of, ratios, steps_of
from breakeven.interval import Interval

SPEC = SpecCounters(drafts=40, drafted_tokens=160, accepted_tokens=60, source="vLLM /metrics")


def by_name(spec: SpecCounters, load: Load) -> dict[str, Stated]:
    return {one.name: one for one in ratios(spec, load)}


def test_steps_that_are_counted_are_taken():
    spec = SpecCounters(100, 40, 160, 60, source="vLLM /metrics")
    found = by_name(spec, Load(output_tokens=5))
    assert found["draft_share"].value == Interval(0.4, 0.4, 0.4)
    assert found["tokens_per_step"].value == Interval(1.6, 1.6, 1.6)


def test_steps_by_the_output_tokens():
    """160 output tokens less 60 accepted are 100 steps and first tokens; 5 requests ended, 3 run on."""
    found = by_name(SPEC, Load(requests=5, output_tokens=160, running=3))
    assert decode_steps(SPEC, Load(requests=5, output_tokens=160, running=3)) == Interval(95, 92, 100)
    assert found["draft_share"].value == Interval(40 / 95, 0.4, 40 / 92)
    assert found["tokens_per_step"].value == Interval(1 + 60 / 95, 1.6, 1 + 60 / 92)
    assert found["draft_share"].source == f"vLLM /metrics; {BY_TOKENS}"
    assert found["acceptance_rate"].value == Interval(0.375, 0.375, 0.375)


def test_where_requests_are_not_counted_replies_are_taken_to_have_8_tokens_at_least():
    assert decode_steps(SPEC, Load(output_tokens=160)) == Interval(100, 80, 100)
    assert by_name(SPEC, Load(output_tokens=160))["draft_share"].value == Interval(0.4, 0.4, 0.5)


@pytest.mark.parametrize(
    ("tokens", "requests", "accepted", "drafts", "steps"),
    [
        (100, 1, 9, 10, 90),
        (100, 4, 9, 10, 87),
        (15, 1, 9, 10, 10),
        (5, 1, 9, None, 1),
        (1, 1, 0, 0, 0),
        (0, 1, 0, None, 0),
        (None, 1, 9, 10, None),
        (100, 1, None, 10, None),
    ],
)
def test_steps_of_whole_requests(
    tokens: int | None, requests: int, accepted: int | None, drafts: int | None, steps: int | None
):
    assert steps_of(emitted_of(tokens, requests), accepted, drafts) == steps


def test_steps_are_never_fewer_than_drafts():
    assert decode_steps(SPEC, Load(requests=9, output_tokens=70, running=4)) == Interval(40, 40, 40)


def test_without_output_tokens_nothing_tells():
    found = by_name(SPEC, Load())
    assert found["draft_share"].value is None and "does not count decode steps" in found["draft_share"].why
    assert decode_steps(SpecCounters(drafts=4), Load(output_tokens=10)) is None


@given(
    requests=st.lists(
        st.tuples(st.booleans(), st.lists(st.sampled_from([None, 0, 1, 3]), min_size=0, max_size=20)),
        max_size=8,
    )
)
def test_the_bounds_hold_the_truth(requests: list[tuple[bool, list[int | None]]]):
    """Requests that began in the window: whether each ended in it, and what its steps accepted."""
    steps = [step for _, taken in requests for step in taken]
    accepted = sum(step or 0 for step in steps)
    drafts = sum(step is not None for step in steps)
    spec = SpecCounters(drafts=drafts, drafted_tokens=3 * drafts, accepted_tokens=accepted)
    ended = sum(over for over, _ in requests)
    load = Load(
        requests=ended, output_tokens=len(requests) + len(steps) + accepted, running=len(requests) - ended
    )
    found = decode_steps(spec, load)
    assert found is not None and found.low <= len(steps) <= found.high
