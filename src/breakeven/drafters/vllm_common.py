"""What vLLM's lookup drafters share: how much of a draft its scheduler has room for."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.base import Limits
from breakeven.drafters.room import room_of, rooms_of
from breakeven.drafters.tokens import Tokens

ENGINE = "vllm"


def room(context_tokens: int, k: int, limits: Limits) -> int:
    """Most tokens that a step may draft, as v1/core/sched/scheduler.py and v1/worker/gpu_model_runner.py.

    Seen on vLLM 0.32. The draft and the token after it must fit max_model_len. The drafter rests where k
    tokens after the context, its last one aside, would not; vLLM then has zeros verified, which it counts as
    drafted and hardly ever accepts: they are left out here. max_tokens cuts no draft.
    """
    return room_of(partial(_room, k), context_tokens, 0, limits)


def rooms(tokens: Tokens, k: int) -> NDArray[np.int32] | None:
    """`room` at each output position, as room.rooms_of gives it."""
    return rooms_of(partial(_room, k), tokens, k)


def _room(k: int, context_tokens: Any, output_tokens: Any, max_tokens: Any, max_model_len: Any) -> Any:
    fits = context_tokens - 1 + k <= max_model_len
    return fits * (max_model_len - context_tokens - 1)
