import numpy as np

from breakeven.acceptance.record import DECILES, Acceptance, counters_of, nothing


def acceptance(histogram: list[list[int]], requests: int = 1, emitted: int = 10, **parts: list[int]):
    return Acceptance(
        requests=requests,
        output_tokens=emitted + requests,
        emitted_tokens=emitted,
        histogram=np.array(histogram, np.int64).reshape(-1, 3),
        deciles=np.ones((DECILES, 4), np.int64),
        parts={name: np.array(row, np.int64) for name, row in parts.items()},
    )


def test_counters_follow_from_the_histogram():
    """4 steps without a draft; 3 drafts of 1 token, 2 accepted; 5 drafts of 2 tokens: 1, 1 and 3 accepted."""
    rows = [[0, 0, 4], [1, 0, 1], [1, 1, 2], [2, 0, 1], [2, 1, 1], [2, 2, 3]]
    counters = counters_of(np.array(rows))
    assert (counters.steps, counters.drafts) == (12, 8)
    assert (counters.drafted_tokens, counters.accepted_tokens) == (3 + 10, 2 + 1 + 6)
    assert counters.accepted_per_position == (6, 3)
    assert counters.draft_share == 8 / 12
    assert counters.mean_acceptance_length == 1 + 9 / 8


def test_a_sum_joins_equal_pairs():
    total = acceptance([[0, 0, 4], [1, 1, 5]]) + acceptance([[1, 0, 1], [1, 1, 2]], requests=2)
    assert total.histogram.tolist() == [[0, 0, 4], [1, 0, 1], [1, 1, 7]]
    assert (total.requests, total.emitted_tokens, total.output_tokens) == (3, 20, 23)
    assert total.deciles.tolist() == [[2] * 4] * DECILES


def test_parts_add_by_name():
    total = acceptance([[0, 0, 1]], reasoning=[1, 2, 3, 4]) + acceptance(
        [[0, 0, 1]], reasoning=[1, 1, 1, 1], answer=[5] * 4
    )
    assert {name: row.tolist() for name, row in total.parts.items()} == {
        "reasoning": [2, 3, 4, 5],
        "answer": [5, 5, 5, 5],
    }


def test_nothing_changes_no_sum():
    one = acceptance([[0, 0, 1], [1, 1, 2]], answer=[1, 2, 3, 4])
    total = nothing() + one
    assert total.counters == one.counters
    assert total.tokens_per_step == one.tokens_per_step == 10 / 3


def test_nothing_has_no_rate():
    assert nothing().tokens_per_step is None
    assert nothing().counters.acceptance_rate is None
