"""Explanations of a slowdown that the arithmetic does not bear out, one function each, with the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from breakeven.cost.modelled import INCREMENT_ERROR
from breakeven.explain.case import Case
from breakeven.explain.causes import memory_bytes, weight_bytes
from breakeven.explain.explained import is_within_error, needed_verify_s
from breakeven.explain.records import Explained, Finding
from breakeven.explain.waterfall import EXPERTS, distinct_range
from breakeven.units import between, share, size

Excuse = Callable[[Case, Sequence[Explained]], Finding | None]


def ruled_out(case: Case, explained: Sequence[Explained]) -> tuple[Finding, ...]:
    """Those that hold for every observation that became slower; none where none did."""
    slower = [one for one in explained if one.observed_speedup < 1]
    if not slower:
        return ()
    return tuple(found for excuse in EXCUSES if (found := excuse(case, slower)) is not None)


def distinct_experts_alone(case: Case, slower: Sequence[Explained]) -> Finding | None:
    """The experts that verified tokens wake beyond those of one token, as the only cause."""
    experts = None if case.geometry is None else case.geometry.experts
    if experts is None or any(one.verify_s.high >= _needed(case, one) for one in slower):
        return None
    one = min(slower, key=lambda one: _needed(case, one) / one.verify_s.high)
    drafted = case.draft_tokens(one.observation)
    added = next((part.added_s for part in one.parts if part.name == EXPERTS), None)
    adds = "" if added is None else f", +{between(added.low * 1e3, added.high * 1e3)} ms"
    few, many = distinct_range(case, drafted)
    adds_least = min(each.verify_s.low / each.observation.baseline_tpot_s for each in slower)
    adds_most = max(each.verify_s.high / each.observation.baseline_tpot_s for each in slower)
    return Finding(
        "distinct_experts",
        "Distinct experts as the sole cause",
        f"{1 + drafted:g} tokens wake {few:.0f} to {many:.0f} of {experts.count} experts per layer instead "
        f"of {experts.top_k}{adds}. All of verifying adds "
        f"{between(adds_least, adds_most)} plain steps over these prompts and breaks even at "
        f"{_break_even(slower)}. As the only cause they would need {_needed(case, one) * 1e3:.1f} ms in "
        f"every step of {one.observation.name}, the nearest; all of verifying takes "
        f"{one.verify_s.high * 1e3:.1f} ms there at most",
        "high" if _most_s(case, one) < _needed(case, one) else "medium",
        *_measured_bound(case, drafted),
        None if added is None else (added.low, added.high),
    )


def weights_over_the_link(case: Case, slower: Sequence[Explained]) -> Finding | None:
    """Weights that cross PCIe, or whatever joins the devices, at each step."""
    have, need = memory_bytes(case), weight_bytes(case)
    if not case.is_modelled or case.tp == 1 or have is None or need is None or need > have:
        return None
    link, geometry = case.modelled.hardware.link, case.modelled.geometry
    if link is None:
        return None
    kind = "PCIe" if link.kind.startswith("PCIe") else link.kind
    return Finding(
        "weights_over_link",
        f"Weights crossing {kind}",
        f"{size(need)} of weights lie in {size(round(have))} of device memory; only activations "
        f"cross, {size(round(geometry.all_reduce_bytes(1)))} per token in each of "
        f"{geometry.all_reduce_calls()} calls",
        "high",
        "grep -i offload <candidate-log>",
        "See that no weights are named.",
    )


def low_acceptance(case: Case, slower: Sequence[Explained]) -> Finding | None:
    """An acceptance too low for the window."""
    if any(one.outcome != "faster" or one.observation.acceptance_rate is None for one in slower):
        return None
    rates = [one.observation.acceptance_rate or (0.0, 0.0) for one in slower]
    enough = [
        one.verify_s.high / one.observation.baseline_tpot_s / case.draft_tokens(one.observation)
        for one in slower
    ]
    return Finding(
        "low_acceptance",
        "Acceptance",
        f"A drafted step pays from an acceptance rate of {share(max(enough))} even where verifying costs the "
        f"most, and at least {share(min(low for low, _ in rates))} were accepted",
        "medium" if case.measured is None and any(map(is_within_error, slower)) else "high",
        "breakeven measure --url <url>",
        "Measure the candidate: the acceptance of each prompt is kept.",
    )


EXCUSES: tuple[Excuse, ...] = (distinct_experts_alone, weights_over_the_link, low_acceptance)


def _measured_bound(case: Case, drafted: float) -> tuple[str, str]:
    """Command and check."""
    if case.measured is not None:
        return "", "The curve of the calibration is an upper bound for experts."
    step = f"Its step with {1 + drafted:g} sequences"
    return "breakeven calibrate <url>", f"{step} is an upper bound of one that verifies {drafted:g} tokens."


def _most_s(case: Case, one: Explained) -> float:
    """Of verifying, with the error of a model where that tells it."""
    return one.verify_s.high * (1 if case.measured is not None else 1 + INCREMENT_ERROR)


def _needed(case: Case, one: Explained) -> float:
    return needed_verify_s(one.observation, case.draft_tokens(one.observation))


def _break_even(slower: Sequence[Explained]) -> str:
    known = [one.break_even_verify for one in slower if one.break_even_verify is not None]
    if not known:
        return "k × acceptance"
    return between(min(low for low, _ in known), max(high for _, high in known))
