"""A trained drafter that does not fit its target, or is weaker than it was published to be."""

from __future__ import annotations

from breakeven.diagnose.causes.cause import Cause
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.ratios import has_enough_drafts, is_head, ratio_of
from breakeven.engines.speculation import LEARNED_METHODS
from breakeven.explain.records import Confidence, Finding
from breakeven.forecast.published import published
from breakeven.forecast.records import Published
from breakeven.units import share

MISMATCHED = 1.1
"""Mean acceptance length below which a trained drafter is broken: right at no more than one token in ten, as
one that reads other states, text or ids than it was trained on (1.04 in SpecForge#310)."""
DOUBTFUL = 1.3
"""Below it a mismatch is possible: published lengths are well above (see forecast/published.py)."""
WEAK = 0.8
"""Of the least length published of the same model and window."""
METHODS = {"draft_model": "draft-model", "deepseek_mtp": "mtp"}
"""vLLM's names of methods, as published lengths have them."""


def mismatched_head(evidence: Evidence) -> Finding | None:
    """A trained drafter whose drafts are all but never right."""
    method, length = evidence.drafting.method, ratio_of(evidence, "mean_acceptance_length")
    if not is_head(method) or length is None or length.high >= DOUBTFUL or not has_enough_drafts(evidence):
        return None
    confidence: Confidence = "high" if length.high < MISMATCHED else "medium"
    fits = "does not fit" if confidence == "high" else "may not fit"
    kind, (command, check) = _kind(method), _checks(method)
    return Finding(
        "mismatched_head",
        f"The {kind} {fits} the model it drafts for",
        f"its mean acceptance length is {length.estimate:.2f}, where 1 is a drafter that is never right"
        f"{_first_words(evidence)}. {_lengths_words()}. One that is seldom right often reads other hidden "
        "states, another prompt format, other weights or other ids than those it was trained on",
        confidence,
        command,
        check,
    )


def weaker_head(evidence: Evidence) -> Finding | None:
    """A head that is accepted less than was published of one for the same model and window."""
    length, known = ratio_of(evidence, "mean_acceptance_length"), _published(evidence)
    if length is None or not known or not has_enough_drafts(evidence) or length.high < DOUBTFUL:
        return None
    least = min(known, key=lambda one: one.acceptance_length)
    if length.high >= WEAK * least.acceptance_length:
        return None
    return Finding(
        "weaker_head",
        "The head is accepted less than was published",
        f"its mean acceptance length is {length.estimate:.2f}; the least published of {least.method} for "
        f"{least.model} with a window of {least.k} is {least.acceptance_length:g} ({least.workload}, "
        f"{least.source.split(',')[0]})",
        "low",
        "breakeven measure --url <url> --prompts default",
        "See whether it depends on the prompts: text unlike the head's training data is accepted less.",
    )


CAUSES: tuple[Cause, ...] = (mismatched_head, weaker_head)


def _kind(method: str) -> str:
    if "mtp" in method:
        return "MTP layer"
    return "draft model" if method.replace("_", "-").startswith("draft") else f"{method} head"


def _checks(method: str) -> tuple[str, str]:
    """Command and check, by what each kind of drafter can get wrong."""
    if "mtp" in method:
        return (
            "grep -iE 'mtp|nextn|not (initialized|found)|missing' <candidate-log>",
            "See that the checkpoint has the MTP weights and that its quantisation does not spoil them; "
            "then that requests go through the chat template, and try --enforce-eager once, which rules out "
            "graphs that were captured wrongly.",
        )
    if _kind(method) == "draft model":
        return (
            "diff <target>/tokenizer.json <draft>/tokenizer.json",
            "Both must have the same vocabulary and special tokens; then see that the draft model knows the "
            "target's chat template, and is of the same family and tuning.",
        )
    return (
        "grep -iE 'layer_ids|aux_hidden|draft_vocab|architectures|quant|verifier' <head>/config.json",
        "In this order: layer ids, which frameworks count from different places; the chat "
        "template of training and serving, raw completions included; the quantisation of the target, if the "
        "head was trained on another's states; the vocabulary map (d2t, t2d) of this very tokenizer.",
    )


def _first_words(evidence: Evidence) -> str:
    """What is accepted at the first position, where that is counted."""
    counts = evidence.counters
    if counts is None or not counts.accepted_per_position or not counts.drafts:
        return ""
    first = share(min(counts.accepted_per_position[0] / counts.drafts, 1.0))
    return f", and the first drafted token is accepted in {first} of drafts"


def _lengths_words() -> str:
    """The least length published of any trained drafter, and of which windows that is."""
    known = [one for method in LEARNED_METHODS for one in published(method)]
    least, windows = min(one.acceptance_length for one in known), sorted({one.k for one in known})
    return (
        f"None of the {len(known)} lengths published of such drafters that are known here, with windows of "
        f"{windows[0]} to {windows[-1]}, is below {least:g}"
    )


def _published(evidence: Evidence) -> tuple[Published, ...]:
    """Of the same method, model and window."""
    model = evidence.case.model if evidence.case is not None else None
    if model is None or evidence.drafting.k is None:
        return ()
    method = METHODS.get(evidence.drafting.method, evidence.drafting.method)
    return tuple(
        one
        for one in published(method)
        if one.k == evidence.drafting.k and one.model.lower() == model.lower().rsplit("/", 1)[-1]
    )
