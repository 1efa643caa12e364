"""A server whose step times are made up, and a policy of a few lines that asks LiveCost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from breakeven.cost.curve import Curve, CurvePoint
from breakeven.guard.live_cost import LiveCost

EPSILON = 0.02


def curve(seconds: Callable[[int], float], sizes: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16)) -> Curve:
    """Measured without error but the least that a curve has."""
    return Curve(tuple(CurvePoint(n, seconds(n), seconds(n), seconds(n), 20) for n in sizes))


def gentle(tokens: int) -> float:
    """Drafts cost a tenth of a plain step each."""
    return 0.010 + 0.001 * (tokens - 1)


def steep(tokens: int) -> float:
    """Drafts cost a plain step each."""
    return 0.010 * tokens


def graphs(tokens: int) -> float:
    """A step is padded to the next captured graph."""
    return 0.010 + 0.001 * next(size for size in (1, 2, 4, 8, 16, 24, 32, 64, 128, 512) if size >= tokens)


@dataclass
class Server:
    """Its steps have noise, and stalls one time in `stall_every`; both factors may be changed at any time."""

    times: Callable[[int], float] = gentle
    noise: float = 0.02
    stall_every: int = 0
    factor: float = 1.0
    """Of all steps."""
    drafted_factor: float = 1.0
    """Of steps with drafts, beside it."""
    random: Random = field(default_factory=lambda: Random(7))

    def takes(self, tokens: int, sequences: int = 1) -> float:
        """Seconds of one step."""
        seconds = self.times(tokens) * self.factor * self.random.lognormvariate(0.0, self.noise)
        if tokens > sequences:
            seconds *= self.drafted_factor
        if self.stall_every and self.random.randrange(self.stall_every) == 0:
            seconds *= 20
        return seconds

    def told(self, cost: LiveCost, *sizes: int, sequences: int = 1, times: int = 1) -> None:
        """Tell the cost steps of these sizes, in order, so many times."""
        for _ in range(times):
            for tokens in sizes:
                cost.tell(tokens, sequences, self.takes(tokens, sequences))


def ratio(cost: LiveCost, tokens: int, sequences: int = 1) -> float:
    """A step of so many tokens in plain steps, as the cost has it."""
    seconds = cost.seconds(max(tokens, sequences), sequences)
    assert seconds is not None
    return float(seconds[tokens] / seconds[sequences])


@dataclass
class Driver:
    """One sequence, whose drafts are accepted token by token with one probability, and its ledger."""

    cost: LiveCost
    server: Server
    accept: float = 0.8
    most: int = 10
    saved: float = 0.0
    """In plain steps, by what the cost says after the step."""
    lost: float = 0.0
    """What was really saved, in plain steps of the server without noise."""
    plain: int = 0
    """Tokens, each of which would have taken a plain step."""
    probes: int = 0

    def run(self, steps: int) -> list[int]:
        """Tokens drafted in each step."""
        return [self._step() for _ in range(steps)]

    def _step(self) -> int:
        drafted = self._choose()
        tokens = 1 + drafted
        self.cost.tell(tokens, 1, self.server.takes(tokens))
        emitted = 1
        while emitted <= drafted and self.server.random.random() < self.accept:
            emitted += 1
        seconds = self.cost.seconds(tokens, 1)
        self.saved += 0.0 if seconds is None else emitted - float(seconds[tokens] / seconds[1])
        really = self.server.times(tokens) / self.server.times(1)
        self.lost -= emitted - (really * self.server.drafted_factor if drafted else 1.0)
        self.plain += emitted
        return drafted

    def _choose(self) -> int:
        seconds = self.cost.seconds(1 + self.most, 1)
        if seconds is None:
            return 0
        slack = self.saved + EPSILON * (self.plain + 16)
        waste = [float(seconds[1 + k] / seconds[1]) - 1 for k in range(self.most + 1)]
        affordable = [k for k in range(self.most + 1) if waste[k] <= slack] or [0]
        gains = {k: sum(self.accept**j for j in range(1, k + 1)) - waste[k] for k in affordable}
        best = max(gains, key=lambda k: gains[k])
        if best == 0 and (probe := self.cost.probe(1, max(affordable))):
            self.probes += 1
            return probe
        return best
