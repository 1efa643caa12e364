"""What vLLM's lookup drafters share: how much of a draft its scheduler has room for, and the flag."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.base import Limits
from breakeven.drafters.tokens import UNLIMITED, Tokens

ENGINE = "vLLM"


def room(context_tokens: int, k: int, limits: Limits) -> int:
    """Most tokens that a step may draft, as v1/core/sched/scheduler.py and v1/worker/gpu_model_runner.py.

    Seen on vLLM 0.32. The draft and the token after it must fit max_model_len. The drafter rests where k
    tokens after the context, its last one aside, would not; vLLM then has zeros verified, which it counts as
    drafted and hardly ever accepts: they are left out here. max_tokens cuts no draft.
    """
    if limits.max_model_len is None:
        return UNLIMITED
    if context_tokens - 1 + k > limits.max_model_len:
        return 0
    return limits.max_model_len - context_tokens - 1


def rests(tokens: Tokens, k: int) -> NDArray[np.bool_]:
    """Where `room` is 0 because k tokens would not fit; shape (positions,)."""
    lengths = np.diff(tokens.positions)
    first = tokens.outputs - tokens.starts[:-1] - tokens.positions[:-1]
    contexts = np.arange(tokens.positions[-1]) + np.repeat(first, lengths)
    return np.asarray(contexts - 1 + k > np.repeat(tokens.max_model_len, lengths))


def flags(config: Mapping[str, Any]) -> str:
    """The option of `vllm serve`."""
    return f"--speculative-config '{json.dumps(config, separators=(',', ':'))}'"
