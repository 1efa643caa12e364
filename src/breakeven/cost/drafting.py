"""What speculation costs beside the target's step: the drafter's time, and the handling of drafts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from breakeven.interval import Interval


@dataclass(frozen=True, slots=True)
class DraftingCost:
    """Seconds that speculation adds to a step, whatever the target model takes."""

    step_s: Interval
    """Of every step once speculation is on, drafted or not."""
    drafted_step_s: Interval
    """Besides, of a step in which some sequence verifies a draft."""
    token_s: Interval
    """Of the drafter, for each token of a draft: made one after another, for all sequences at once."""
    source: str
    """Where the figures come from, in a sentence."""

    def with_given(self, flat_s: float | None = None, token_s: float | None = None) -> DraftingCost:
        """With seconds that somebody knows. A flat cost is all of it: drafted steps have none besides."""
        found = self
        if flat_s is not None:
            given, said = _exactly(flat_s), f"{flat_s * 1e3:g} ms for every step, as given"
            found = replace(found, step_s=given, drafted_step_s=_NOTHING, source=f"{said}; {found.source}")
        if token_s is not None:
            said = f"{token_s * 1e3:g} ms for each drafted token, as given"
            found = replace(found, token_s=_exactly(token_s), source=f"{said}; {found.source}")
        return found


def _exactly(seconds: float) -> Interval:
    return Interval(seconds, seconds, seconds)


@dataclass(frozen=True, slots=True)
class FittedHead:
    """A learned drafter's own time, fitted to published speedups by benchmarks/published.py."""

    engine: str
    """As runs name it, …"""
    published_engine: str
    """… and as the file of published speedups does."""
    method: str
    ms_per_token: float


FITTED_HEADS = (
    FittedHead("vllm", "vLLM V1", "eagle", 0.741),
    FittedHead("vllm", "vLLM V1", "eagle3", 1.188),
    FittedHead("vllm", "vLLM 0.11.2", "eagle3", 0.137),
    FittedHead("sglang", "SGLang", "eagle3", 0.725),
)
"""All that there are: benchmarks/results/published.json, drafter_ms_per_token."""

_NOTHING = _exactly(0.0)
FLAT_S = Interval(0.5e-3, 0.0, 1.3e-3)
"""Of a drafted step whatever its window: rejection sampling, and preparing the input of two models. The step
times of vllm#20780 are linear in the window and start 0.6 and 1.3 ms above the plain step. Chosen with sight
of the same published speedups, together with which FITTED_HEADS hold."""
LOOKUP_S = Interval(0.043e-3, 0.0, 0.11e-3)
"""Of looking drafts up, a step: vLLM's n-gram drafter takes 0.6 % of the verification (arXiv 2601.11580), by
the step times of the same paper of 7.1 ms for few tokens and 17.8 ms for 512."""
_LOOKUPS = ("ngram", "n-gram", "suffix", "lookup", "lookahead", "pld")
"""In the name of a drafter that finds its drafts in text and asks no model."""
_OWN, _LLAMACPP = "own", "llama.cpp"
"""The engine of a drafter that a user wrote, and one whose lookups are compiled."""


def is_lookup(method: str) -> bool:
    """Whether drafts are found in text, by no model. `method` is as drafting_cost takes it."""
    return any(word in method.lower() for word in _LOOKUPS)


def drafting_cost(engine: str | None, method: str) -> DraftingCost:
    """For an engine as a run names it, and a drafter's name (`vllm-ngram`) or method (`eagle3`, `mtp`).

    Any other name is taken for a learned drafter's. Of engines without figures the others' are taken.
    """
    engine, method = (engine or "").lower(), method.lower()
    if method == "oracle":
        return DraftingCost(_NOTHING, _NOTHING, _NOTHING, "drafting costs nothing: an upper bound")
    if is_lookup(method):
        return _llamacpp() if engine == _LLAMACPP else _lookup(engine)
    if engine == _OWN:
        return _own()
    return _head(engine, "eagle3" if method == "recorded" else method)


def _lookup(engine: str) -> DraftingCost:
    source = (
        "lookup: 0.6 % of a verification, as vLLM's n-gram takes (arXiv 2601.11580); handling of a draft: "
        "step times of vllm#20780; what an engine loses that stops overlapping its scheduling is not known"
    )
    return DraftingCost(LOOKUP_S, FLAT_S, _NOTHING, source + _borrowed(engine))


def _llamacpp() -> DraftingCost:
    """No worse than what vLLM, which does this in Python, is taken to need: an assumption."""
    source = "nothing is known of llama.cpp's own time for drafts: 0 is taken, and at most what vLLM takes"
    step_s, drafted_step_s = (Interval(0.0, 0.0, vllm.estimate) for vllm in (LOOKUP_S, FLAT_S))
    return DraftingCost(step_s, drafted_step_s, _NOTHING, source)


def _own() -> DraftingCost:
    slowest_s = max(head.ms_per_token for head in FITTED_HEADS) * 1e-3
    source = (
        "nothing is known of the drafter's own time: 0 is taken, and at most that of the slowest published "
        "head; handling of a draft: step times of vllm#20780"
    )
    return DraftingCost(LOOKUP_S, FLAT_S, Interval(0.0, 0.0, slowest_s), source)


def _head(engine: str, method: str) -> DraftingCost:
    """The median of the fits that are nearest, within all fits: two of one method on one engine differ
    ninefold, with the head's size, the device and the version."""
    all_ms = [head.ms_per_token for head in FITTED_HEADS]
    same_method = [head for head in FITTED_HEADS if head.method == method]
    same_engine = [head for head in same_method if head.engine == engine]
    nearest = same_engine or same_method or FITTED_HEADS
    names = ", ".join(f"{head.published_engine} {head.method}" for head in nearest)
    token_s = Interval(*(1e-3 * ms for ms in (_median_ms(nearest), min(all_ms), max(all_ms))))
    wanting = "" if same_method else f", for want of a figure of {method}"
    source = f"fitted to published speedups (median of {names}{wanting}); handling of a draft: vllm#20780"
    return DraftingCost(_NOTHING, FLAT_S, token_s, source)


def _median_ms(heads: Sequence[FittedHead]) -> float:
    return median(head.ms_per_token for head in heads)


def _borrowed(engine: str) -> str:
    return "" if engine == "vllm" else "; figures of vLLM, as there are none of this engine"
