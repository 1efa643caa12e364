"""What llama.cpp's lookup drafters share: how many draft tokens a step has room for, and their flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.base import Limits
from breakeven.drafters.room import room_of, rooms_of
from breakeven.drafters.settings import Settings
from breakeven.drafters.tokens import Tokens
from breakeven.engines.llamacpp_server import LlamacppServer
from breakeven.engines.speculation import SpeculationConfig

ENGINE = "llama.cpp"
SIZES = {"n": "size_n", "k": "size_m"}
"""What ngram-simple, -map-k and -map-k4v call n and k."""


def room(context_tokens: int, output_tokens: int, limits: Limits) -> int:
    """Most tokens that a step may draft, as `get_n_draft_max` in tools/server/server-context.cpp has it.

    context_tokens: prompt and output so far, the token sampled last included; output_tokens: the output's
    part of them; limits.max_model_len: the context of one slot. The token sampled last and one after the
    draft must fit the context; the draft and the token after it must fit the request. Below 1 the drafter is
    not asked at all, so that it learns nothing in this step; a longer draft is cut after it was made.
    """
    return room_of(_room, context_tokens, output_tokens, limits)


def rooms(tokens: Tokens, k: int) -> NDArray[np.int32] | None:
    """`room` at each output position, as room.rooms_of gives it."""
    return rooms_of(_room, tokens, k)


def _room(context_tokens: Any, output_tokens: Any, max_tokens: Any, max_model_len: Any) -> Any:
    return np.minimum(max_model_len - context_tokens, max_tokens - output_tokens) - 1


def flags(kind: str, settings: Settings, names: Mapping[str, str]) -> str:
    """`--spec-type KIND`, then each setting as `--spec-KIND-NAME VALUE` (common/arg.cpp).

    `names` has the engine's word for each setting that it calls otherwise.
    """
    values = {names.get(field.name, field.name): getattr(settings, field.name) for field in fields(settings)}
    options = {f"spec-{kind}-{name}": value for name, value in values.items()}
    return LlamacppServer().line(SpeculationConfig(kind, options=options))
