"""Repeats that are saved and not compared, as the client did not vouch for their times."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from breakeven.client.reasons import kind
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import RunMeta
from breakeven.units import count

LEFT_OUT = "left_out"
"""Field of run.json: repeats in which the client fell behind, and why."""
LeftOut = Mapping[int, tuple[str, ...]]
"""Their numbers, from 0, and why."""


def left_out_of(meta: RunMeta) -> dict[int, tuple[str, ...]]:
    """Those of one side of a live trial."""
    return {int(n): tuple(why) for n, why in meta.extra.get(LEFT_OUT, {}).items()}


def kept(traces: Iterable[RequestTrace], left_out: LeftOut) -> list[RequestTrace]:
    """The traces of the repeats that are compared."""
    return [trace for trace in traces if trace.repeat not in left_out]


def nothing_kept(sides: Iterable[Iterable[RequestTrace]], left_out: LeftOut) -> str | None:
    """Where both sides answered, and all of that is left out: so much in words. `sides` are whole."""
    if not left_out:
        return None
    answered = ({(one.prompt_id, one.repeat) for one in side if one.error is None} for side in sides)
    repeats = {repeat for _, repeat in set.intersection(*answered)}
    if not repeats or not repeats <= left_out.keys():
        return None
    if len(repeats) == 1:
        return "the one repeat that both sides answered was left out of the comparison"
    return f"all {len(repeats)} repeats that both sides answered were left out of the comparison"


def left_out_note(left_out: LeftOut, by_side: Mapping[str, int], told: Collection[str]) -> list[str]:
    """One sentence, with the reasons that are not told already but for their figures. `by_side` says how many
    are left out for which side, where that is known."""
    if not left_out:
        return []
    first, kinds = min(left_out), {kind(reason) for reason in told}
    reasons = [reason for reason in left_out[first] if kind(reason) not in kinds]
    which = "the first of them, number" if len(left_out) > 1 else "number"
    why = f": {which} {first + 1}, because {'; '.join(reasons)}" if reasons else ""
    sides = ", ".join(f"{n} for the {name}" for name, n in by_side.items() if n)
    return [
        f"{count(len(left_out), 'repeat')} left out of the comparison{f' ({sides})' if sides else ''}{why}"
    ]
