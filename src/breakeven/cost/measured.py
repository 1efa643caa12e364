"""Step cost read off a server's own concurrency curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakeven.cost.calibration import MAYBE_MOE, MOE_BOUND
from breakeven.cost.coverage import REUSE_RANGE, effective_tokens
from breakeven.cost.curve import Curve
from breakeven.cost.step import Source, Step
from breakeven.interval import Interval

REUSE = Interval(0.15, 0.0, REUSE_RANGE[1])
"""Of experts among neighbouring tokens, beyond what different sequences share: less than coverage.REUSE,
which is beyond chance. Chosen on step times on CPUs, against curves of the same server: 2 of 8 experts,
routed at random, fit 0 to 0.1 in llama.cpp, though 0.16 to 0.24 are reused (see
RoutingTrace.reuse_beside_sequences): a kernel that computes each token of an expert by itself saves no time
by sharing it. 4 of 32 in vLLM fit 0.25 to 0.3."""
_NO_REUSE = 0.0
CONTEXT_RATIO = 2
"""Beyond so many times the context that the curve was measured at, it is said that attention is not in it.
A threshold for a sentence, not a bound of an error."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A step of s sequences × m tokens costs what the curve says of s·m tokens of a dense model.

    For a mixture of experts that is an upper bound: m neighbouring tokens wake as many distinct experts as
    effective_tokens(m, reuse) independent ones, so the step is read off at s times as many, for `reuse` and
    both ends of it. Where it is not known whether there are experts, the estimate is the dense one, the
    interval that of both.

    The context of a step is not looked at: the curve has that of its own prompts.
    """

    curve: Curve
    moe: bool | None
    """None: not known."""
    reuse: Interval = REUSE
    """Of experts. No one value fits every number of tokens; a measured interval holds how far it fails to."""
    source: Source = field(default="measured", init=False)

    def seconds(self, step: Step) -> Interval:
        """With the curve's own 95 % interval, and what the range of reuse leaves open."""
        found = [self.curve.step_seconds(_tokens(step, reuse)) for reuse in self._reuses()]
        return _all_of(found)

    def relative(self, step: Step, base: Step) -> Interval:
        """By Curve.relative, for each end of the range of reuse, which both steps share."""
        pairs = [(_tokens(step, reuse), _tokens(base, reuse)) for reuse in self._reuses()]
        return _all_of([self.curve.relative(tokens, of) for tokens, of in pairs])

    def parts(self, step: Step) -> Mapping[str, float]:
        """One, as a curve does not tell what its seconds go into."""
        return {"step": self.seconds(step).estimate}

    def warnings(self, step: Step) -> tuple[str, ...]:
        beyond = self.curve.warning(step.batch_tokens)
        bound = {True: (MOE_BOUND + self._bounded(),), None: (MAYBE_MOE + self._bounded(),), False: ()}[
            self.moe
        ]
        said = (beyond, self._context_warning(step))
        return (*(text for text in said if text), *bound)

    def _reuses(self) -> tuple[float, ...]:
        """The reuse of the estimate, and then those of the ends, where there may be experts."""
        if self.moe is False:
            return (_NO_REUSE,)
        if self.moe is None:
            return (_NO_REUSE, _NO_REUSE, self.reuse.high)
        return (self.reuse.estimate, self.reuse.low, self.reuse.high)

    def _bounded(self) -> str:
        return (
            "; here a step is read off at the tokens that wake as many experts, with "
            f"{self.reuse.low:.0%} to {self.reuse.high:.0%} of experts reused"
        )

    def _context_warning(self, step: Step) -> str | None:
        known = [point.context_tokens for point in self.curve.points if point.context_tokens is not None]
        if not known or step.context_tokens <= CONTEXT_RATIO * max(known):
            return None
        return (
            f"the curve was measured with {max(known):.0f} tokens of context in a sequence at most, and the "
            f"record has {step.context_tokens:.0f}: what attention over them takes is not in it; type  "
            "breakeven calibrate URL  with prompts as long"
        )


def _tokens(step: Step, reuse: float) -> float:
    """That cost in the curve what the step does."""
    return step.sequences * effective_tokens(step.tokens, reuse)


def _all_of(found: list[tuple[float, float, float]]) -> Interval:
    """The first one's estimate, within the bounds of all."""
    return Interval(found[0][0], min(low for _, low, _ in found), max(high for _, _, high in found))
