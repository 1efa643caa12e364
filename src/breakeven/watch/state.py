"""ServerState: all that is shown of one watched server at one moment. None is not known."""

from __future__ import annotations

from dataclasses import dataclass, replace

from breakeven.acceptance import counters
from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.page import Page
from breakeven.acceptance.stated import Stated, stated
from breakeven.acceptance.steps import ratios
from breakeven.interval import Interval
from breakeven.watch.pays import Speculation, speculation
from breakeven.watch.window import Counted, Window
from breakeven.watch.yardstick import Yardstick

PER_POSITION = "accepted_per_position"
DEFINITIONS = {
    "speculation_speedup": (
        "tokens per step / the time of a mean step in plain steps of as many sequences, by the calibration: "
        "above 1 speculation pays"
    ),
    "step_ratio": "mean decode step with speculation / plain step of as many sequences, by the calibration",
    **counters.DEFINITIONS,
    PER_POSITION: "drafts with at least so many tokens accepted / all drafts, of the window",
    "drafted_tokens_per_draft": "drafted tokens / drafts, of the window",
    "requests_running": "requests in the batch at the last reading",
    "requests_waiting": "requests that wait for their turn at the last reading",
    "kv_cache_usage": "share of the KV cache in use at the last reading, of the fullest engine",
    "output_tokens_per_second": "output tokens counted in the window / its seconds",
}
"""Of every number that is shown, exported or printed as JSON."""

INTERVAL = (
    "over the calibration's 95 %, what is not known of drafting's own time, the bounds of the draft share "
    "and the readings"
)
"""What the interval of the speedup holds."""


@dataclass(frozen=True, slots=True)
class Now:
    """What the last reading and the window say."""

    engine: str
    """As runs name it."""
    ratios: tuple[Stated, ...]
    """Every ratio of acceptance.counters.DEFINITIONS."""
    speculation: Speculation
    seconds: float | None = None
    """That the window covers; None before the second reading."""
    counters: SpecCounters | None = None
    per_position: tuple[float, ...] | None = None
    """Of the drafts, those with at least 1, 2, … tokens accepted."""
    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None
    output_tokens_per_s: float | None = None
    notes: tuple[str, ...] = ()
    """What qualifies the counts, each a sentence."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """One server."""

    url: str
    model: str | None = None
    now: Now | None = None
    """None while it cannot be read."""
    problem: str = ""
    """Why it cannot; empty where it can."""
    read_at: float | None = None
    """Of the last page, in seconds since 1970."""
    resets: int = 0
    """How often its counters fell, since the watch began: it started anew."""


def now(window: Window, page: Page, yardstick: Yardstick | None, model: str | None) -> Now:
    """Of a window whose last reading is `page`."""
    counted = window.counted()
    load = page.load
    found = Now(
        engine=page.engine,
        ratios=_ratios(page, counted),
        speculation=speculation(counted, yardstick, page.engine, model),
        running=load.running,
        waiting=load.waiting,
        kv_usage=load.kv_usage,
        notes=page.notes,
    )
    return found if counted is None else _with_counts(found, counted)


def _with_counts(found: Now, counted: Counted) -> Now:
    tokens = counted.load.output_tokens
    return replace(
        found,
        seconds=counted.seconds,
        counters=counted.counters,
        per_position=_per_position(counted.counters),
        output_tokens_per_s=None if tokens is None or not counted.seconds else tokens / counted.seconds,
    )


def _per_position(found: SpecCounters | None) -> tuple[float, ...] | None:
    if found is None or not found.drafts or not found.accepted_per_position:
        return None
    if max(found.accepted_per_position) > found.drafts:
        return None
    return tuple(count / found.drafts for count in found.accepted_per_position)


def _ratios(page: Page, counted: Counted | None) -> tuple[Stated, ...]:
    """Of the window's counts; else as the engine reports them over a time of its own; else why not."""
    counts = None if counted is None else counted.counters
    if counted is not None and counts is not None:
        made = ratios(counts, counted.load)
    else:
        made = tuple(replace(one, why=_why(page, counted)) for one in stated(SpecCounters()))
    reported = {one.name: one for one in page.reported if one.value is not None}
    return tuple(one if one.value is not None else reported.get(one.name, one) for one in made)


def _why(page: Page, counted: Counted | None) -> str:
    if counted is None:
        return "not derivable: one reading so far"
    if page.spec is None:
        return "not derivable: the page counts nothing of speculation"
    return "not derivable: the counts of this window contradict each other, or began in it"


def value(state: ServerState, name: str) -> Interval | None:
    """One number of DEFINITIONS, but PER_POSITION; None where it is not known."""
    found = state.now
    if found is None:
        return None
    if name in counters.DEFINITIONS:
        return next(one.value for one in found.ratios if one.name == name)
    spec = found.speculation
    known = {
        "speculation_speedup": spec.speedup,
        "step_ratio": spec.step_ratio,
        "drafted_tokens_per_draft": spec.drafted_per_draft,
        "requests_running": found.running,
        "requests_waiting": found.waiting,
        "kv_cache_usage": found.kv_usage,
        "output_tokens_per_second": found.output_tokens_per_s,
    }[name]
    return Interval(known, known, known) if isinstance(known, float | int) else known
