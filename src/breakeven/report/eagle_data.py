"""What the data stage made, on a terminal and as JSON, and how far it is."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from breakeven.eagle.data.make import Watch
from breakeven.eagle.stage import Made
from breakeven.report.plain import printable
from breakeven.report.progress import Ticker
from breakeven.report.terminal import say
from breakeven.report.text import line
from breakeven.trace.records import RequestTrace
from breakeven.units import count, share

ABSENT = {
    "coverage_held_out": "no prompt is held out",
    "replies": "regenerate = false: recorded replies were taken",
}


class Shown(Watch):
    """Progress as a bar of replies."""

    def __init__(self, ticker: Ticker) -> None:
        self._ticker = ticker

    def asks(self, prompts: int) -> None:
        self._ticker.set_total(prompts)

    def answered(self, trace: RequestTrace) -> None:
        self._ticker.advance(note=trace.category)

    def tokenises(self) -> None:
        self._ticker.advance(0, note="making samples")


def data_json(folder: Path, made: Made) -> dict[str, Any]:
    """Stable keys; `absent` says why a value is null."""
    absent = {key: why for key, why in ABSENT.items() if made.found.get(key) is None}
    shown: dict[str, Any] = printable({"folder": str(folder), **made.found, "absent": absent})
    return shown


def print_data(recipe: Path, folder: Path, made: Made, console: Console) -> None:
    """Counts, what was left out and why, the draft vocabulary's coverage, warnings, and what to type next."""
    found = made.found
    say(console, f"{folder}: {count(found['samples'], 'sample')}", "bold", wrap=False)
    for sentence in _sentences(found):
        say(console, sentence)
    for warning in found["warnings"]:
        say(console, f"Warning: {line(warning, 600)}.", "yellow")
    say(console, f"Next: breakeven eagle states {shlex.quote(str(recipe))}", wrap=False)


def _sentences(found: Mapping[str, Any]) -> Iterator[str]:
    train = found["samples"] - found["held_out"]
    yield (
        f"{train:,} to train on, {found['held_out']:,} held out, {count(found['tokens'], 'token')}, "
        f"{found['loss_tokens']:,} of them written by the target (reasoning included)."
    )
    yield (
        f"{count(found['duplicates'], 'prompt')} came more than once and counted once; "
        f"{count(found['cut'], 'sample')} cut to max_length."
    )
    left_out = ", ".join(f"{reason}: {n:,}" for reason, n in found["left_out"].items())
    if left_out:
        yield f"Left out: {line(left_out, 400)}."
    apart = found["coverage_held_out"]
    held_out = "" if apart is None else f", {share(apart)} of those held out"
    yield (
        f"Draft vocabulary: {found['draft_vocabulary']:,} of {count(found['target_vocabulary'], 'token')}; "
        f"it covers {share(found['coverage'])} of what the target wrote to train on{held_out}."
    )
