"""Token ids, and acceptance recorded beside them, of a row; anything else is refused with its place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import UsageError
from breakeven.trace import tokens

NOT_RECORDED = -1


def ids_of(value: Any, where: object, column: str) -> NDArray[np.int32]:
    """A JSON list, or an array, of token ids. Raises UsageError, which names the place and the value."""
    try:
        return tokens.ids_of(value)
    except ValueError as error:
        raise UsageError(f"{where}: `{column}` {error}") from None


def accepted_of(value: Any, where: object, column: str, n_output: int) -> NDArray[np.int32]:
    """Draft tokens accepted before each output token, from lengths that count the token after them too.

    Lengths beyond the output are cut off; where they fall short, NOT_RECORDED stands. Shape (n_output,).
    """
    try:
        lengths = tokens.integers_of(value)[:n_output]
    except ValueError as error:
        raise UsageError(f"{where}: `{column}.acc_len` {error}") from None
    if lengths.size and (lengths.min() < 0 or lengths.max() > tokens.MAX_ID):
        raise UsageError(f"{where}: `{column}.acc_len` holds a length below 0 or beyond {tokens.MAX_ID}")
    accepted = np.full(n_output, NOT_RECORDED, np.int32)
    accepted[: len(lengths)] = lengths.astype(np.int64) - 1
    return accepted
