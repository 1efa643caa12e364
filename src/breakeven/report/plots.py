"""The four plots of the trial page as positions: what is drawn where, and what a reader is told of each mark.

Positions are per cent of the plot's box unless a name says otherwise; the templates draw them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean, median

from breakeven.compare.records import Comparison, PromptSpeedup
from breakeven.interval import Interval
from breakeven.report.svg import Linear, Log, Tick, ecdf_path, padded, padded_ratio
from breakeven.report.text import line
from breakeven.units import change, milliseconds

MAX_FOREST_ROWS = 60
MAX_LABEL = 18
"""Characters that fit beside a plot."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured reply. TPOT in seconds."""

    prompt_id: str
    repeat: int
    block: int
    tpot_s: float


@dataclass(frozen=True, slots=True)
class ForestRow:
    label: str
    category: str
    colour: int
    low: float
    estimate: float
    high: float
    text: str


@dataclass(frozen=True, slots=True)
class Forest:
    """Per-prompt speedups with their intervals, the slowest first, on a log axis."""

    rows: tuple[ForestRow, ...]
    total: ForestRow | None
    ticks: tuple[Tick, ...]
    one: float
    floor_low: float
    floor_high: float
    categories: tuple[tuple[str, int], ...]
    left_out: int


def colours(comparison: Comparison) -> dict[str, int]:
    """A colour number by category, in order of first appearance; eight colours, then again."""
    names = dict.fromkeys(prompt.category for prompt in comparison.prompts)
    return {name: index % 8 for index, name in enumerate(names)}


def forest(comparison: Comparison) -> Forest | None:
    """None where no prompt could be paired."""
    if not comparison.prompts:
        return None
    ordered = sorted(comparison.prompts, key=lambda prompt: prompt.speedup.estimate)
    shown = _extremes(ordered, MAX_FOREST_ROWS)
    floor = (1 / (1 + comparison.floor), 1 + comparison.floor)
    drawn = [prompt.speedup for prompt in shown] + ([comparison.speedup] if comparison.speedup else [])
    ends = [end for speedup in drawn for end in (speedup.low, speedup.high) if end > 0]
    across = Log(*padded_ratio([*ends, *floor]))
    palette = colours(comparison)
    return Forest(
        rows=tuple(_forest_row(prompt, palette[prompt.category], across) for prompt in shown),
        total=_total(comparison, across),
        ticks=tuple(across.ticks()),
        one=across(1.0),
        floor_low=across(floor[0]),
        floor_high=across(floor[1]),
        categories=tuple((line(name, 30), number) for name, number in palette.items()),
        left_out=len(ordered) - len(shown),
    )


def _extremes(ordered: Sequence[PromptSpeedup], limit: int) -> list[PromptSpeedup]:
    if len(ordered) <= limit:
        return list(ordered)
    return [*ordered[: limit // 2], *ordered[-(limit // 2) :]]


def _forest_row(prompt: PromptSpeedup, colour: int, across: Log) -> ForestRow:
    speedup = prompt.speedup
    return ForestRow(
        label=line(prompt.id, MAX_LABEL),
        category=line(prompt.category, MAX_LABEL),
        colour=colour,
        low=across(max(speedup.low, 1e-9)),
        estimate=across(speedup.estimate),
        high=across(speedup.high),
        text=interval_text(speedup) if prompt.pairs > 1 else f"{speedup.estimate:.2f}× (one pair)",
    )


def _total(comparison: Comparison, across: Log) -> ForestRow | None:
    speedup = comparison.speedup
    if speedup is None:
        return None
    text = interval_text(speedup)
    low, estimate, high = (across(max(end, 1e-9)) for end in (speedup.low, speedup.estimate, speedup.high))
    return ForestRow("all prompts", "", 0, low, estimate, high, text)


def interval_text(value: Interval) -> str:
    """`1.08× [1.05, 1.11]`."""
    return f"{value.estimate:.2f}× [{value.low:.2f}, {value.high:.2f}]"


@dataclass(frozen=True, slots=True)
class Strip:
    """One prompt's replies: where each lies on the TPOT axis, by side."""

    label: str
    baseline: tuple[float, ...]
    candidate: tuple[float, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Distribution:
    """TPOT of every reply. The paths are steps in a box of 1000 × 1000."""

    ticks: tuple[Tick, ...]
    strips: tuple[Strip, ...]
    baseline_path: str
    candidate_path: str
    text: str


def distribution(
    comparison: Comparison, baseline: Sequence[Sample], candidate: Sequence[Sample]
) -> Distribution | None:
    """None where a side has no reply with a TPOT."""
    if not baseline or not candidate:
        return None
    sides = [[sample.tpot_s * 1e3 for sample in side] for side in (baseline, candidate)]
    low, high = padded([*sides[0], *sides[1]])
    across = Linear(max(low, 0.0), high)
    prompts = comparison.prompts[:MAX_FOREST_ROWS]
    return Distribution(
        ticks=tuple(across.ticks()),
        strips=tuple(_strip(prompt.id, baseline, candidate, across) for prompt in prompts),
        baseline_path=ecdf_path(sides[0], across),
        candidate_path=ecdf_path(sides[1], across),
        text=f"median TPOT {median(sides[0]):.2f} ms (baseline), {median(sides[1]):.2f} ms (candidate)",
    )


def _strip(prompt_id: str, baseline: Sequence[Sample], candidate: Sequence[Sample], across: Linear) -> Strip:
    values = [[s.tpot_s for s in side if s.prompt_id == prompt_id] for side in (baseline, candidate)]
    medians = [milliseconds(median(side)) if side else "no" for side in values]
    return Strip(
        label=line(prompt_id, MAX_LABEL),
        baseline=tuple(across(value * 1e3) for value in values[0]),
        candidate=tuple(across(value * 1e3) for value in values[1]),
        text=f"{line(prompt_id, 60)}: median {medians[0]} ms (baseline), {medians[1]} ms (candidate)",
    )


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class DriftPlot:
    """TPOT of each block against its side's median, in per cent, in the order they were measured."""

    across: tuple[Tick, ...]
    upward: tuple[Tick, ...]
    baseline: tuple[Dot, ...]
    candidate: tuple[Dot, ...]
    text: str


LEAST_DRIFT_SPAN_PERCENT = 2.0
"""The axis reaches this far up and down at least, so that noise is not drawn as a storm."""


def drift(baseline: Sequence[Sample], candidate: Sequence[Sample]) -> DriftPlot | None:
    """None with a single block, or with blocks that share no prompt."""
    sides = {"baseline": block_tpots(baseline), "candidate": block_tpots(candidate)}
    numbers = sorted({block for blocks in sides.values() for block in blocks})
    if len(numbers) < 2:
        return None
    percents = {name: _against_median(blocks) for name, blocks in sides.items()}
    reach = max(
        LEAST_DRIFT_SPAN_PERCENT, *(abs(value) * 1.1 for side in percents.values() for value in side.values())
    )
    across, up = Linear(numbers[0] - 0.5, numbers[-1] + 0.5), Linear(-reach, reach)
    dots = {name: _dots(name, blocks, percents[name], across, up) for name, blocks in sides.items()}
    return DriftPlot(
        across=tuple(_whole(across)),
        upward=tuple(Tick(tick.value, 100 - tick.position, _signed(tick)) for tick in up.ticks(4)),
        baseline=dots["baseline"],
        candidate=dots["candidate"],
        text="; ".join(_drift_text(name, blocks) for name, blocks in sides.items()),
    )


def _whole(across: Linear) -> list[Tick]:
    ticks = [tick for tick in across.ticks(8) if tick.value.is_integer()]
    return [replace(tick, label=f"{tick.value:.0f}") for tick in ticks]


def _against_median(blocks: dict[int, float]) -> dict[int, float]:
    middle = median(blocks.values()) if blocks else 1.0
    return {block: (value / middle - 1) * 100 for block, value in blocks.items()}


def _signed(tick: Tick) -> str:
    return f"+{tick.label}" if tick.value > 0 else tick.label.replace("-", "−")


def _dots(
    name: str, blocks: dict[int, float], percents: dict[int, float], across: Linear, up: Linear
) -> tuple[Dot, ...]:
    return tuple(
        Dot(
            across(block),
            100 - up(percents[block]),
            f"{name}, block {block}: {milliseconds(value)} ms a token",
        )
        for block, value in blocks.items()
    )


def _drift_text(name: str, blocks: dict[int, float]) -> str:
    values = list(blocks.values())
    if len(values) < 2:
        return f"{name}: fewer than two blocks"
    return f"{name}: {change(values[-1] / values[0])} ms a token from the first block to the last"


def block_tpots(samples: Sequence[Sample]) -> dict[int, float]:
    """Seconds a token by block: the geometric mean over the prompts that every block has."""
    by_block: dict[int, dict[str, list[float]]] = {}
    for sample in samples:
        by_block.setdefault(sample.block, {}).setdefault(sample.prompt_id, []).append(sample.tpot_s)
    if not by_block:
        return {}
    common = set.intersection(*(set(prompts) for prompts in by_block.values()))
    if not common:
        return {}
    return {
        block: geometric_mean([median(prompts[name]) for name in sorted(common)])
        for block, prompts in sorted(by_block.items())
    }
