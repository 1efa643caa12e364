"""Readings: all that was read of a server, its log and its runs, before anything is concluded from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.logs.summary import LogSummary
from breakeven.acceptance.page import Page
from breakeven.cost.step import StepCost
from breakeven.diagnose.evidence import Replayed, Replies
from breakeven.diagnose.told import Told
from breakeven.explain.case import Case
from breakeven.explain.records import Observation
from breakeven.trace.run import Run


@dataclass(frozen=True, slots=True)
class Look:
    """A running server's /metrics, read twice."""

    before: Page
    after: Page
    seconds: float
    """Between the two."""
    version: str | None = None
    """Of the engine, as it says."""


@dataclass(frozen=True)
class Readings:
    """What is None was not given."""

    told: Told = field(default_factory=Told)
    engine: str | None = None
    """As the user says; else the sources tell it."""
    version: str | None = None
    baseline: Run | None = None
    candidate: Run | None = None
    """Or the one run that is looked at."""
    look: Look | None = None
    log: LogSummary | None = None
    baseline_log: LogSummary | None = None
    counters: SpecCounters | None = None
    """Of the candidate's requests, where a comparison has chosen them."""
    observations: tuple[Observation, ...] = ()
    case: Case | None = None
    cost: StepCost | None = None
    sequences: int | None = None
    """In each step, as the user says, …"""
    context_tokens: float = 0
    """… and tokens in the cache of each; 0 where nothing was said."""
    acceptance_rate: tuple[float, float] | None = None
    """As the user says, least and most, …"""
    draft_share: tuple[float, float] | None = None
    """… and likewise: for where nothing counts them."""
    replayed: Replayed | None = None
    refused: str | None = None
    """Why the two speeds may not be compared, a sentence."""
    verdict: str = ""
    """What the trial concluded, a sentence; empty where there is none, or it was refused."""
    replies: Replies | None = None
    """What is known of replies that no run keeps."""
    places: Mapping[str, str] = field(default_factory=dict)
    """What was typed of the places in a finding's command, as words of a shell."""
    notes: tuple[str, ...] = ()
    is_cut: bool = False
    """Whether Ctrl-C ended the reading of a log."""
