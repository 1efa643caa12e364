"""The loop that a reply ends in, beside its definition spelled out token by token."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.compare.degenerate import loop_of
from tests.cases.builders import reply


def loop_by_definition(tokens: list[int]) -> tuple[int, int] | None:
    """Period and length of the shortest period, up to 64, that holds over the last max(4 periods, E) tokens,
    E being 64, or 40 % of the reply but 16, whichever is less; the length is as far back as it holds."""
    n = len(tokens)
    enough = min(64, max(16, -(-4 * n // 10)))
    for period in range(1, 65):
        length = period if n >= period else 0
        while 0 < length < n and tokens[n - length - 1] == tokens[n - length - 1 + period]:
            length += 1
        if length >= max(4 * period, enough):
            return period, length
    return None


loops = st.builds(
    lambda before, period, times, short: before + period * times + period[:short],
    st.lists(st.integers(0, 2), max_size=150),
    st.lists(st.integers(0, 2), min_size=1, max_size=70),
    st.integers(0, 20),
    st.integers(0, 70),
)


@given(loops)
@settings(max_examples=500, deadline=None)
def test_period_and_length_are_those_of_the_definition(tokens: list[int]) -> None:
    found = loop_of(reply(ids=tuple(tokens), text="", finish_reason="length"))
    assert (found and (found.period, found.length)) == (
        loop_by_definition(tokens) or loop_by_definition(tokens[:-1])
    )
