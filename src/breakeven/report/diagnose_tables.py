"""What the tables of a diagnosis hold: acceptance by position, steps, and the replay beside the server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.record import Acceptance
from breakeven.acceptance.stated import Stated
from breakeven.diagnose.evidence import GIVEN, Evidence, Setting
from breakeven.explain.records import Observation
from breakeven.interval import Interval
from breakeven.report.diagnose_words import TITLES, value_words
from breakeven.units import ABSENT, change, milliseconds


@dataclass(frozen=True, slots=True)
class Position:
    """One place in a draft."""

    number: int
    """From 1."""
    accepted: int | None
    """Drafts of which at least so many tokens were accepted; None where a log tells the share alone."""
    share: Interval | None
    """Of all drafts; None where those are not counted."""


def positions(evidence: Evidence) -> tuple[Position, ...]:
    """By position: as counted, else as the lines of the log bound it; none where nothing tells."""
    counters, log = evidence.counters, evidence.log
    if counters is not None and counters.accepted_per_position:
        return tuple(
            _counted(counters, number) for number in range(1, len(counters.accepted_per_position) + 1)
        )
    if log is None or (counters is not None and counters is not log.counters):
        return ()
    return tuple(Position(number, None, bounds) for number, bounds in enumerate(log.positions, 1))


def _counted(counters: SpecCounters, number: int) -> Position:
    accepted = (counters.accepted_per_position or ())[number - 1]
    part = accepted / counters.drafts if counters.drafts else None
    return Position(number, accepted, None if part is None else Interval(part, part, part))


def no_positions(evidence: Evidence) -> str:
    """Why there is no acceptance by position."""
    sources = [evidence.counters.source] if evidence.counters is not None else []
    sources += [one.source for one in evidence.stated if one.source != GIVEN]
    said = next(filter(None, sources), None)
    why = f"{said} does not count it" if said else "nothing that was given counts it"
    return f"acceptance by position: not derivable: {why}"


def step_bounds(evidence: Evidence, one: Observation) -> tuple[float, float] | None:
    """Seconds of a step with speculation, at least and at most; None where nothing bounds it.

    By the tokens per step as counted, else by what the draft share and the acceptance rate leave possible.
    """
    if one.tokens_per_step is not None:
        return one.candidate_tpot_s * one.tokens_per_step, one.candidate_tpot_s * one.tokens_per_step
    drafted = one.draft_tokens if one.draft_tokens is not None else evidence.drafting.k
    if drafted is None:
        return None
    rates, shares = one.acceptance_rate or (0.0, 1.0), one.draft_share or (0.0, 1.0)
    low, high = (1 + shares[end] * drafted * rates[end] for end in (0, 1))
    return one.candidate_tpot_s * low, one.candidate_tpot_s * high


def steps(evidence: Evidence) -> Iterator[tuple[str, str, str, str, str]]:
    """Name, TPOT without and with speculation, change, step with it; ms."""
    for one in evidence.observations:
        bounds = step_bounds(evidence, one)
        step = "unknown" if bounds is None else between_ms(*bounds)
        yield (
            one.name,
            milliseconds(one.baseline_tpot_s),
            milliseconds(one.candidate_tpot_s),
            change(one.baseline_tpot_s / one.candidate_tpot_s),
            step,
        )


def between_ms(low: float, high: float) -> str:
    """`15.97 to 21.55`, without the unit."""
    ends = milliseconds(low), milliseconds(high)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


REPLAYED = ("acceptance_rate", "mean_acceptance_length", "tokens_per_step", "draft_share")


def against_replay(evidence: Evidence) -> Iterator[tuple[str, str, str]]:
    """Ratio, what the server did, what the drafter should have given."""
    if evidence.replayed is None:
        return
    given = {one.name: value_words(one) for one in evidence.stated}
    for name in REPLAYED:
        value = replayed_ratio(evidence.replayed.as_set.acceptance, name)
        yield TITLES[name], given.get(name, ABSENT), plain(name, value)


def replayed_ratio(acceptance: Acceptance, name: str) -> float | None:
    """Tokens per step as emitted; the others from the counts."""
    if name == "tokens_per_step":
        return acceptance.tokens_per_step
    value: float | None = getattr(acceptance.counters, name)
    return value


def plain(name: str, value: float | None) -> str:
    """One ratio, as `value_words`."""
    return value_words(Stated(name, None if value is None else Interval(value, value, value), ""))


def setting_words(setting: Setting) -> str:
    """`k 5, n 2 to 4`."""
    if setting.min_n is None and setting.max_n is None:
        return f"k {setting.k}"
    low, high = setting.min_n, setting.max_n
    return f"k {setting.k}, n {high if low == high else f'{low or 1} to {high}'}"
