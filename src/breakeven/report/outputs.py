"""Replies to one request that differ between the sides, cut around the first difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

from breakeven.report.text import clean, line
from breakeven.trace.records import RequestTrace

MAX_OUTPUTS = 8
BEFORE_CHARACTERS = 240
AFTER_CHARACTERS = 700


@dataclass(frozen=True, slots=True)
class Output:
    """One side's reply: what both share before the difference, and what this side says from there on."""

    side: str
    shared: str
    own: str
    cut_before: bool
    cut_after: bool


@dataclass(frozen=True, slots=True)
class Diverged:
    prompt_id: str
    repeat: int
    part: str
    """`reasoning`, `content` or `tool calls`: the first part that differs."""
    position: int
    """Characters of that part, counted from 0."""
    outputs: tuple[Output, Output]


def diverged(
    baseline: Mapping[tuple[str, int], RequestTrace], candidate: Mapping[tuple[str, int], RequestTrace]
) -> list[Diverged]:
    """The first differing repeat of each prompt, at most `MAX_OUTPUTS`; failed requests are left out."""
    found: dict[str, Diverged] = {}
    for key in sorted(baseline.keys() & candidate.keys(), key=lambda key: key[1]):
        if key[0] in found or baseline[key].error or candidate[key].error:
            continue
        difference = difference_of(baseline[key], candidate[key])
        if difference is not None:
            found[key[0]] = difference
        if len(found) == MAX_OUTPUTS:
            break
    return list(found.values())


def difference_of(baseline: RequestTrace, candidate: RequestTrace) -> Diverged | None:
    """None where the two replies are the same."""
    for part, attribute in (("reasoning", "reasoning"), ("content", "text"), ("tool calls", "tool_calls")):
        a, b = getattr(baseline, attribute), getattr(candidate, attribute)
        if a != b:
            position = shared_length(a, b)
            outputs = (_output("baseline", a, position), _output("candidate", b, position))
            return Diverged(line(baseline.prompt_id, 60), baseline.repeat, part, position, outputs)
    return None


def shared_length(a: str, b: str) -> int:
    """Characters that both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _output(side: str, text: str, position: int) -> Output:
    start, end = max(0, position - BEFORE_CHARACTERS), position + AFTER_CHARACTERS
    return Output(
        side=side,
        shared=clean(text[start:position]),
        own=clean(text[position:end]),
        cut_before=start > 0,
        cut_after=end < len(text),
    )
