"""How many tokens a step may draft: an engine's formula, for one step or for all of a record at once."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.base import Limits
from breakeven.drafters.tokens import UNLIMITED, Tokens


class Formula(Protocol):
    """An engine's, from whole numbers or from arrays of them; a limit that is not known is UNLIMITED.

    Less than 1 is no draft. It never rises in the course of a request.
    """

    def __call__(self, context_tokens: Any, output_tokens: Any, max_tokens: Any, max_model_len: Any) -> Any:
        """Most tokens of a draft after so many tokens of prompt and output, of which so many are output."""


def room_of(formula: Formula, context_tokens: int, output_tokens: int, limits: Limits) -> int:
    """Most tokens that this step may draft; far more than any draft has where no limit is known."""
    most, held = _known(limits.max_tokens), _known(limits.max_model_len)
    return int(formula(context_tokens, output_tokens, most, held))


def rooms_of(formula: Formula, tokens: Tokens, k: int) -> NDArray[np.int32] | None:
    """Most tokens of a draft at each output position, shape (positions,), 0 for none.

    None if it cuts no draft of k tokens.
    """
    ends = np.diff(tokens.starts) - 1
    outputs = np.diff(tokens.positions) - 1
    if (formula(ends, outputs, tokens.max_tokens, tokens.max_model_len) >= k).all():
        return None
    context, prompts = tokens.context_tokens, tokens.outputs - tokens.starts[:-1]
    limits = tokens.spread(tokens.max_tokens), tokens.spread(tokens.max_model_len)
    found = formula(context, context - tokens.spread(prompts), *limits)
    rooms: NDArray[np.int32] = np.clip(found, 0, UNLIMITED).astype(np.int32)
    return rooms


def _known(limit: int | None) -> int:
    return UNLIMITED if limit is None else limit
