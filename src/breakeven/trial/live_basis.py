"""Basis: what a candidate could be compared with, known before anything is restarted for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.client.reasons import gathered
from breakeven.compare.comparison import compare_traces
from breakeven.engines.dialect import Dialect
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError
from breakeven.trace.run import Run
from breakeven.trial.left_out import LeftOut, kept, left_out_of
from breakeven.trial.live_order import whole_repeats
from breakeven.trial.live_plan import LivePlan
from breakeven.units import count
from breakeven.verdict import judge

ADVICE = ("raise --repeats, or type", "ask more --prompts, or type")
"""What the self-check advises where too few requests are asked, and what it means here: it judges each repeat
by itself."""


@dataclass(frozen=True, slots=True)
class Basis:
    """Of one candidate: the baseline's repeats that its own pair up with, as they were measured before it."""

    void: str | None = None
    """Why no verdict can come of it, with what to do; None where one can."""
    left_out: str = ""
    """`1 of 2 repeats of the baseline is left out`; empty where none is."""
    doubts: tuple[str, ...] = ()
    """What else is to be known of it, in sentences, such as why those are left out."""


def basis_of(plan: LivePlan, dialect: Dialect, candidate: SpeculationConfig, baseline: Run) -> Basis:
    """Raises UsageError where the baseline holds no whole repeat."""
    traces = list(baseline.traces())
    repeats = plan.repeats(dialect, candidate, whole_repeats(traces, len(plan.trial.workload.prompts)))
    asked = {n for start in repeats.candidate for n in start}
    paired = [n for n in repeats.before if n in asked]
    left_out = {n: why for n, why in left_out_of(baseline.meta).items() if n in paired}
    if len(left_out) == len(paired):
        return Basis(_all_left_out(left_out))
    alike = kept([trace for trace in traces if trace.repeat in paired], left_out)
    itself = compare_traces(alike, alike, temperature=plan.trial.sampling.temperature)
    refused = judge(itself)
    why = f"of the baseline compared with itself there is {_small(refused.reason)}"
    if itself.speedup is None:
        then = f": type  {refused.next_command}" if refused.next_command else ""
        return Basis(f"{why.rstrip('.')}{then}")
    doubts = [why] if refused.outcome == "refused" else []
    if not left_out:
        return Basis(doubts=tuple(doubts))
    few = f"{len(left_out)} of {count(len(paired), 'repeat')} of the baseline"
    few += " is left out" if len(left_out) == 1 else " are left out"
    return Basis(None, few, (f"{few}: {_why(left_out)}", *doubts))


def refuse_void(bases: Sequence[Basis], baseline: Run) -> None:
    """Raises UsageError where no verdict can come of any candidate."""
    voids = [basis.void for basis in bases]
    if None not in voids:
        raise UsageError(
            f"{voids[0]}. Nothing was restarted; the baseline that was measured is kept in {baseline.path}"
        )


def _all_left_out(left_out: LeftOut) -> str:
    n = len(left_out)
    said = "the one repeat of the baseline is" if n == 1 else f"all {n} repeats of the baseline are"
    return f"nothing is left to compare a candidate with, as {said} left out ({_why(left_out)})"


def _why(left_out: LeftOut) -> str:
    found = gathered((str(n + 1), reasons) for n, reasons in sorted(left_out.items()))
    alone = len(left_out) == 1
    told = (one.words if alone else one.told(f"number {', '.join(one.places)}") for one in found)
    return "; ".join(told).replace(*ADVICE)


def _small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
