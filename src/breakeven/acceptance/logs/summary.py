"""LogSummary: what the lines of an engine's log say of speculation, taken together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.stated import Stated
from breakeven.interval import Interval


@dataclass(frozen=True, slots=True)
class LogPeriod:
    """One line, or one report of several ranks at one time: what was counted since the one before."""

    at: str | None
    """The time as the line gives it."""
    counters: SpecCounters
    """`drafts` is known where only one whole number fits all that the line rounds."""
    reported: Mapping[str, float] = field(default_factory=dict)
    """Ratios as printed, by the keys of DEFINITIONS, where the engine defines them so."""


@dataclass(frozen=True, slots=True)
class LogStatus:
    """What the lines say of the work itself. Ranks of one time are added up. None is unknown."""

    times: int
    """Times at which the log tells the state."""
    mean_running: float | None = None
    """Requests in the batch, over those times."""
    most_waiting: int | None = None
    most_kv_usage: float | None = None
    """Share of the KV cache in use, 0 to 1, in the fullest rank."""
    prefix_hit_rate: float | None = None
    """Of prompt tokens, 0 to 1, as the log last tells it (vLLM), or over all its prefills (SGLang)."""
    mean_output_tokens_s: float | None = None
    """Generation throughput, over the times at which it is above 0."""


@dataclass(frozen=True, slots=True)
class LogDeath:
    """The last time that the server died while it served. Of a start that failed, `facts` tell."""

    times: int
    """How many lives of the server ended so, within the log."""
    line: str
    """The first that tells of it, made safe to print."""
    at: str | None
    """Its time as it gives it, …"""
    seen: str | None
    """… and the last time before it that a line gives."""
    lines: tuple[str, ...]
    """Those around it, plain text: the reason is in them, where the log has it."""
    goes_on: bool
    """Whether the server started anew after it."""


@dataclass(frozen=True, slots=True)
class LogSummary:
    """Sums over all periods."""

    engine: str | None
    """As runs name it; None where no line is of an engine that is known."""
    format: str
    """Which of the engine's formats the lines have, in words, such as `vLLM 0.9`; empty for none."""
    lines: int
    periods: int
    counters: SpecCounters | None
    """None where no line counts anything."""
    stated: tuple[Stated, ...]
    """Every ratio of DEFINITIONS: from the counts, else with bounds from what is printed, else why not."""
    first: LogPeriod | None
    last: LogPeriod | None
    facts: tuple[str, ...]
    """Lines of the last start, kept for Dialect.facts: plain text, each at most 500 characters, 2,000 at
    most."""
    events: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """By event (see EVENTS in lines.py: preemption, compile, out_of_memory, …): how many lines tell it,
    and the first of them, made safe to print."""
    resets: int = 0
    """How often a running total fell, or the server started anew within the log."""
    notes: tuple[str, ...] = ()
    """What qualifies the sums, each a sentence."""
    positions: tuple[Interval, ...] = ()
    """By position, the share of drafts of which at least so many tokens were accepted; bounds as the lines
    round. Empty where they do not tell it."""
    status: LogStatus | None = None
    """None where no line tells the state."""
    drafters: tuple[str, ...] = ()
    """As llama.cpp's lines name them, such as draft-eagle3; the one that drafted most tokens is first."""
    window: int | None = None
    """Tokens of each draft, where the lines say it (vLLM V0), or it follows from what they print (SGLang)."""
    death: LogDeath | None = None
    """None where no server died while it served, as far as the log tells."""
