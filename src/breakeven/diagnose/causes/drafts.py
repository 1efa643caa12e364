"""Drafts that are rare, and drafts that are not what the configured drafter gives on the same tokens."""

from __future__ import annotations

import math
from dataclasses import replace

from breakeven.acceptance.counters import LEAST_DRAFTS, SpecCounters
from breakeven.cost.drafting import is_lookup
from breakeven.diagnose.causes.cause import Cause
from breakeven.diagnose.causes.commands import restart_with
from breakeven.diagnose.evidence import Evidence, Setting
from breakeven.diagnose.ratios import draft_share, has_enough_drafts, ratio_of, tokens_per_step
from breakeven.diagnose.speeds import BETTER, is_slower
from breakeven.explain.causes import PROMPT_LOOKUPS, only_longest
from breakeven.explain.records import Confidence, Finding
from breakeven.units import share

RARE = 0.2
"""Share of steps that draft, and tokens that a step gains by it, below which drafts are rare: they could be
free, and replies would hardly be a fifth faster. A long draft makes up for many steps without one."""
UNLIKE = 1.5
"""Replayed / counted share, from which something else is taken to run. On the same tokens a replay drafts
what the engine drafts; the rest is room for replies that differ from those replayed."""
FAR_UNLIKE = 2.0
"""Likewise, from which replies that differ are no reason."""
SURE_Z = 3.0
"""Standard errors that the two shares must be apart: chance makes 1 of 370 such."""
LEAST_APART = 0.05
"""Of the same two shares: where both are near 0 their quotient says nothing."""


def longest_only(evidence: Evidence) -> Finding | None:
    """Matches of one length alone, as vLLM's prompt_lookup_max without prompt_lookup_min has them, where that
    makes drafts rare."""
    if not _is_trap(evidence):
        return None
    drafting, seen, better = evidence.drafting, draft_share(evidence), _better_range(evidence)
    if better is None and not _is_rare(evidence) and (seen is not None or is_slower(evidence) is False):
        return None
    found = only_longest(drafting.k or 5, drafting.max_n or 0, drafting.min_left_out)
    title = f"Drafts are rare: only matches of exactly {drafting.max_n} tokens"
    said = [found.evidence]
    if seen is not None:
        said.append(f"{share(seen.estimate)} of steps drafted")
    if better is not None:
        said.append(_range_words(evidence, better))
    rare, pays = _is_rare(evidence), better is not None and better.cost_per_token is not None
    return replace(
        found,
        title=title if rare else found.title,
        evidence=". ".join(said),
        confidence="high" if rare or pays or (better is not None and is_slower(evidence)) else "medium",
    )


def drafts_rare(evidence: Evidence) -> Finding | None:
    """Few steps draft, with the n range that would draft more, or the word that none would. None at all are
    no fault to be seen: speculation may be off."""
    seen = draft_share(evidence)
    if seen is None or seen.high == 0 or not _is_rare(evidence) or longest_only(evidence) is not None:
        return None
    better = _better_range(evidence)
    if better is None and is_slower(evidence) is False:
        return None
    said = f"{share(seen.estimate)} of steps drafted{_gain_words(evidence)}"
    return Finding(
        "drafts_rare",
        f"Drafts are rare: {share(seen.estimate)} of steps",
        f"{said}{_more_words(evidence, better)}",
        "high" if better is not None else "medium",
        *_range_command(evidence, better),
    )


def drafted_less(evidence: Evidence) -> Finding | None:
    """Fewer steps draft than the configured drafter would on these tokens."""
    seen, should = draft_share(evidence), _replayed(evidence)
    if seen is None or should is None or should.draft_share is None or not _has_steps(evidence):
        return None
    mine = None if evidence.counters is None else evidence.counters.steps
    confidence = _unlike(seen.high, should.draft_share, mine, should.steps)
    if confidence is None:
        return None
    return Finding(
        "drafted_less",
        "The server drafts less often than its drafter would",
        f"as it is set, {share(should.draft_share)} of steps draft on these tokens, by replay; the "
        f"server drafted in {share(seen.estimate)}. What runs is not what was configured, or something keeps "
        "it from drafting",
        confidence,
        "grep -iE 'speculative|spec_type|draft' <candidate-log>",
        "See that method, window and n range are those given here, and whether a batch size, a sampling "
        "parameter or a grammar switches drafts off.",
    )


def accepted_less(evidence: Evidence) -> Finding | None:
    """Fewer drafted tokens are accepted than the same drafter would have had on these tokens."""
    seen, should = ratio_of(evidence, "acceptance_rate"), _replayed(evidence)
    if seen is None or should is None or should.acceptance_rate is None or not has_enough_drafts(evidence):
        return None
    mine = None if evidence.counters is None else evidence.counters.drafts
    confidence = _unlike(seen.high, should.acceptance_rate, mine, should.drafts)
    if confidence is None:
        return None
    return Finding(
        "accepted_less",
        "The server accepts less than its drafter's drafts deserve",
        f"of drafted tokens {share(should.acceptance_rate)} agree with these replies, by replay; the server "
        f"accepted {share(seen.estimate)}. Verifying keeps what greedy decoding would say: it drafts "
        "otherwise than configured, samples, or other requests are in its counts",
        confidence,
        "breakeven measure --url <url> --temperature 0",
        "Measure greedily, with nobody else on the server; then compare its counts with a replay of it.",
    )


CAUSES: tuple[Cause, ...] = (longest_only, drafted_less, accepted_less, drafts_rare)


def _is_trap(evidence: Evidence) -> bool:
    """Whether one length of two tokens or more is looked up: set so, or as the other end was left out."""
    drafting = evidence.drafting
    is_vllm = evidence.engine == "vllm" and drafting.method in PROMPT_LOOKUPS
    return is_vllm and (drafting.max_n or 0) > 1 and drafting.min_n in (None, drafting.max_n)


def _is_rare(evidence: Evidence) -> bool:
    """Whether few steps draft, and little comes of it."""
    seen, emitted = draft_share(evidence), tokens_per_step(evidence)
    if seen is None or seen.high >= RARE or not is_lookup(evidence.drafting.method):
        return False
    return _has_steps(evidence) and (emitted is None or emitted.high < 1 + RARE)


def _gain_words(evidence: Evidence) -> str:
    emitted = tokens_per_step(evidence)
    return "" if emitted is None else f", so that a step emits {emitted.estimate:.2f} tokens"


def _has_steps(evidence: Evidence) -> bool:
    """Whether enough steps were counted for a share of them."""
    steps = None if evidence.counters is None else evidence.counters.steps
    return steps is None or steps >= LEAST_DRAFTS


def _replayed(evidence: Evidence) -> SpecCounters | None:
    """What the drafter gives as it is set; None where it is too little to tell."""
    if evidence.replayed is None:
        return None
    counts = evidence.replayed.as_set.acceptance.counters
    return counts if (counts.drafts or 0) >= LEAST_DRAFTS else None


def _unlike(seen: float, should: float, n_seen: int | None, n_should: int | None) -> Confidence | None:
    """Of two shares of so many; of the tokens of a draft, which are accepted together, the drafts are taken.

    What a source does not count is believed, but not as surely.
    """
    if should - seen < LEAST_APART or should < UNLIKE * seen:
        return None
    if not n_seen or not n_should:
        return "medium"
    error = math.sqrt(seen * (1 - seen) / n_seen + should * (1 - should) / n_should)
    if should - seen < SURE_Z * error:
        return None
    return "high" if should >= FAR_UNLIKE * seen else "medium"


def _better_range(evidence: Evidence) -> Setting | None:
    """Of the other n ranges at the same window, the one with which a token costs least, or, where no cost is
    known, a step emits most; None where it is not BETTER."""
    replayed = evidence.replayed
    if replayed is None:
        return None
    now = replayed.as_set
    others = [one for one in replayed.others if one.k == now.k and _drafts_more(one, now)]
    gains = [(_gain(one, now), index) for index, one in enumerate(others)]
    gain, index = max(gains, default=(0.0, 0))
    return others[index] if gain >= BETTER else None


def _drafts_more(one: Setting, now: Setting) -> bool:
    return (one.acceptance.counters.draft_share or 0) > (now.acceptance.counters.draft_share or 0)


def _gain(one: Setting, now: Setting) -> float:
    if one.cost_per_token is not None and now.cost_per_token is not None:
        return now.cost_per_token / one.cost_per_token
    return (one.acceptance.tokens_per_step or 1) / (now.acceptance.tokens_per_step or 1)


def _more_words(evidence: Evidence, better: Setting | None) -> str:
    if better is not None:
        return f". {_range_words(evidence, better)}"
    if evidence.replayed is not None and evidence.replayed.others:
        return ". No other n range does better on these tokens: the text hardly repeats"
    return ""


def _range_words(evidence: Evidence, better: Setting) -> str:
    """What another n range would give on the same tokens."""
    assert evidence.replayed is not None  # noqa: S101  `better` comes from it
    then, now = better.acceptance, evidence.replayed.as_set.acceptance
    cost = "" if better.cost_per_token is None else f", at {better.cost_per_token:.2f} plain steps a token"
    return (
        f"By replay, n-grams of {_lengths(better)} tokens would draft in {share(then.counters.draft_share)} "
        f"of steps instead of {share(now.counters.draft_share)}, with {share(then.counters.acceptance_rate)} "
        f"of it accepted, and give {then.tokens_per_step or 1:.2f} tokens a step instead of "
        f"{now.tokens_per_step or 1:.2f}{cost}"
    )


def _lengths(one: Setting) -> str:
    ends = sorted({n for n in (one.min_n, one.max_n) if n is not None})
    return " to ".join(map(str, ends)) or "any number of"


def _range_command(evidence: Evidence, better: Setting | None) -> tuple[str, str]:
    if better is None:
        return (
            "breakeven replay <baseline-run> --sweep",
            "See which drafter or n range drafts more, and well.",
        )
    return restart_with(evidence, better.k, better.min_n, better.max_n)
