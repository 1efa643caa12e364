"""Token ids of a row; anything else is refused with its place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import UsageError
from breakeven.trace import tokens


def ids_of(value: Any, where: object, column: str) -> NDArray[np.int32]:
    """A JSON list, or an array, of token ids. Raises UsageError, which names the place and the value."""
    try:
        return tokens.ids_of(value)
    except ValueError as error:
        raise UsageError(f"{where}: `{column}` {error}") from None
