from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.errors import UsageError
from breakeven.trial.plan import SIDES, TrialPlan, loads
from breakeven.workload.prompts import Prompt, Sampling, Workload

sizes = st.tuples(st.integers(1, 9), st.integers(1, 4)).filter(lambda size: size[1] <= size[0])


def plan(n_prompts: int, concurrency: int = 1) -> TrialPlan:
    prompts = tuple(Prompt(f"p{i}", "c", text="x") for i in range(n_prompts))
    return TrialPlan(Workload("w", prompts), Sampling(), concurrency=concurrency)


@given(sizes, st.integers(0, 5))
def test_each_side_answers_each_prompt_once_a_repeat(size: tuple[int, int], repeat: int):
    asked = Counter((ask.side, ask.request.prompt.id) for load in loads(plan(*size), repeat) for ask in load)
    assert set(asked) == {(side, f"p{i}") for side in SIDES for i in range(size[0])}
    assert set(asked.values()) == {1}


@given(sizes, st.integers(0, 5))
def test_over_two_repeats_each_side_is_first_once_for_every_prompt(size: tuple[int, int], repeat: int):
    firsts: Counter[tuple[str, str]] = Counter()
    for number in (repeat, repeat + 1):
        first_of: dict[str, str] = {}
        for load in loads(plan(*size), number):
            for ask in load:
                first_of.setdefault(ask.request.prompt.id, ask.side)
        firsts.update((side, prompt) for prompt, side in first_of.items())
    assert set(firsts.values()) == {1}


def test_one_at_a_time_the_order_is_abba_in_one_load():
    (load,) = loads(plan(4), 0)
    assert "".join(ask.side[0] for ask in load) == "bccbbccb"


def test_one_at_a_time_the_two_answers_of_a_pair_are_neighbours():
    (load,) = loads(plan(5), 1)
    assert all(
        a.request == b.request and a.side != b.side for a, b in zip(load[::2], load[1::2], strict=True)
    )


def test_under_concurrency_a_load_is_the_whole_workload_of_one_side():
    first, second = (list(loads(plan(3, concurrency=2), repeat)) for repeat in (0, 1))
    assert [{ask.side for ask in load} for load in first] == [{"baseline"}, {"candidate"}]
    assert [{ask.side for ask in load} for load in second] == [{"candidate"}, {"baseline"}]


def test_a_concurrency_that_the_prompts_cannot_keep_is_refused():
    with pytest.raises(UsageError, match="--concurrency 3"):
        plan(3, concurrency=4)
