"""Comparison + evidence → faster | slower | same | undecided | refused, in a word and in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from breakeven.client.reasons import gathered
from breakeven.compare.outcome import disagreement, outcome
from breakeven.compare.projection import project
from breakeven.compare.records import Comparison, SideQuality, Verdict
from breakeven.interval import Interval
from breakeven.latency import HIDDEN_REASONING, ONE_READ
from breakeven.units import change, count, share

MAX_ERROR_SHARE = 0.05
"""Beyond it the requests that were answered may be the easy ones."""
MAX_DEGENERATE_SHARE = 0.5
"""Beyond it the text is mostly loops, which drafters guess better than any real text."""
MOST_SUGGESTED = 200
"""Larger numbers of repeats or prompts are not worth suggesting: the estimate is too near the floor."""

NEAR = 0.5
"""Of the floor, on the log scale: so near to it the estimate keeps the verdict open, not the spread."""

WHOLE = (
    "a reply that arrives whole was held back by a proxy (ask the server itself), or was over before this "
    "machine read any of it (ask for more tokens)"
)
NO_THINKING = "--extra 'chat_template_kwargs={\"enable_thinking\": false}'"

SelfCheck = tuple[str, bool, tuple[str, ...]]
"""A side's name, whether its self-check passed, and the reasons if not."""


def judge(comparison: Comparison, self_checks: Sequence[SelfCheck] = ()) -> Verdict:
    """Judge a comparison: first whether it may be judged at all, then what its interval says.

    Refused are: a client that failed its self-check, nothing paired, sides that differ in replies truncated
    inside reasoning, and a side with over 5 % errors or mostly looping replies. A drift of the machine is a
    warning, not a refusal: the order of a trial puts it on both sides, and the interval holds what is left.
    """
    refused = (
        _void(self_checks)
        or _truncated(comparison)
        or _errors(comparison)
        or _degenerate(comparison)
        or _unpaired(comparison)
    )
    if refused is not None or comparison.speedup is None:
        return refused or Verdict("refused", "No verdict: nothing was paired.")
    if sum(prompt.pairs for prompt in comparison.prompts) < 2:
        found = change(comparison.speedup.estimate)
        return Verdict(
            "undecided",
            f"Undecided: one pair alone ({found}) cannot tell an effect from noise.",
            "breakeven trial … --repeats auto",
        )
    return _judge(comparison, comparison.speedup)


def _void(self_checks: Sequence[SelfCheck]) -> Verdict | None:
    failed = [(name, reasons or ("it does not say why",)) for name, ok, reasons in self_checks if not ok]
    if not failed:
        return None
    void = "; ".join(reason.told(" and ".join(reason.places)) for reason in gathered(failed))
    return _refused(
        f"the client failed its self-check, so its times cannot be relied on ({void}); measure again while "
        "its machine does nothing else",
        None,
    )


def _truncated(comparison: Comparison) -> Verdict | None:
    base, cand = comparison.baseline, comparison.candidate
    if _part(base, base.truncated_in_reasoning) == _part(cand, cand.truncated_in_reasoning):
        return None
    shown = _per_side(comparison, lambda side: side.truncated_in_reasoning)
    return _refused(
        f"the sides differ in replies that ended inside reasoning, at max_tokens ({shown}), "
        "so they did not do the same work",
        _more_tokens(comparison),
    )


def _errors(comparison: Comparison) -> Verdict | None:
    if max(_part(s, s.errors) for s in (comparison.baseline, comparison.candidate)) <= MAX_ERROR_SHARE:
        return None
    shown = _per_side(comparison, lambda side: side.errors)
    return _refused(f"too many requests failed ({shown}; up to {share(MAX_ERROR_SHARE)} is let pass)", None)


def _degenerate(comparison: Comparison) -> Verdict | None:
    if (
        max(_part(s, s.degenerate) for s in (comparison.baseline, comparison.candidate))
        <= MAX_DEGENERATE_SHARE
    ):
        return None
    shown = _per_side(comparison, lambda side: side.degenerate)
    return _refused(
        f"most replies end in a short loop ({shown}): neither speed nor acceptance is that of real text",
        "breakeven trial … --temperature 0.7",
    )


def _unpaired(comparison: Comparison) -> Verdict | None:
    if comparison.speedup is not None:
        return None
    sides = {"baseline": comparison.baseline, "candidate": comparison.candidate}
    shown = "; ".join(
        f"{name} {count(side.requests, 'request')}, {side.errors} failed, {side.without_tpot} without a "
        f"TPOT{_untimed(side)}"
        for name, side in sides.items()
    )
    if all(side.requests > side.errors + side.without_tpot for side in sides.values()):
        shown += "; those that have one answer other prompts or repeats on either side"
    reasons = {reason for side in sides.values() for reason in side.untimed}
    whole = f"; {WHOLE}" if ONE_READ in reasons else ""
    if HIDDEN_REASONING in reasons:
        command = f"breakeven trial … {NO_THINKING}"
    elif reasons:
        command = _more_tokens(comparison)
    else:
        command = "breakeven trial …"
    return _refused(f"no request has a speed on both sides ({shown}){whole}", command)


def _untimed(side: SideQuality) -> str:
    """` (all tokens came in one read)`, with how many of each where there are several."""
    reasons = [reason if len(side.untimed) == 1 else f"{n}: {reason}" for reason, n in side.untimed.items()]
    return f" ({', '.join(reasons)})" if reasons else ""


def _judge(comparison: Comparison, speedup: Interval) -> Verdict:
    found = outcome(speedup, comparison.floor)
    figures = _figures(comparison, speedup)
    if found == "undecided":
        return _undecided(comparison, figures)
    if found == "same":
        reason = f"Same: any difference is within {share(comparison.floor)}; {figures}."
        return Verdict("same", reason + _apart(comparison))
    return Verdict(found, f"{found.capitalize()}: {figures}.{_apart(comparison)}")


def _undecided(comparison: Comparison, figures: str) -> Verdict:
    """Say what would decide it, if the estimate stayed where it is."""
    needs = project(comparison)
    reason, command = f"Undecided: {figures}.{_apart(comparison)}", None
    if needs is not None and needs.repeats_needed is not None and needs.repeats_needed <= MOST_SUGGESTED:
        command = f"breakeven trial … --repeats {needs.repeats_needed}"
        reason += f" About {needs.repeats_needed} repeats of these prompts would decide it."
    elif needs is not None and needs.prompts_needed is not None and needs.prompts_needed <= MOST_SUGGESTED:
        command = "breakeven trial … --prompts FILE"
        reason += (
            " More repeats would not: prompts differ among themselves by more than "
            f"that{_by_prompt(comparison)}. "
            f"About {needs.prompts_needed} prompts as varied as these would "
            "decide it."
        )
    elif needs is not None and needs.needed < NEAR * math.log1p(comparison.floor):
        reason += f" It is too near the floor of {share(comparison.floor)} for more of the same to decide it."
    else:
        most = MOST_SUGGESTED
        reason += f" The spread is too wide for {most} repeats or {most} such prompts to decide it."
    return Verdict("undecided", reason, command)


def _by_prompt(comparison: Comparison) -> str:
    """` (5 of 8 are faster by themselves, 1 slower)`, by each prompt's own interval."""
    found = [outcome(prompt.speedup, comparison.floor) for prompt in comparison.prompts]
    faster, slower = found.count("faster"), found.count("slower")
    return f" ({faster} of {len(found)} are faster by themselves, {slower} slower)"


def _figures(comparison: Comparison, speedup: Interval) -> str:
    """`decoding +5.0 % (95.0 % interval +2.1 % to +8.0 %; 8 prompts × 4 repeats)`."""
    pairs = [prompt.pairs for prompt in comparison.prompts]
    sizes = f"{min(pairs)}" if min(pairs) == max(pairs) else f"{min(pairs)} to {max(pairs)}"
    only = f"; it speaks for {comparison.prompts[0].id} only" if len(pairs) == 1 else ""
    return (
        f"decode speed {change(speedup.estimate)} ({share(comparison.confidence)} interval "
        f"{change(speedup.low)} to {change(speedup.high)}; {count(len(pairs), 'prompt')} × "
        f"{sizes} {'repeat' if sizes == '1' else 'repeats'}{only})"
    )


def _apart(comparison: Comparison) -> str:
    """A sentence when categories pull in both directions, else nothing."""
    apart = disagreement(comparison)
    return f" The answer depends on the prompt: {apart}." if apart else ""


def _refused(reason: str, next_command: str | None) -> Verdict:
    return Verdict("refused", f"No verdict: {reason}.", next_command)


def _more_tokens(comparison: Comparison) -> str:
    """Twice what was asked for, and enough to time."""
    asked = max(comparison.baseline.max_tokens or 0, comparison.candidate.max_tokens or 0)
    return f"breakeven trial … --max-tokens {max(64, 2 * asked)}"


def _part(side: SideQuality, n: int) -> float:
    return n / side.requests if side.requests else 0.0


def _per_side(comparison: Comparison, which: Callable[[SideQuality], int]) -> str:
    return ", ".join(
        f"{name} {share(_part(side, which(side)))}, {which(side)} of {side.requests}"
        for name, side in (("baseline", comparison.baseline), ("candidate", comparison.candidate))
    )
