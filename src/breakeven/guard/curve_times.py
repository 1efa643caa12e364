"""CurveTimes: step times of a cost that is known and stays, as a calibration's curve or a model has it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from breakeven.cost.step import Step, StepCost

Floats = NDArray[np.float64]


class CurveTimes:
    """StepTimes of the policy, by a StepCost."""

    def __init__(self, cost: StepCost, context_tokens: float = 0) -> None:
        """`context_tokens`: in the cache of each sequence, the mean over sequences."""
        self._cost, self._context = cost, context_tokens
        self._known: dict[int, Floats] = {}

    def seconds(self, most: int, sequences: int = 1) -> Floats:
        """Seconds of a step of n = 0 … `most` tokens that decodes so many sequences, shape (most + 1,).

        Entry `sequences` is the plain step, as are those before it. It never falls, and is shared: do not
        write to it. Raises what the cost raises.
        """
        known = self._known.get(sequences)
        if known is None or len(known) <= most:
            known = self._known[sequences] = self._made(most, sequences)
        return known[: most + 1]

    def probe(self, sequences: int, most: int) -> int:
        """No draft is needed to learn what is known."""
        return 0

    def _made(self, most: int, sequences: int) -> Floats:
        sizes = np.maximum(np.arange(most + 1), sequences) / sequences
        steps = (Step(float(tokens), sequences, self._context) for tokens in sizes)
        seconds = np.array([self._cost.seconds(step).estimate for step in steps])
        made: Floats = np.maximum.accumulate(seconds)
        made.flags.writeable = False
        return made
