import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.compare.degenerate import (
    LONG_LOOP_TOKENS,
    MAX_PERIOD_TOKENS,
    MIN_PERIODS,
    SHORT_LOOP_TOKENS,
    ends_in_loop,
    is_degenerate,
)
from tests.cases.builders import prose, reply

CODE = """def merge(left: list[int], right: list[int]) -> list[int]:
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    merged.extend(left[i:])
    merged.extend(right[j:])
    return merged


def test_merge():
    assert merge([], []) == []
    assert merge([1], []) == [1]
    assert merge([], [2]) == [2]
    assert merge([1, 3], [2, 4]) == [1, 2, 3, 4]
    assert merge([1, 1], [1, 1]) == [1, 1, 1, 1]
"""
NAMES = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
]
NORMAL = {
    "code": CODE,
    "json": json.dumps(
        [{"id": i, "name": name, "active": i % 2 == 0} for i, name in enumerate(NAMES)], indent=2
    ),
    "flat json": json.dumps({"values": [0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1] * 2}),
    "table": "| name | n | share |\n|---|---|---|\n"
    + "".join(f"| {name} | {i} | {i * 7 % 13}.0 % |\n" for i, name in enumerate(NAMES)),
    "similar lines": "".join(
        f"- Step {i}: check that the {name} service is up.\n" for i, name in enumerate(NAMES)
    ),
    "csv of zeros at the end": "name,a,b\n" + "".join(f"{name},0,0\n" for name in NAMES),
    "a closing rule": prose(1, 80) + "\n\n" + "-" * 80,
    "a laugh": "That is funny. Ha ha ha ha ha ha ha!",
    "an answer": "yes",
    "nothing": "",
    "numbers": " ".join(str(i) for i in range(200)),
    "prose": prose(2, 400),
}
LOOPS = {
    "one word": prose(3, 100) + " the" * 80,
    "a line": prose(4, 100) + "\nI am not sure. Let me check again." * 12,
    "a line cut short": prose(4, 100) + "\nI am not sure. Let me check again." * 12 + "\nI am not",
    "from the start": "Wait, " * 30,
    "trailing blanks": prose(5, 50) + " ok" * 100 + " \n\n",
}


@pytest.mark.parametrize("name", NORMAL)
def test_real_text_is_not_flagged(name: str):
    assert not is_degenerate(reply(text=NORMAL[name]))


@pytest.mark.parametrize("name", LOOPS)
def test_loops_in_text_are_flagged(name: str):
    assert is_degenerate(reply(text=LOOPS[name]))
    assert is_degenerate(reply(text="", reasoning=LOOPS[name]))


def test_a_loop_that_was_left_is_not_flagged():
    assert not is_degenerate(reply(text="again " * 60 + prose(6, 100)))


def test_the_closing_token_does_not_hide_a_loop():
    assert is_degenerate(reply(ids=(*range(100, 150), *(7, 8) * 40, 2)))


def test_ids_decide_where_they_are_given():
    assert not is_degenerate(reply(text="ok " * 200, ids=tuple(range(200))))


@given(
    st.lists(st.integers(0, 50_000), max_size=200),
    st.lists(st.integers(0, 50_000), min_size=1, max_size=MAX_PERIOD_TOKENS),
    st.integers(0, MAX_PERIOD_TOKENS),
)
def test_planted_loops_are_found(before: list[int], period: list[int], cut: int):
    times = max(MIN_PERIODS, -(-LONG_LOOP_TOKENS // len(period)))
    assert ends_in_loop(before + period * times + period[:cut])


@given(st.lists(st.integers(0, 1_000_000), unique=True, max_size=300))
def test_tokens_that_never_recur_are_no_loop(tokens: list[int]):
    assert not ends_in_loop(tokens)


@given(st.integers(0, 10_000), st.integers(0, 400))
def test_random_tokens_are_no_loop(seed: int, n: int):
    rng = random.Random(seed)
    assert not ends_in_loop([rng.randrange(32_000) for _ in range(n)])


@given(st.lists(st.integers(0, 1), max_size=120), st.lists(st.integers(0, 2), max_size=6), st.integers(0, 60))
@settings(max_examples=400)
def test_agrees_with_its_definition(before: list[int], period: list[int], times: int):
    tokens = before + period * times
    assert ends_in_loop(tokens) == _by_definition(tokens)


def _by_definition(tokens: list[int]) -> bool:
    """Some period holds over the last max(4 periods, 64 tokens or 40 % of the reply but 16 tokens)."""
    n = len(tokens)
    enough = min(LONG_LOOP_TOKENS, max(SHORT_LOOP_TOKENS, -(-4 * n // 10)))
    for p in range(1, MAX_PERIOD_TOKENS + 1):
        length = max(enough, MIN_PERIODS * p)
        if length <= n and all(tokens[i] == tokens[i - p] for i in range(n - length + p, n)):
            return True
    return False
