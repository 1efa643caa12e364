"""What is said of a replay or a sweep in words, once, so that terminal, page and JSON say the same."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.replay.records import FirstToken, Origin, Replay, Sweep, SweepRow
from breakeven.report.text import line
from breakeven.units import ABSENT, count, share

_GREEDY = (
    "exact, as a lossless drafter cannot change a greedy output: a server on its way through these tokens "
    "makes these drafts and accepts as many"
)
_SAMPLED = (
    "an exact count for this recorded sample under exact-match acceptance; for the server, which samples "
    "anew and accepts with probability, an estimate"
)
_MADE_AGAIN = {
    "server tokenizer": ", token ids made from the text by the server's tokenizer",
    "tokenizer": ", token ids made from the text by a tokenizer",
}
PAYS = (
    "Acceptance is not speedup: whether this pays also depends on what a step that checks a draft costs on "
    "your server. `breakeven trial` decides."
)
_RANGE = ("min_n", "max_n")
EMBEDDED = "llamacpp-"
"""Drafters whose flags the engines of `breakeven trial --candidate` take."""


def record_sentence(record: Replay | Sweep) -> str:
    """What was replayed: `runs/x (run): 80 requests, 49,848 output tokens`."""
    total = (record.requests, record.output_tokens) if isinstance(record, Sweep) else _size(record)
    origin = record.origin
    said = f"{count(total[0], 'request')}, {count(total[1], 'output token')}"
    return f"{line(origin.path, 500)} ({origin.kind}): {said}{_MADE_AGAIN.get(origin.ids, '')}"


def _size(replay: Replay) -> tuple[int, int]:
    return replay.total.requests, replay.total.output_tokens


def sampling_sentence(origin: Origin) -> str:
    """What the counts mean under the sampling that gave the outputs."""
    if origin.temperature is None:
        return f"Temperature unknown. If it was 0: {_GREEDY}. If it was above 0: {_SAMPLED}."
    return f"Temperature {origin.temperature:g}: {_SAMPLED if origin.temperature > 0 else _GREEDY}."


def first_token_sentence(first_token: FirstToken) -> str:
    """Where stepping starts."""
    if first_token == "prefill":  # noqa: S105
        return "Steps start after each first output token, which a server's prefill gives."
    return "Steps start before each first output token (--first-token replayed); a server's prefill gives it."


def skipped_sentences(skipped: Mapping[str, int]) -> list[str]:
    """What was left out of the record, and why."""
    return [f"{count(n, 'record')} left out: {line(reason, 500)}" for reason, n in skipped.items()]


def settings_words(settings: Mapping[str, Any], only: Collection[str] | None = None) -> str:
    """`k=5 n=2–4`: a pair of shortest and longest n-gram as a range; of the settings in `only`, if given."""
    names = list(settings)
    if all(name in settings for name in _RANGE):
        names.remove("max_n")
    return line(" ".join(_word(name, settings) for name in names if _wanted(name, settings, only)), 300)


def _wanted(name: str, settings: Mapping[str, Any], only: Collection[str] | None) -> bool:
    return only is None or name in only or (name == "min_n" and "max_n" in settings and "max_n" in only)


def _word(name: str, settings: Mapping[str, Any]) -> str:
    if name != "min_n" or "max_n" not in settings:
        return f"{name}={value_words(settings[name])}"
    low, high = (value_words(settings[end]) for end in _RANGE)
    return f"n={low}" if low == high else f"n={low}–{high}"


def value_words(value: Any) -> str:
    """A setting's value as it is typed after `--set NAME=`."""
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def headline(tokens_per_step: float | None) -> str:
    """The answer at a glance: `1.672 tokens per step`."""
    return "No decode step to replay" if tokens_per_step is None else f"{tokens_per_step:.3f} tokens per step"


def answer(replay: Replay) -> str:
    """The headline and what it is made of."""
    return f"{headline(replay.total.tokens_per_step)}: {explanation(replay)}"


def explanation(replay: Replay) -> str:
    """What the headline is made of."""
    counters = replay.total.counters
    if not counters.steps:
        return "every output has one token, and the prefill gives that."
    if not counters.drafts:
        return f"not one of {count(counters.steps, 'step')} drafted anything."
    return (
        f"{share(counters.draft_share)} of the steps drafted, and "
        f"{share(counters.acceptance_rate)} of the drafted tokens were accepted."
    )


def counts_sentence(replay: Replay) -> str:
    """The raw counts behind the answer."""
    counters = replay.total.counters
    mean = counters.mean_acceptance_length
    return (
        f"{count(counters.steps or 0, 'step')}, {count(counters.drafts or 0, 'draft')}, "
        f"{count(counters.drafted_tokens or 0, 'drafted token')}, {counters.accepted_tokens:,} accepted, "
        f"{count(replay.total.emitted_tokens, 'token')} emitted; "
        f"mean acceptance length {decimal(mean)}"
    )


def flags_sentence(drafter: str, flags: str) -> str:
    """How to turn the drafter on."""
    if not flags:
        return f"{line(drafter)} names no flags that turn it on in an engine."
    return f"To turn it on: {line(flags, 1000)}"


def next_command(drafter: str, flags: str) -> str | None:
    """What decides whether it pays; None for a drafter that no engine has."""
    if not flags:
        return None
    if drafter.startswith(EMBEDDED):
        return f"breakeven trial --candidate {shlex.quote(flags)}"
    return "breakeven trial --baseline-url URL --candidate-url URL"


def decimal(value: float | None) -> str:
    """Three digits after the point."""
    return ABSENT if value is None else f"{value:.3f}"


def per_step(tokens: int | None, counters: SpecCounters) -> str:
    """Tokens over all steps: `0.672`."""
    return f"{tokens / counters.steps:.3f}" if tokens is not None and counters.steps else ABSENT


def row_words(row: SweepRow) -> str:
    """Drafter and settings."""
    return f"{line(row.drafter)} {settings_words(row.settings)}".rstrip()
