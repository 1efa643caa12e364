"""RoutingTrace against the twin that goes through all windows and choices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.cost.routing import RoutingTrace
from tests.oracle import routing_twin

Sequences = list[list[list[list[int]]]]


@st.composite
def routed(draw: st.DrawFn) -> tuple[Sequences, int]:
    count = draw(st.integers(2, 6))
    top_k, layers = draw(st.integers(1, count - 1)), draw(st.integers(1, 3))
    experts = st.permutations(range(count)).map(lambda order: list(order[:top_k]))
    token = st.lists(experts, min_size=layers, max_size=layers)
    return draw(st.lists(st.lists(token, min_size=1, max_size=5), min_size=2, max_size=5)), count


def trace_of(sequences: Sequences, count: int) -> RoutingTrace:
    tokens = [token for one in sequences for token in one]
    return RoutingTrace(np.array(tokens, np.int32), tuple(map(len, sequences)), count)


@settings(deadline=None)
@given(routed())
def test_neighbours(drawn: tuple[Sequences, int]) -> None:
    sequences, count = drawn
    found = {one.tokens: one.distinct for one in trace_of(sequences, count).neighbours((1, 2, 3, 4, 5))}
    long_enough = {t for t in range(1, 6) if sum(len(one) >= t for one in sequences) > 1}
    assert found.keys() == long_enough
    for tokens, interval in found.items():
        assert interval.estimate == pytest.approx(routing_twin.of_neighbours(sequences, tokens))
        assert interval.low <= interval.estimate <= interval.high


@settings(deadline=None)
@given(routed())
def test_sequences(drawn: tuple[Sequences, int]) -> None:
    sequences, count = drawn
    found = {one.tokens: one.distinct for one in trace_of(sequences, count).sequences((1, 2, 3, 4))}
    assert list(found) == list(range(1, min(4, len(sequences) - 1) + 1))
    for tokens, interval in found.items():
        assert interval.estimate == pytest.approx(routing_twin.of_sequences(sequences, tokens))
        assert interval.low <= interval.estimate <= interval.high
