"""ToldSteps: counts of the steps that a server's adapter told, by what became of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

MOST_TOKENS = 512
"""Of a step that is learned. vLLM captures graphs of no more by default; beyond it a step is bound by its
arithmetic, and verification pays for nothing."""


@dataclass(slots=True)
class ToldSteps:
    """Counts, all of them growing."""

    plain: int = 0
    drafted: int = 0
    prefill: int = 0
    """Left out: other work was mixed in."""
    malformed: int = 0
    """Left out: no sequences, or fewer tokens than sequences."""
    too_large: int = 0
    """Left out: more tokens than MOST_TOKENS."""
    bad_clock: int = 0
    """Left out: a time that is none, or not above 0."""
    leaps: int = 0
    """How often the cost of drafted steps leapt, and was put in doubt."""

    def count(self, tokens: int, sequences: int, seconds: float, prefill: bool) -> bool:
        """Whether a step is one to learn from."""
        if prefill:
            self.prefill += 1
        elif not 1 <= sequences <= tokens:
            self.malformed += 1
        elif tokens > MOST_TOKENS:
            self.too_large += 1
        elif not 0 < seconds < math.inf:
            self.bad_clock += 1
        else:
            self.plain += tokens == sequences
            self.drafted += tokens > sequences
            return True
        return False
