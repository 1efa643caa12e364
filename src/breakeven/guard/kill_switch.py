"""KillSwitch: a file that turns the guard off for as long as it exists. No restart is needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

CHECK_S = 1.0
"""Between two looks: a look at a slow disk would cost every step otherwise."""


class KillSwitch:
    """`clock` gives seconds. When it is set back, the next look is at once."""

    def __init__(self, file: Path | None, clock: Callable[[], float]) -> None:
        """Without a file it is never thrown."""
        self._file, self._clock = file, clock
        self._thrown = False
        self._looked_at = -math.inf

    def thrown(self) -> bool:
        """Whether the file exists, as of the last CHECK_S seconds. One that cannot be looked at does not."""
        if self._file is not None and abs((now := self._clock()) - self._looked_at) >= CHECK_S:
            self._looked_at = now
            self._thrown = _exists(self._file)
        return self._thrown


def _exists(file: Path) -> bool:
    try:
        return file.exists()
    except (OSError, ValueError):
        return False
