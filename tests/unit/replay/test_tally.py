import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from breakeven.replay.batches import batch_of
from breakeven.replay.steps import step_through
from breakeven.replay.tally import tally, totals
from tests.unit.replay.small import CountUp, CountUpSettings, recorded

OUTPUTS = st.lists(st.integers(0, 3), min_size=1, max_size=40)


def of(requests, k: int = 2, first: int = 1):
    batch = batch_of(requests)
    steps = step_through(CountUp(CountUpSettings(k=k, after=1)), batch.tokens, first)
    return tally(steps, batch, first), steps


def test_a_request_has_its_own_counts():
    found, _ = of([recorded([4], [5, 6, 7, 8, 1, 2, 3], "a"), recorded([4], [0, 0], "b", "other")])
    a, b = found.requests
    assert (a.id, a.category, a.output_tokens, a.emitted_tokens) == ("a", "count", 7, 6)
    assert (a.counters.steps, a.counters.drafts) == (3, 3)
    assert (a.counters.drafted_tokens, a.counters.accepted_tokens) == (6, 4)
    assert a.counters.accepted_per_position == (2, 2)
    assert a.histogram.tolist() == [[2, 0, 1], [2, 2, 2]]
    assert (b.counters.steps, b.counters.drafts, b.counters.accepted_tokens) == (1, 0, 0)


def test_categories_add_up_their_requests():
    found, _ = of(
        [recorded([4], [5, 6], "a", "x"), recorded([4], [0, 1, 2], "b", "y"), recorded([1], [2], "c", "x")]
    )
    assert list(found.by_category) == ["x", "y"]
    x = found.by_category["x"]
    assert (x.requests, x.output_tokens, x.emitted_tokens) == (2, 3, 1)
    assert x.histogram.tolist() == [[2, 1, 1]]


def test_a_one_token_reply_comes_from_the_prefill():
    found, _ = of([recorded([1], [2])])
    assert found.requests[0].counters.steps == 0
    assert found.by_category["count"].tokens_per_step is None


def test_deciles_say_where_in_the_output_a_step_began():
    """20 tokens that no draft hits: 19 steps after the prefill's token, 2 in each tenth but the first."""
    found, _ = of([recorded([9], [0] * 20)])
    assert found.by_category["count"].deciles[:, 0].tolist() == [1] + [2] * 9


def test_parts_tell_reasoning_from_the_answer():
    found, _ = of([recorded([9], [0, 0, 0, 5, 5], answer_from=3), recorded([9], [0, 0])])
    parts = found.by_category["count"].parts
    assert parts["reasoning"].tolist() == [2, 0, 0, 0]
    assert parts["answer"].tolist() == [2, 1, 2, 0]


def test_where_the_record_does_not_tell_there_are_no_parts():
    found, _ = of([recorded([9], [0, 0])])
    assert found.by_category["count"].parts == {}


@given(st.lists(OUTPUTS, min_size=1, max_size=6), st.integers(1, 4), st.integers(0, 1))
def test_every_way_of_counting_gives_the_same_sum(outputs: list[list[int]], k: int, first: int):
    requests = [
        recorded([1, 2], output, str(i), "ab"[i % 2], answer_from=i) for i, output in enumerate(outputs)
    ]
    found, steps = of(requests, k, first)
    total = totals(steps)
    by_category = sum((a.counters for a in found.by_category.values()), start=totals(of([], k, first)[1]))
    by_request = sum((r.counters for r in found.requests), start=totals(of([], k, first)[1]))
    for other in (by_category, by_request):
        assert (other.steps, other.drafts, other.drafted_tokens, other.accepted_tokens) == (
            (total.steps, total.drafts, total.drafted_tokens, total.accepted_tokens)
        )
        assert other.accepted_per_position == total.accepted_per_position
    expected = [total.steps, total.drafts, total.drafted_tokens, total.accepted_tokens]
    assert sum(a.deciles.sum(axis=0) for a in found.by_category.values()).tolist() == expected
    parts = [row for a in found.by_category.values() for row in a.parts.values()]
    assert np.sum(parts, axis=0).tolist() == expected if total.steps else not parts
    assert sum(r.emitted_tokens for r in found.requests) == sum(len(o) - first for o in outputs)
