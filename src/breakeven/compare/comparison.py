"""Two runs → Comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from breakeven.compare.bootstrap import Array, interval
from breakeven.compare.divergence import lossless
from breakeven.compare.drift import drift
from breakeven.compare.pairs import Pairs, Replies, complete_repeats, pair, replies
from breakeven.compare.quality import side_quality
from breakeven.compare.records import Comparison, Drift, Lossless, PromptSpeedup, SideQuality
from breakeven.compare.within import PairNoise, pair_noise, within_interval
from breakeven.errors import UsageError
from breakeven.interval import Interval
from breakeven.trace.records import RequestTrace
from breakeven.units import change, count, share

FLOOR = 0.02
CONFIDENCE = 0.95


def compare_traces(
    baseline: Iterable[RequestTrace],
    candidate: Iterable[RequestTrace],
    *,
    temperature: float | None,
    floor: float = FLOOR,
    confidence: float = CONFIDENCE,
    alpha: float | None = None,
    seed: int = 0,
) -> Comparison:
    """Pair two runs by prompt and repeat and combine the ratios of their TPOTs.

    Each pair gives log(baseline TPOT / candidate TPOT); a prompt's is the mean over its repeats, the
    speedup the mean over prompts, as a ratio again: the geometric mean. Replies may differ in length, as
    TPOT is per token. `temperature` is what was asked for (None: the server's default). `alpha` overrides 1
    − confidence at one look of a sequential rule. Raises UsageError for a level or floor out of range, and
    for a request held twice.
    """
    alpha = _checked(floor, confidence, alpha)
    sides = replies(baseline, "baseline"), replies(candidate, "candidate")
    pairs = pair(*sides)
    quality = side_quality(sides[0]), side_quality(sides[1])
    drifted = drift(sides[0], floor, alpha, seed)
    same = lossless(*sides, temperature)
    noise = pair_noise(pairs.log_ratios) if pairs.prompt_ids else PairNoise(0.0, 0)
    return Comparison(
        speedup=interval(pairs.log_ratios, alpha, seed) if pairs.prompt_ids else None,
        confidence=1 - alpha,
        floor=floor,
        prompts=_prompts(pairs, noise, alpha),
        by_category=_by_category(pairs, noise, alpha),
        repeats=complete_repeats(*sides),
        baseline=quality[0],
        candidate=quality[1],
        lossless=same,
        drift=drifted,
        warnings=tuple(_warnings(sides, pairs, quality, drifted, same, floor)),
    )


def _checked(floor: float, confidence: float, alpha: float | None) -> float:
    if not 0 <= floor < 1:
        raise UsageError(f"--floor {floor:g} is out of range: a share from 0 to below 1, such as 0.02")
    level = 1 - confidence if alpha is None else alpha
    if not 0 < level < 0.5:
        raise UsageError(f"--confidence {1 - level:g} is out of range: between 0.5 and 1, such as 0.95")
    return level


def _prompts(pairs: Pairs, noise: PairNoise, alpha: float) -> tuple[PromptSpeedup, ...]:
    log_ratios = pairs.log_ratios
    return tuple(
        PromptSpeedup(
            prompt_id,
            pairs.categories[row],
            geometric_mean(pairs.baseline_tpot_s[row]),
            geometric_mean(pairs.candidate_tpot_s[row]),
            within_interval(log_ratios[row : row + 1], noise, alpha),
            pairs.counts[row],
        )
        for row, prompt_id in enumerate(pairs.prompt_ids)
    )


def geometric_mean(values: Array) -> float:
    """Of the values that are there (not NaN); there must be one."""
    return float(np.exp(np.nanmean(np.log(values))))


def _by_category(pairs: Pairs, noise: PairNoise, alpha: float) -> dict[str, Interval]:
    log_ratios, categories = pairs.log_ratios, np.array(pairs.categories)
    return {
        category: within_interval(log_ratios[categories == category], noise, alpha)
        for category in dict.fromkeys(pairs.categories)
    }


def _warnings(
    sides: tuple[Replies, Replies],
    pairs: Pairs,
    quality: tuple[SideQuality, SideQuality],
    drifted: Drift,
    same: Lossless,
    floor: float,
) -> Iterator[str]:
    """Sentences, each with its evidence."""
    for name, side, answers in zip(("baseline", "candidate"), quality, sides, strict=True):
        yield from _quality_warnings(name, side, answers)
    yield from _unmatched(*sides)
    if loose := sum(_loose(side, floor) for side in sides):
        yield (
            f"{count(loose, 'TPOT')} known only to within bounds wider than the floor of {share(floor)}: "
            "the tokens in the first read are not known; ask for token ids or usage per chunk"
        )
    if len(pairs.prompt_ids) == 1:
        yield f"one prompt: the interval speaks for {pairs.prompt_ids[0]} only"
    if len(pairs.prompt_ids) > 1 and pairs.log_ratios.shape[1] == 1:
        yield "one repeat: a busy spell of the machine cannot be told from a difference between the sides"
    if drifted.significant and drifted.ratio is not None:
        yield f"the machine drifted: the baseline's speed went by {change(drifted.ratio.estimate)}"
    if same.first_divergence is not None:
        differ, first = same.compared - same.identical, same.first_divergence
        yield (
            f"greedy replies differ in {differ} of {count(same.compared, 'pair')}, the earliest at "
            f"{first.unit} {first.position} of {first.prompt_id}: speeds are compared per token"
        )


def _unmatched(baseline: Replies, candidate: Replies) -> Iterator[str]:
    """Requests that only one side was asked, as where one of two runs was cut short."""
    for name, side, other in (("baseline", baseline, candidate), ("candidate", candidate, baseline)):
        alone = len(side.keys() - other.keys())
        if alone and other:
            of = count(len(side), "request")
            yield f"{name}: {alone} of {of} were not asked of the other side: they are left out"


def _quality_warnings(name: str, side: SideQuality, answers: Replies) -> Iterator[str]:
    of = f"of {count(side.requests, 'request')}"
    if side.errors:
        why = next(reply.trace.error.message for reply in answers.values() if reply.trace.error)
        yield f"{name}: {side.errors} {of} failed, the first of them because: {why}"
    if side.truncated_in_reasoning:
        part = share(side.truncated_in_reasoning / side.requests)
        yield f"{name}: {side.truncated_in_reasoning} {of} ({part}) ended inside reasoning, at max_tokens"
    if side.degenerate:
        yield f"{name}: {side.degenerate} {of} end in a short loop: their acceptance is not that of real text"
    if side.without_tpot:
        yield f"{name}: {side.without_tpot} {of} have no TPOT and are left out"


def _loose(side: Replies, floor: float) -> int:
    """Replies whose TPOT has bounds further apart than the floor."""
    bounds = [
        (reply.latency.tpot_low_s, reply.latency.tpot_high_s) for reply in side.values() if reply.tpot_s
    ]
    return sum(bool(low and high and high / low > 1 + floor) for low, high in bounds)
