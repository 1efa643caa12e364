"""What an explanation holds: a step in parts, what drafting should have given, and what is left over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Literal

from breakeven.interval import Interval

Confidence = Literal["high", "medium", "low"]
ORDER: tuple[Confidence, ...] = ("high", "medium", "low")


@dataclass(frozen=True, slots=True)
class Observation:
    """One prompt, or set of prompts, that was measured with and without speculation."""

    name: str
    baseline_tpot_s: float
    candidate_tpot_s: float
    acceptance_rate: tuple[float, float] | None = None
    """Accepted / drafted, at least and at most; equal where it is known. None is unknown: 0 to 1."""
    draft_share: tuple[float, float] | None = None
    """Steps that drafted / steps, likewise."""
    draft_tokens: float | None = None
    """Mean tokens of a draft; None where it is not counted: every draft is taken to have the window's k."""
    tokens_per_step: float | None = None
    """Emitted tokens / decode steps; None where they are not counted."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a step: weights, experts, kv, arithmetic, all_reduce, overhead, or the rest."""

    name: str
    baseline_s: float
    """Of a plain step."""
    added_s: Interval
    """By verifying k drafted tokens: low and high over what is not known of this part."""
    source: str = ""
    """Where both figures come from, in a phrase."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What drafting should have given, at one share of drafted steps."""

    draft_share: float
    speedup: Interval
    """Low and high over the acceptance rates and costs that are possible."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One observation, taken apart. Its own plain step is the anchor."""

    observation: Observation
    parts: tuple[Part, ...]
    verify_s: Interval
    """What verifying k drafted tokens adds to a plain step: the sum of the parts."""
    predictions: tuple[Prediction, ...]
    observed_speedup: float
    unexplained_s: tuple[float, float]
    """Per step, at least and at most over what is not known. Above 0: a step took longer than explained."""
    unexplained_at_least_when: str
    """What the least assumes, such as that nothing was ever drafted."""
    break_even_verify: tuple[float, float] | None
    """verify_s / plain step at which a drafted step neither gains nor loses: k · acceptance rate. None where
    the acceptance is not known."""

    @property
    def outcome(self) -> Literal["faster", "slower", "either", "none"]:
        """What is predicted at every draft share above 0; `none` where none is possible."""
        drafting = [one.speedup for one in self.predictions if one.draft_share > 0]
        if not drafting:
            return "none"
        if all(speedup.low > 1 for speedup in drafting):
            return "faster"
        return "slower" if all(speedup.high < 1 for speedup in drafting) else "either"

    @property
    def against_model(self) -> Literal["faster", "slower", "within"]:
        """What was observed beside all that the model allows: steps took less time than the cheapest that is
        possible, more than the dearest, or neither."""
        least, most = self.unexplained_s
        if least > 0:
            return "slower"
        return "faster" if most < 0 else "within"


def mean_parts(explained: Sequence[Explained]) -> tuple[Part, ...]:
    """The waterfall of the mean plain step of several observations, part by part."""
    columns = zip(*(one.parts for one in explained), strict=True)
    return tuple(
        Part(
            parts[0].name,
            mean([part.baseline_s for part in parts]),
            Interval(
                mean([part.added_s.estimate for part in parts]),
                min(part.added_s.low for part in parts),
                max(part.added_s.high for part in parts),
            ),
            parts[0].source,
        )
        for parts in columns
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """A possible cause, with its evidence and what to check."""

    id: str
    title: str
    evidence: str
    confidence: Confidence
    next_command: str
    """What to type to settle it; empty where nothing need be typed."""
    check: str
    """What to look for in what that says, a sentence."""
    step_s: tuple[float, float] | None = None
    """Seconds of a step that it can take, at least and at most; None where no model tells."""


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By confidence, then by the seconds of a step that they can explain; equal ones stay in their order."""
    return tuple(
        sorted(findings, key=lambda one: (ORDER.index(one.confidence), -(one.step_s or (0.0, 0.0))[1]))
    )


@dataclass(frozen=True, slots=True)
class Explanation:
    """Findings are ranked, most telling first."""

    model: str | None
    hardware: str | None
    """None, as `model`, where a calibration alone tells the cost of a step."""
    k: int
    method: str
    engine: str | None
    explained: tuple[Explained, ...]
    ruled_out: tuple[Finding, ...]
    """Explanations that the arithmetic does not bear out, with the figures."""
    findings: tuple[Finding, ...]
    unknown: Mapping[str, str] = field(default_factory=dict)
    """By input that is not known: which measurement would settle it."""
    warnings: tuple[str, ...] = ()
    refused: str | None = None
    """Why nothing is concluded from the two speeds, a sentence; there are no findings then."""

    @property
    def waterfall(self) -> tuple[Part, ...]:
        """Of the mean plain step of all observations."""
        return mean_parts(self.explained)
