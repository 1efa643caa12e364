"""LiveCost: what a decode step takes by the tokens in it, learned from a running server's own step times.

With c sequences and n tokens, a step takes

    plain, n = c:    ln T(c) = level + curve(c) + plain correction(c)
    drafted, n > c:  ln T(n) = level + curve(n) + drafted correction(n) + extra

- The level is the median of the last plain steps. It follows a tenant that takes half of the device, or a
  context that grows, within three of them, and all sizes follow it: their ratios are the server's, and stay.
- The curve is a calibration's; or the steepest there can be, T ∝ n, as two steps of half the tokens do the
  same work. cost/curve.py argues why sequences and drafts count alike; where experts are shared, drafts cost
  less, and are learned to.
- The corrections are what steps of one size took beside that, each with its own memory. Kernels and captured
  graphs make T uneven, so every size up to MOST_TOKENS has one.
- The extra is common to all steps with drafts: another attention path, graphs that were given up, the error
  of a calibration. So a change that some sizes show is believed of all others before they are tried.

When the extra leaps, it is not known what has changed: drafted steps, or all steps since the last plain ones.
Then nothing is vouched for until three plain steps have told the level; what the last drafted steps took is
counted against that.

A size that nobody tried is bounded from above, so a policy may never draft it, and never learn that it would
pay; nor, once it has stopped, that drafts are cheap again. `probe` says when one draft is worth its cost for
what it tells. If drafts are believed so dear that no reply could bear a probe, none is made. So an extra that
no step has paid for a long time fades, until one does.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from breakeven.cost.curve import Curve
from breakeven.guard.probes import FIRST_REST, MOST_REST, Probes
from breakeven.guard.told_sizes import CHANGED, Floats, ToldSizes
from breakeven.guard.told_steps import MOST_TOKENS, ToldSteps
from breakeven.guard.tracked import LEAP, LEAST, RECENT, Tracked, middle

CURVE_WEIGHT = 4
"""Told steps that a measured curve counts as."""
LEVEL_CHANGED = 0.05
"""As a logarithm. Ratios do not depend on the level, so an array is not made again for less."""


class LiveCost:
    """Step times of one server: the guard's StepTimes.

    No clock, no threads, constant memory. `told` counts what it was told.
    """

    def __init__(self, curve: Curve | None = None) -> None:
        """`curve`: what is believed until steps are told, up to its last point; None for nothing.

        It need not be of this server: that all its times are off by one factor does not matter.
        """
        logs, at_most = _logs(curve)
        self.told = ToldSteps()
        self._measured = 0 if curve is None else min(curve.points[-1].concurrency, MOST_TOKENS)
        self._curve: list[float] = logs.tolist()
        self._plain = ToldSizes(logs, at_most)
        self._drafted = ToldSizes(logs, at_most)
        self._extra = Tracked(0.0, CURVE_WEIGHT)
        self._levels: deque[tuple[int, float]] = deque(maxlen=RECENT)
        self._level = 0.0
        self._beside: deque[float] = deque(maxlen=RECENT)
        self._doubt: int | None = None
        self._probes = Probes(MOST_TOKENS + 1, self._measured)
        self._steps = 0
        self._drafted_at = 0
        self._sequences = 1
        self._array: Floats | None = None
        self._array_of = (0, 0.0, 0.0)

    @property
    def in_doubt(self) -> bool:
        """Whether the cost of drafts has just changed, and plain steps must tell what did."""
        return self._doubt is not None

    def seconds(self, most: int, sequences: int | None = None) -> Floats | None:
        """Seconds of a step of n = 0 … `most` tokens that decodes so many sequences, shape (most + 1,).

        None for `sequences` means as many as the last step told had. Entry `sequences` is the plain step,
        those after it hold drafts.

        Entry 0 is entry 1, and it never falls. A size with drafts that was not told is bounded from above.
        None while the plain step is known neither from the curve nor from LEAST told ones, while in doubt,
        and for more than MOST_TOKENS. The array is shared, and cannot be written to.
        """
        c = self._sequences if sequences is None else sequences
        if most > MOST_TOKENS or not self._vouches(c):
            return None
        if self._array is None or self._has_moved(c):
            self._array = self._made(c)
            self._array_of = (c, self._level, self._extra.value)
        return self._array[: most + 1]

    def probe(self, sequences: int, most: int) -> int:
        """Draft tokens, in the whole batch, that a step should verify for what it tells; 0: no probe is due.

        Contract. Ask it where nothing would be drafted because it does not pay. `most` are the draft tokens
        that there are and whose worst waste, by `seconds`, each request's ledger can bear: so probes are paid
        from what the ledger allows, and charged to it as any draft. The answer is at most that. Nothing is
        noted by asking: a probe that was not made stays due, and any drafted step that is told counts as one.

        Due is the draft size that was told longest ago, of 1, 2, 4, …, if that is more than a rest ago, and
        so is the last probe. The rest is FIRST_REST decode steps; each probe that finds what was believed
        doubles it, up to MOST_REST; one that does not, or any other change of drafted steps, sets it back.
        """
        return self._probes.due(self._steps, sequences, most) if self._vouches(sequences) else 0

    def tell(self, tokens: int, sequences: int, seconds: float, prefill: bool = False) -> None:
        """What a step took. `tokens` are all that it computed, drafts included; `prefill`: of prompts too.

        Never raises: what cannot be a decode step is left out, and counted in `told`.
        """
        if not self.told.count(tokens, sequences, seconds, prefill):
            return
        self._steps += 1
        self._sequences = sequences
        beyond = math.log(seconds) - self._curve[tokens]
        if tokens == sequences:
            self._tell_plain(tokens, beyond)
            if (self._steps - self._drafted_at) % MOST_REST == 0:
                self._extra.fade()
        elif self._levels or self._measured:
            self._tell_drafted(tokens, sequences, beyond)

    def notes(self) -> dict[str, str]:
        """Where the server is not as the calibration says, each a sentence, by what it is of."""
        said = {}
        if self._measured and len(self._levels) >= LEAST and abs(self._level) > LEAP:
            said["all steps"] = (
                f"steps take {math.exp(self._level):.2f} times what the calibration says: it is of another "
                "server, or the device is shared; the ratios of its times are kept"
            )
        if self._measured and self._extra.settled and abs(self._extra.value) > LEAP:
            said["steps with drafts"] = (
                f"steps with drafts take {math.exp(self._extra.value):.2f} times what the calibration says, "
                "compared with plain ones"
            )
        return said

    def _tell_plain(self, size: int, beyond: float) -> None:
        """`beyond` the curve, as a logarithm."""
        if not self._plain.knows(size):
            self._begin_plain(size, beyond)
        correction, settled = self._plain.correction(size), self._plain.settled(size)
        if settled or size <= self._measured or not self._levels:
            self._levels.append((size, beyond - correction))
            self._level = middle([level for _, level in self._levels])
        # A settled size is compared with others only: compared with itself it would drift.
        others = [level for other, level in self._levels if other != size] if settled else [self._level]
        if others and self._plain.tell(size, beyond - middle(others)):
            self._array = None
        if self._doubt is not None:
            self._settle_doubt(self._doubt + 1)

    def _begin_plain(self, size: int, beyond: float) -> None:
        if size <= self._measured:
            self._plain.begin(size, self._plain_correction(size), CURVE_WEIGHT)
        else:
            self._plain.begin(size, beyond - self._level if self._levels else 0.0, 0)
        self._array = None

    def _tell_drafted(self, size: int, sequences: int, beyond: float) -> None:
        if self._steps - self._drafted_at > FIRST_REST:
            self._extra.forget()
            self._beside.clear()
        self._drafted_at = self._steps
        if not self._drafted.knows(size):
            self._begin_drafted(size, sequences)
        correction = self._drafted.correction(size)
        off = beyond - self._level - self._extra.value - correction
        self._probes.told(self._steps, sequences, size - sequences, abs(off) > LEAP)
        if size <= self._measured or self._drafted.settled(size):
            self._tell_extra(beyond - correction)
        if self._doubt is None and self._drafted.tell(size, beyond - self._level - self._extra.value):
            self._array = None

    def _begin_drafted(self, size: int, sequences: int) -> None:
        believed = float(self._at_most(sequences)[size]) - self._curve[size]
        self._drafted.begin(size, believed, CURVE_WEIGHT if size <= self._measured else 0)
        self._array = None

    def _tell_extra(self, beside: float) -> None:
        """`beside` the curve and the size's correction: the level and the extra are in it."""
        self._beside.append(beside)
        if self._extra.tell(beside - self._level) and self._doubt is None:
            self.told.leaps += 1
            self._probes.hurry()
            self._doubt = 0

    def _settle_doubt(self, plain_steps: int) -> None:
        """After so many plain steps in doubt, what drafted steps took last is counted against their level."""
        self._doubt = plain_steps
        if plain_steps >= LEAST:
            self._extra.put_right([beside - self._level for beside in self._beside])
            self._doubt = None

    def _vouches(self, sequences: int) -> bool:
        if self._doubt is not None or not 1 <= sequences <= MOST_TOKENS:
            return False
        return sequences <= self._measured or self._plain.lies_between(sequences)

    def _at_most(self, sequences: int) -> Floats:
        """Drafted steps without the extra. Until any was told, as plain ones of as many tokens."""
        known = self._drafted if len(self._drafted) else self._plain
        return known.at_most(self._plain_correction(sequences))

    def _plain_correction(self, size: int) -> float:
        return float(self._plain.between()[size]) - self._curve[size]

    def _has_moved(self, sequences: int) -> bool:
        of, level, extra = self._array_of
        moved = abs(level - self._level) > LEVEL_CHANGED or abs(extra - self._extra.value) > CHANGED
        return moved or of != sequences

    def _made(self, sequences: int) -> Floats:
        """The seconds of all sizes; shape (MOST_TOKENS + 1,)."""
        steps = self._at_most(sequences) + self._extra.value
        plain = self._plain.between()[sequences::-1]
        steps[sequences::-1] = np.minimum.accumulate(plain)
        steps[sequences:] = np.maximum.accumulate(steps[sequences:])
        seconds: Floats = np.exp(steps + self._level)
        seconds.flags.writeable = False
        return seconds


def _logs(curve: Curve | None) -> tuple[Floats, Floats]:
    """Logarithms of seconds by tokens, and of the upper end of their error; shape (MOST_TOKENS + 1,) each.

    Entry 0 is entry 1.
    """
    sizes = np.maximum(np.arange(MOST_TOKENS + 1), 1)
    if curve is None:
        steepest: Floats = np.log(sizes)
        return steepest, steepest
    ends = np.array([curve.step_seconds(int(size)) for size in sizes])
    return np.log(ends[:, 0]), np.log(ends[:, 2])
