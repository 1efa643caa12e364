"""What more tokens in a step wake and send: distinct experts, and AllReduce between devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from breakeven.diagnose.causes.cause import Cause, lifted
from breakeven.diagnose.causes.left_over import suspicion
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.speeds import SLOWER, is_slower
from breakeven.explain.case import Case
from breakeven.explain.explained import ANY, explain_one
from breakeven.explain.records import Confidence, Explained, Finding
from breakeven.explain.waterfall import ALL_REDUCE, EXPERTS
from breakeven.interval import Interval
from breakeven.units import between, shares

MOST_OF_IT = 0.5
"""Of what a step took longer, from which a part is its main cause."""
SOME_OF_IT = 0.1
"""Below it a part is not worth naming."""


def expert_coverage(evidence: Evidence) -> Finding | None:
    """Experts that the tokens of a verify block wake beyond those of one token."""
    found = _part_of(evidence, EXPERTS)
    if found is None:
        return None
    excused = evidence.explanation is not None and any(
        one.id == "distinct_experts" for one in evidence.explanation.ruled_out
    )
    if excused and found.confidence == "low":
        return None
    return _finding(
        "expert_coverage",
        f"Distinct experts explain {found.words} of a slower step",
        f"{found.source}: {found.sentence}",
        found,
        f"breakeven forecast <baseline-run> --ks 1-8 --model <model> --hardware <hardware>{_tp(evidence)}",
        "See which window wakes few enough experts for what is accepted.",
    )


def _tp(evidence: Evidence) -> str:
    """Over several devices, as an option."""
    tp = evidence.case.tp if evidence.case is not None else 1
    return f" --tp {tp}" if tp > 1 else ""


def all_reduce(evidence: Evidence) -> Finding | None:
    """Larger messages between devices at every layer."""
    found = _part_of(evidence, ALL_REDUCE)
    if found is None:
        return None
    return _finding(
        "all_reduce_growth",
        f"AllReduce explains {found.words} of a slower step",
        f"{found.source}: {found.sentence}",
        found,
        "grep -iE 'custom_all_reduce|nccl|p2p' <candidate-log>",
        "See whether a custom AllReduce is switched off, or one is used that is slow at the larger size.",
    )


def slow_all_reduce(evidence: Evidence) -> Finding | None:
    """Of the baseline: no cause of the slowdown, but time to win with or without speculation."""
    if not is_slower(evidence) and suspicion(evidence) != "sure":
        return None
    return lifted(evidence, "slow_all_reduce")


CAUSES: tuple[Cause, ...] = (expert_coverage, all_reduce, slow_all_reduce)


@dataclass(frozen=True, slots=True)
class _Share:
    """Of what steps of slower observations took longer, what one part explains."""

    low: float
    high: float
    added_s: Interval
    longer_s: tuple[float, float]
    source: str

    @classmethod
    def over(cls, each: Sequence[_Share]) -> _Share:
        """From the least of each figure to the most; the source is that of the observation that it explains
        most of."""
        worst, added = max(each, key=lambda one: one.high), [one.added_s for one in each]
        return cls(
            min(one.low for one in each),
            worst.high,
            Interval(worst.added_s.estimate, min(s.low for s in added), max(s.high for s in added)),
            (min(one.longer_s[0] for one in each), max(one.longer_s[1] for one in each)),
            worst.source,
        )

    @property
    def words(self) -> str:
        return shares(self.low, self.high)

    @property
    def sentence(self) -> str:
        added = between(self.added_s.low * 1e3, self.added_s.high * 1e3)
        longer = between(self.longer_s[0] * 1e3, self.longer_s[1] * 1e3)
        return (
            f"+{added} ms in a step that verifies a whole draft. Over all steps that is {self.words} of the "
            f"{longer} ms that a step took longer"
        )

    @property
    def confidence(self) -> Confidence:
        if self.low >= MOST_OF_IT:
            return "high"
        return "medium" if self.high >= MOST_OF_IT else "low"


def _part_of(evidence: Evidence, name: str) -> _Share | None:
    """None where it is not modelled, nothing is slower, or it explains next to nothing."""
    case = evidence.case
    if case is None or case.refused or not case.is_modelled:
        return None
    found = [one for one in _shares(replace(case, measured=None), name) if one.added_s.high > 0]
    if not found:
        return None
    over_all = _Share.over(found)
    return None if over_all.high < SOME_OF_IT else over_all


def _shares(case: Case, name: str) -> Iterator[_Share]:
    for seen in case.observations:
        one = explain_one(case, seen)
        if one.observed_speedup >= SLOWER:
            continue
        for part in one.parts:
            if part.name == name:
                yield _share(case, one, part.added_s, part.source)


def _share(case: Case, one: Explained, added_s: Interval, source: str) -> _Share:
    """f · added / (TPOT · (1 + f·n·a) − T), over the draft shares and acceptance rates that are possible."""
    seen, drafted = one.observation, case.draft_tokens(one.observation)
    (few, many), (low, high) = seen.draft_share or ANY, seen.acceptance_rate or ANY

    def longer(draft_share: float, rate: float) -> float:
        return seen.candidate_tpot_s * (1 + draft_share * drafted * rate) - seen.baseline_tpot_s

    least, most = few * added_s.low / longer(few, high), many * added_s.high / longer(many, low)
    return _Share(min(least, 1.0), min(most, 1.0), added_s, (longer(few, low), longer(many, high)), source)


def _finding(id: str, title: str, evidence: str, found: _Share, command: str, check: str) -> Finding:
    return Finding(
        id, title, evidence, found.confidence, command, check, (found.added_s.low, found.added_s.high)
    )
