"""Results that the acceptance alone does not let one expect, and why they are so."""

from __future__ import annotations

from breakeven.diagnose.causes.cause import Cause, lifted
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.ratios import acceptance_rate, step_ratio, tokens_per_step
from breakeven.diagnose.speeds import BETTER, speedup
from breakeven.explain.records import Finding
from breakeven.units import between, ratio, shares

POOR = 0.2
"""Acceptance rate below which a speedup surprises: more than four of five drafted tokens are rejected."""
FASTER = 1.02
"""Candidate / baseline from which it is called faster, as speeds.SLOWER is for slower."""


def faster_than_free(evidence: Evidence) -> Finding | None:
    """Faster than if verifying took no time at all."""
    if evidence.explanation is not None:
        return lifted(evidence, "faster_than_free")
    gain, emitted = speedup(evidence), tokens_per_step(evidence)
    if gain is None or emitted is None or gain <= BETTER * emitted.high:
        return None
    return Finding(
        "faster_than_free",
        "The two speeds differ by more than speculation",
        f"a step emits {between(emitted.low, emitted.high)} tokens, so that the candidate could be "
        f"{ratio(emitted.high)} as fast at most, were verifying free; it is {ratio(gain)}. Its plain steps "
        "are faster than the baseline's, or the counts are not of these requests",
        "high",
        "breakeven compare <baseline-run> <candidate-run>",
        "See what it names as different between the two, and whether the machine was as idle for both.",
    )


def pays_at_low_acceptance(evidence: Evidence) -> Finding | None:
    """Faster though little is accepted: drafts that cost next to nothing need not be good."""
    gain, rate, steps = speedup(evidence), acceptance_rate(evidence), step_ratio(evidence)
    emitted = tokens_per_step(evidence)
    if gain is None or rate is None or steps is None or emitted is None:
        return None
    if gain < FASTER or rate.high >= POOR or gain > BETTER * emitted.high:
        return None
    return Finding(
        "pays_at_low_acceptance",
        f"Faster with {shares(rate.low, rate.high)} accepted: a step costs little more than a plain one",
        f"it runs at {ratio(gain)} the baseline's speed. A step emits {between(emitted.low, emitted.high)} "
        f"tokens and takes {between(steps.low, steps.high)} plain steps: what counts is both together, and a"
        " rejected token adds to the second only",
        "high" if steps.low == steps.high else "medium",
        "breakeven calibrate <url>",
        "See at which concurrency more tokens stop being nearly free: there this acceptance no longer pays.",
    )


CAUSES: tuple[Cause, ...] = (faster_than_free, pays_at_low_acceptance)
