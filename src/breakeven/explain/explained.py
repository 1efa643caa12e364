"""One observation, taken apart: what drafting should have given it, and what is left over.

With a plain step T, a step that verifies n drafted tokens T + V, a flat extra d of every step, a share f of
steps that draft, and acceptance rate a:

    TPOT = [(1 − f)(T + d) + f (T + d + V)] / (1 + f·n·a) = (T + d + f·V) / (1 + f·n·a)

T is the baseline's TPOT, V is modelled, and d is what neither explains. It is exact for one sequence; of
more, V is a step in which all of them draft, and a share f of it is taken where each drafts by itself.
"""

from __future__ import annotations

from breakeven.cost.modelled import INCREMENT_ERROR
from breakeven.explain.case import Case
from breakeven.explain.records import Explained, Observation, Prediction
from breakeven.explain.waterfall import verify_cost, waterfall
from breakeven.interval import Interval
from breakeven.units import share

SHARES = tuple(tenths / 10 for tenths in range(11))
"""Of steps that draft, at which the speedup is predicted."""
ANY = (0.0, 1.0)
"""What a share that is not known may be."""


def explain_one(case: Case, one: Observation) -> Explained:
    """See the module's formula. Nothing is added for the drafter's own time: it is part of what is left."""
    drafted = case.draft_tokens(one)
    parts = waterfall(case, one.baseline_tpot_s, drafted)
    verify = verify_cost(parts)
    (least, when), (most, _) = unexplained(one, drafted, verify)
    rates = one.acceptance_rate
    return Explained(
        observation=one,
        parts=parts,
        verify_s=verify,
        predictions=tuple(predicted(one, drafted, verify, f) for f in SHARES),
        observed_speedup=one.baseline_tpot_s / one.candidate_tpot_s,
        unexplained_s=(least, most),
        unexplained_at_least_when=when,
        break_even_verify=None if rates is None else (drafted * rates[0], drafted * rates[1]),
    )


def predicted(one: Observation, drafted: float, verify: Interval, draft_share: float) -> Prediction:
    """T (1 + f·n·a) / (T + f·V) at one draft share: low with the least acceptance and dearest V."""
    low_rate, high_rate = one.acceptance_rate or ANY

    def speedup(rate: float, verify_s: float) -> float:
        plain = one.baseline_tpot_s
        return plain * (1 + draft_share * drafted * rate) / (plain + draft_share * verify_s)

    middle = speedup((low_rate + high_rate) / 2, verify.estimate)
    return Prediction(
        draft_share, Interval(middle, speedup(low_rate, verify.high), speedup(high_rate, verify.low))
    )


def unexplained(
    one: Observation, drafted: float, verify: Interval
) -> tuple[tuple[float, str], tuple[float, str]]:
    """d at least and at most over all possible f, a and V, each with what it assumes.

    d = TPOT · (1 + f·n·a) − T − f·V rises with a, falls with V, and is linear in f: so both lie at ends.
    """
    low_rate, high_rate = one.acceptance_rate or ANY
    shares = one.draft_share or ANY
    least = min((left_over(one, drafted, f, low_rate, verify.high), f) for f in shares)
    most = max((left_over(one, drafted, f, high_rate, verify.low), f) for f in shares)
    return (least[0], _when(least[1], low_rate, "dearest")), (most[0], _when(most[1], high_rate, "cheapest"))


def left_over(one: Observation, drafted: float, draft_share: float, rate: float, verify_s: float) -> float:
    """d, in seconds per step, where all else is known."""
    step_s = one.candidate_tpot_s * (1 + draft_share * drafted * rate)
    return step_s - one.baseline_tpot_s - draft_share * verify_s


def is_within_error(one: Explained) -> bool:
    """Whether the outcome predicted would be another if verifying took INCREMENT_ERROR more or less than
    modelled; never where nothing decides the outcome."""
    bounds, plain_s = one.break_even_verify, one.observation.baseline_tpot_s
    if bounds is None or one.outcome not in ("faster", "slower"):
        return False
    if one.outcome == "faster":
        return (1 + INCREMENT_ERROR) * one.verify_s.high >= bounds[0] * plain_s
    return (1 - INCREMENT_ERROR) * one.verify_s.low <= bounds[1] * plain_s


def needed_verify_s(one: Observation, drafted: float) -> float:
    """The least V that would give the speed observed by verification alone (d = 0): every step drafts.

    V = (TPOT · (1 + f·n·a) − T) / f falls as f rises, where the candidate is slower than the baseline.
    """
    low_rate, _ = one.acceptance_rate or ANY
    return left_over(one, drafted, 1.0, low_rate, 0.0)


def _when(draft_share: float, rate: float, cost: str) -> str:
    if draft_share == 0:
        return "nothing was ever drafted"
    steps = "every step" if draft_share == 1 else f"{share(draft_share)} of steps"
    return f"{steps} drafted, {share(rate)} of drafted tokens were accepted, and verifying was {cost}"
