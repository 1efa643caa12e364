"""One formula for each engine: the room of a step, and that of all positions of a record."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.drafters import hf_prompt_lookup, llamacpp_common, vllm_common
from breakeven.drafters.base import Limits
from breakeven.drafters.registry import make_drafter
from breakeven.drafters.room import rooms_of
from breakeven.drafters.settings import MOST
from breakeven.drafters.tokens import Tokens, flat

K = 4
Room = Callable[[int, int, Limits], int]
Rooms = Callable[[Tokens, int], "np.ndarray | None"]

ENGINES: dict[str, tuple[Room, Rooms]] = {
    "vllm": (lambda context, _, limits: vllm_common.room(context, K, limits), vllm_common.rooms),
    "llama.cpp": (llamacpp_common.room, llamacpp_common.rooms),
    "transformers": (
        make_drafter("hf-prompt-lookup", {"k": K}).room,
        lambda tokens, k: rooms_of(hf_prompt_lookup._room, tokens, k),
    ),
}
lengths = st.tuples(st.integers(0, 12), st.integers(0, 12))
limit = st.none() | st.integers(1, 30)


@pytest.mark.parametrize("engine", ENGINES)
@given(requests=st.lists(st.tuples(lengths, limit, limit), max_size=4))
def test_rooms_are_the_room_at_every_position(
    engine: str, requests: list[tuple[tuple[int, int], int | None, int | None]]
) -> None:
    step, all_at_once = ENGINES[engine]
    expected = [
        max(0, step(prompt + at, at, Limits(most, held)))
        for (prompt, output), most, held in requests
        for at in range(output)
    ]
    ids = [([1] * prompt, [1] * output) for (prompt, output), _, _ in requests]
    found = all_at_once(flat(ids, [r[1] for r in requests], [r[2] for r in requests]), K)
    if found is None:
        assert min(expected, default=K) >= K
    else:
        assert (found.tolist(), found.dtype) == (expected, np.int32)


@pytest.mark.parametrize("engine", ENGINES)
def test_limits_far_away_cost_nothing(engine: str) -> None:
    rooms = ENGINES[engine][1]
    tokens = flat([([1, 2], [3, 4, 5]), ([1], [2])], [9, None], [30, None])
    assert rooms(tokens, K) is None
    assert rooms(flat([]), K) is None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_limit_that_is_not_known_is_none(engine: str) -> None:
    assert ENGINES[engine][0](1000, 100, Limits()) > 10**9


@pytest.mark.parametrize("engine", ENGINES)
def test_beside_a_limit_one_that_is_not_known_cuts_no_draft_of_any_length(engine: str) -> None:
    rooms = {
        "vllm": vllm_common.rooms,
        "llama.cpp": llamacpp_common.rooms,
        "transformers": lambda tokens, k: rooms_of(hf_prompt_lookup._room, tokens, k),
    }[engine]
    tokens = flat([([1] * 3, [1] * 4), ([1] * 3, [1] * 4)], [4, None], [7, None])
    found = rooms(tokens, MOST)
    assert found is not None and (found[:4] < MOST).any() and (found[4:] >= MOST).all()
