"""The per-prompt table's figures, once, so that terminal and page say the same."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import geometric_mean

from breakeven.acceptance.counters import SpecCounters
from breakeven.compare.records import Comparison, Drift, Lossless, PromptSpeedup, Verdict
from breakeven.interval import Interval
from breakeven.report.plain import acceptance_json
from breakeven.report.text import line, lines
from breakeven.trial.result import TrialResult
from breakeven.units import ABSENT, change, count, milliseconds, rate, share

HEADLINES = {
    "faster": "Faster",
    "slower": "Slower",
    "same": "Same",
    "undecided": "Undecided",
    "refused": "No verdict",
}


@dataclass(frozen=True, slots=True)
class Absent:
    """A figure that is not there: what stands in its place, and why."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, formatted. Speeds in tokens a second."""

    prompt: str
    category: str
    baseline_tpot: str
    candidate_tpot: str
    """Milliseconds."""
    baseline: str
    candidate: str
    change: str
    interval: str
    acceptance: str | Absent
    draft_share: str | Absent
    sign: int
    """1 if the whole interval is above 1, −1 if it is below, else 0."""


def rows(result: TrialResult) -> list[Row]:
    """One per paired prompt, in the workload's order."""
    by_prompt = result.candidate.acceptance_by_prompt
    return [_row(prompt, by_prompt.get(prompt.id)) for prompt in result.comparison.prompts]


def total(result: TrialResult) -> Row | None:
    """Geometric means over the prompts; acceptance over all requests. None when nothing was paired."""
    comparison = result.comparison
    if comparison.speedup is None or not comparison.prompts:
        return None
    acceptance, draft_share = _ratios(result.candidate.acceptance)
    tpots = mean_tpots_s(comparison)
    return Row(
        prompt="geometric mean",
        category="",
        baseline_tpot=milliseconds(tpots[0]),
        candidate_tpot=milliseconds(tpots[1]),
        baseline=rate(1 / tpots[0]),
        candidate=rate(1 / tpots[1]),
        change=change(comparison.speedup.estimate),
        interval=interval(comparison.speedup),
        acceptance=acceptance,
        draft_share=draft_share,
        sign=sign(comparison.speedup),
    )


def mean_tpots_s(comparison: Comparison) -> tuple[float, float]:
    """The geometric mean over prompts of each side's TPOT; there must be a prompt."""
    return (
        geometric_mean([prompt.baseline_tpot_s for prompt in comparison.prompts]),
        geometric_mean([prompt.candidate_tpot_s for prompt in comparison.prompts]),
    )


def _row(prompt: PromptSpeedup, counters: SpecCounters | None) -> Row:
    acceptance, draft_share = _ratios(counters)
    single = prompt.pairs < 2
    return Row(
        prompt=line(prompt.id, 60),
        category=line(prompt.category, 30),
        baseline_tpot=milliseconds(prompt.baseline_tpot_s),
        candidate_tpot=milliseconds(prompt.candidate_tpot_s),
        baseline=rate(1 / prompt.baseline_tpot_s),
        candidate=rate(1 / prompt.candidate_tpot_s),
        change=change(prompt.speedup.estimate),
        interval="one pair" if single else interval(prompt.speedup),
        acceptance=acceptance,
        draft_share=draft_share,
        sign=0 if single else sign(prompt.speedup),
    )


def _ratios(counters: SpecCounters | None) -> tuple[str | Absent, str | Absent]:
    values = acceptance_json(counters)
    absent = values["absent"]
    acceptance, drafted = values["acceptance_rate"], values["draft_share"]
    return (
        Absent(ABSENT, absent["acceptance_rate"]) if acceptance is None else share(acceptance),
        Absent("unknown", absent["draft_share"]) if drafted is None else share(drafted),
    )


def interval(value: Interval) -> str:
    """`[+5.1, +11.2]`, in per cent as the change beside it."""
    return f"[{_bare(value.low)}, {_bare(value.high)}]"


def _bare(value: float) -> str:
    return change(value).removesuffix(" %")


def sign(value: Interval) -> int:
    """1 if the whole interval is above 1, −1 if it is below, else 0."""
    return 1 if value.low > 1 else -1 if value.high < 1 else 0


def absences(table: list[Row]) -> list[str]:
    """Why figures of the table are missing, each reason once: `draft share: … does not count drafts`."""
    found: dict[str, None] = {}
    for row in table:
        for name, cell in (("acceptance", row.acceptance), ("draft share", row.draft_share)):
            if isinstance(cell, Absent):
                found[f"{name}: {line(cell.why, 300)}"] = None
    return list(found)


def headline(verdict: Verdict, speedup: Interval | None) -> str:
    """The verdict at a glance: `Slower: decode speed −14.3 %`."""
    word = HEADLINES[verdict.outcome]
    return word if speedup is None else f"{word}: decode speed {change(speedup.estimate)}"


def verdict_sentence(verdict: Verdict) -> str:
    """The verdict's reason, which begins with its word; the lines of a log in it stay lines."""
    word = HEADLINES[verdict.outcome]
    reason = lines(verdict.reason, 1500)
    return reason if reason.startswith(word) else f"{word}: {reason}"


def lossless_sentence(lossless: Lossless) -> str:
    """Whether greedy replies are the same on both sides."""
    if not lossless.compared:
        return (
            f"Replies were not compared: {line(lossless.reason or 'no two replies could be compared', 300)}."
        )
    said = f"Greedy replies identical in {lossless.identical} of {lossless.compared}"
    first = lossless.first_divergence
    if first is None:
        return f"{said}."
    where = f"{line(first.prompt_id, 60)}, repeat {first.repeat}"
    return f"{said}; first difference at {first.unit} {first.position} of {where}."


def stopped_sentence(result: TrialResult) -> str:
    """When the trial ended, and why."""
    repeats = count(result.stopped_after, "repeat")
    if result.left_out:
        return (
            f"Stopped: {line(result.stop_reason, 300)}. Compared: {repeats} of every prompt on each side; "
            f"left out: {count(result.left_out, 'repeat')}."
        )
    return f"Stopped after {repeats} of every prompt on each side: {line(result.stop_reason, 300)}."


def drift_sentence(drift: Drift) -> str:
    """How much the machine changed while the trial ran."""
    if drift.ratio is None:
        return "Drift unknown: fewer than two baseline blocks, or too few prompts in them"
    ends = f"{change(drift.ratio.estimate)} {interval(drift.ratio)}"
    return f"The baseline's own speed changed by {ends} from its first block to its last"
