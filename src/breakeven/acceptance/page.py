"""Page: one reading of a server's /metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.acceptance.stated import Stated


@dataclass(frozen=True, slots=True)
class Page:
    """Lifetime counts."""

    engine: str
    """As runs name it: vllm, sglang, llama.cpp, tensorrt-llm, tgi."""
    spec: SpecCounters | None
    """None where it holds no counts of speculation; without any count where it speculates and tells none."""
    load: Load
    reported: tuple[Stated, ...] = ()
    """Ratios that the engine gives without their counts, over whatever period it chose: never a run's own
    (sglang#16694)."""
    ranks: int = 1
    """Engines or data-parallel ranks that the counts are summed over."""
    notes: tuple[str, ...] = field(default=())
    """What qualifies the counts, each a sentence, such as a rank that reported none."""
    by_rank: Mapping[str, SpecCounters] = field(default_factory=dict)
    """The parts of `spec`, by engine or rank."""
    silent_ranks: int = 0
    """Ranks that the page names and that give no numbers of speculation, such as null: they are left out."""
    started: str | None = None
    """When the server's process started, by its own clock, as the page writes it; None where it does not."""
