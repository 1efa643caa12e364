"""Evidence: all that is known of speculation on one server, whatever told it. What is None is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.acceptance.logs.summary import LogSummary
from breakeven.acceptance.record import Acceptance
from breakeven.acceptance.stated import Stated
from breakeven.cost.step import StepCost
from breakeven.explain.case import Case
from breakeven.explain.records import Explanation, Observation

GIVEN = "as given"
"""Source of a ratio that the user told."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """How the server was told to draft."""

    method: str = "ngram"
    k: int | None = None
    """The window, most tokens of a draft."""
    min_n: int | None = None
    max_n: int | None = None
    min_left_out: bool = False
    """Whether it is known that `min_n` was not said, and follows from `max_n`."""
    is_assumed: bool = False
    """Whether nothing says the method: `method` is then the most common one."""
    is_off: bool = False
    """Whether the server says that it started without speculation, and nothing was drafted."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the server worked in a window of time, beside what was asked of it there."""

    load: Load
    requests: int | None = None
    """Asked by this tool in that time, warm-up included; None where it asked nothing and only looked."""
    output_tokens: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Replies:
    """What the replies of a run are like."""

    requests: int
    failed: int = 0
    looping: tuple[str, ...] = ()
    """Ids of requests whose reply ends in a loop (see compare/degenerate.py)."""
    checked_for_loops: int = 0
    """Replies whose tokens, or text, are kept."""
    looping_tokens: int = 0
    """Tokens of those loops, …"""
    checked_tokens: int = 0
    """… of all that these replies have."""
    loop_periods: tuple[int, int] | None = None
    """Tokens that are repeated, of the shortest loop and the longest; by characters without ids."""
    count_drafts: bool = False
    """Whether they say what was drafted for them: counts of them leave out those that loop."""
    truncated_in_reasoning: int = 0
    max_tokens: int | None = None
    """The most that was asked for."""
    early_tpot_s: float | None = None
    """TPOT of the first requests, geometric mean, …"""
    late_tpot_s: float | None = None
    """… and of the others, asked the same prompts; None where the run has too few."""
    early_requests: int = 0
    early_same_prompts: bool = True
    """False where no prompt was repeated: the others are those of the same categories then, and both are None
    unless every early request was slower than all of them."""
    longest_gap_s: float | None = None
    """Between two reads of one reply."""
    median_gap_s: float | None = None
    """Median over the replies of the gap that the middle of the reply's decode time falls into: reads that
    follow each other at once, as an accepted draft's tokens do, have no weight in it."""
    stalled: int = 0
    """Replies with a gap that no step explains (see diagnose/replies.py)."""
    client_reasons: tuple[str, ...] = ()
    """Why the run's self-check fails, as it says."""
    prefix_hit_rate: float | None = None
    """Tokens of prompts that were found in the prefix cache / all of them."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a replay of the baseline's tokens gives with one setting."""

    k: int
    min_n: int | None
    max_n: int | None
    acceptance: Acceptance
    cost_per_token: float | None = None
    """Mean step in plain steps / tokens per step: below 1 it pays. None where no cost of a step is known."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the drafter should have given."""

    as_set: Setting
    others: tuple[Setting, ...] = ()
    """Other windows and n ranges, for the findings that say which would be better."""


@dataclass(frozen=True)
class Evidence:
    """Gathered by gather.py; causes only read it."""

    drafting: Drafting = field(default_factory=Drafting)
    engine: str | None = None
    """As runs name it."""
    version: str | None = None
    counters: SpecCounters | None = None
    """The best that there is: of the requests themselves, else of the page, else of the log."""
    stated: tuple[Stated, ...] = ()
    """Every ratio of DEFINITIONS, of the same source."""
    other_sources: tuple[SpecCounters, ...] = ()
    """What other sources counted of the same time."""
    resets: int = 0
    """Counters that fell: the server started anew between two readings, or within the log."""
    ranks: int = 1
    """Engines or data-parallel ranks that the counts are summed over, …"""
    silent_ranks: int = 0
    """… and those of them that report nothing of speculation where others do."""
    baseline_log: LogSummary | None = None
    log: LogSummary | None = None
    """Of the candidate, or of the one server that is looked at."""
    baseline_facts: Mapping[str, str] = field(default_factory=dict)
    """As Dialect.facts tells them from the log's start."""
    facts: Mapping[str, str] = field(default_factory=dict)
    traffic: Traffic | None = None
    baseline_traffic: Traffic | None = None
    replies: Replies | None = None
    baseline_replies: Replies | None = None
    observations: tuple[Observation, ...] = ()
    """Two speeds, where both were measured and may be compared: those of `case`, where there is one."""
    case: Case | None = None
    """Two speeds, and what verifying costs, where both are known."""
    explanation: Explanation | None = None
    """What explain makes of `case`."""
    cost: StepCost | None = None
    sequences: float | None = None
    """In each step, mean."""
    context_tokens: float = 0
    """In the cache of each sequence, mean."""
    replayed: Replayed | None = None
    refused: str | None = None
    """Why two speeds that were measured may not be compared, a sentence."""
    verdict: str = ""
    """What the trial concluded, a sentence; empty without one."""
    places: Mapping[str, str] = field(default_factory=dict)
    """What is known of the places in a finding's command (see explain/places.py), as words of a shell."""
    notes: tuple[str, ...] = ()
    """What qualifies the evidence, each a sentence."""
