"""One prompt's reply on both sides, read by read: when tokens came, and how many came together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from breakeven.compare.records import PromptSpeedup
from breakeven.latency import request_latency
from breakeven.report.plots import Sample
from breakeven.report.svg import Linear, Tick, bars_path
from breakeven.report.text import line
from breakeven.trace.records import Event, Kind, RequestTrace
from breakeven.units import count, duration

MAX_READS = 400
MAX_TIMELINES = 24
KIND_NAMES = {
    Kind.REASONING: "reasoning",
    Kind.CONTENT: "content",
    Kind.TOOL: "tool call",
    Kind.SILENT: "without text",
}


@dataclass(frozen=True, slots=True)
class Read:
    """Tokens that arrived together, `at_s` after the request was written."""

    at_s: float
    kind: Kind
    """The kind of most of them."""
    tokens: int
    """At least; chunks whose tokens the server does not count are 1 each."""
    exact: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """One side's strokes: a path per kind in a box of 1000 × 1000."""

    side: str
    paths: tuple[tuple[str, str], ...]
    text: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """Both lanes share the time axis and the height of a token."""

    prompt_id: str
    repeat: int
    lanes: tuple[Lane, ...]
    across: tuple[Tick, ...]
    upward: tuple[Tick, ...]
    kinds: tuple[str, ...]
    note: str | None
    """What the strokes do not show, if they do not show all."""


def reads(trace: RequestTrace) -> list[Read]:
    """Token-carrying reads in order; an END chunk counts only where it is known to carry a token."""
    carrying = [event for event in trace.events if event.kind is not Kind.END or event.n_tokens]
    groups: dict[int, list[Event]] = {}
    for event in carrying:
        groups.setdefault(event.read_id, []).append(event)
    exact = _counts_are_exact(trace, carrying)
    return [_read(group, trace.sent_ns, exact) for group in groups.values()]


def _counts_are_exact(trace: RequestTrace, carrying: Sequence[Event]) -> bool:
    """Each chunk's count is known, or the total shows that each without one carries a single token."""
    if all(event.n_tokens is not None for event in carrying):
        return True
    latency = request_latency(trace)
    seen = sum(1 if event.n_tokens is None else event.n_tokens for event in carrying)
    ended = any(event.kind is Kind.END and event.n_tokens is None for event in trace.events)
    counted = latency.tokens_source in ("usage", "token_ids")
    return counted and latency.output_tokens in ({seen, seen + 1} if ended else {seen})


def _read(group: Sequence[Event], sent_ns: int, exact: bool) -> Read:
    by_kind: dict[Kind, int] = {}
    for event in group:
        kind = Kind.SILENT if event.kind is Kind.END else Kind(event.kind)
        by_kind[kind] = by_kind.get(kind, 0) + (1 if event.n_tokens is None else event.n_tokens)
    return Read(
        at_s=(group[0].read_ns - sent_ns) / 1e9,
        kind=max(by_kind, key=lambda kind: by_kind[kind]),
        tokens=sum(by_kind.values()),
        exact=exact or all(event.n_tokens is not None for event in group),
    )


def timelines(
    prompts: Sequence[PromptSpeedup],
    baseline: Mapping[tuple[str, int], RequestTrace],
    candidate: Mapping[tuple[str, int], RequestTrace],
    samples: tuple[Iterable[Sample], Iterable[Sample]],
) -> list[Timeline]:
    """One per prompt, of the pair whose ratio lies nearest to its speedup. Keys are (prompt id, repeat)."""
    tpots = [{(s.prompt_id, s.repeat): s.tpot_s for s in side} for side in samples]
    found = []
    for prompt in prompts[:MAX_TIMELINES]:
        repeat = _typical_repeat(prompt, *tpots)
        if repeat is not None:
            key = (prompt.id, repeat)
            found.append(timeline(baseline[key], candidate[key]))
    return found


def _typical_repeat(
    prompt: PromptSpeedup,
    baseline: Mapping[tuple[str, int], float],
    candidate: Mapping[tuple[str, int], float],
) -> int | None:
    pairs = [key for key in baseline if key[0] == prompt.id and key in candidate and candidate[key] > 0]
    if not pairs:
        return None
    return min(pairs, key=lambda key: abs(baseline[key] / candidate[key] - prompt.speedup.estimate))[1]


def timeline(baseline: RequestTrace, candidate: RequestTrace) -> Timeline:
    """Both replies to one request; at most `MAX_READS` reads of each are drawn."""
    sides = {"baseline": reads(baseline), "candidate": reads(candidate)}
    drawn = {name: side[:MAX_READS] for name, side in sides.items()}
    everything = [read for side in drawn.values() for read in side]
    across = Linear(0.0, max((read.at_s for read in everything), default=0.0) * 1.01 or 1.0)
    up = Linear(0.0, max((float(read.tokens) for read in everything), default=1.0))
    kinds = dict.fromkeys(KIND_NAMES[read.kind] for read in everything)
    return Timeline(
        prompt_id=line(baseline.prompt_id, 60),
        repeat=baseline.repeat,
        lanes=tuple(_lane(name, sides[name], drawn[name], across, up) for name in sides),
        across=tuple(across.ticks()),
        upward=tuple(_whole(up)),
        kinds=tuple(kinds),
        note=_note(sides, drawn),
    )


def _whole(up: Linear) -> list[Tick]:
    ticks = [tick for tick in up.ticks(3) if tick.value.is_integer() and tick.value >= 1]
    return [Tick(tick.value, 100 - tick.position, f"{tick.value:.0f}") for tick in ticks]


def _lane(side: str, every: Sequence[Read], drawn: Sequence[Read], across: Linear, up: Linear) -> Lane:
    paths = []
    for kind, name in KIND_NAMES.items():
        bars = [(read.at_s, float(read.tokens)) for read in drawn if read.kind is kind]
        if bars:
            paths.append((name, bars_path(bars, across, up)))
    return Lane(side, tuple(paths), _lane_text(side, every))


def _lane_text(side: str, every: Sequence[Read]) -> str:
    if not every:
        return f"{side}: no token came"
    tokens, most = sum(read.tokens for read in every), max(read.tokens for read in every)
    least = "" if all(read.exact for read in every) else "at least "
    return (
        f"{side}: {least}{count(tokens, 'token')} in {count(len(every), 'read')}, at most {most} together; "
        f"first after {duration(every[0].at_s)}, last after {duration(every[-1].at_s)}"
    )


def _note(sides: Mapping[str, Sequence[Read]], drawn: Mapping[str, Sequence[Read]]) -> str | None:
    notes = [
        f"the first {MAX_READS} of {len(side):,} reads of the {name} are drawn"
        for name, side in sides.items()
        if len(side) > len(drawn[name])
    ]
    if any(not read.exact for side in drawn.values() for read in side):
        notes.append("the server does not count the tokens of each chunk: a chunk is drawn as one token")
    return "; ".join(notes) or None
