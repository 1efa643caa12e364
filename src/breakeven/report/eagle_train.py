"""How a training goes, on stderr, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from rich.console import Console
from rich.text import Text

from breakeven.eagle.stage import Made
from breakeven.eagle.train.records import Step, Validation
from breakeven.eagle.train.watch import Watch
from breakeven.report.progress import Ticker, progress
from breakeven.units import count, duration


class Shown(Watch):
    """A bar, and a line for each validation above it; to be used in a `with`."""

    def __init__(self, console: Console) -> None:
        self._console, self._bar = console, ExitStack()
        self._ticker: Ticker | None = None

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, *failure: object) -> None:
        self._bar.close()

    def verifies(self, shards: int) -> None:
        words = f"comparing {count(shards, 'shard')} of states with their checksums"
        self._console.print(Text(words), soft_wrap=True)

    def begins(self, steps: int, done: int) -> None:
        if done:
            self._console.print(Text(f"going on after step {done:,} of {steps:,}"), soft_wrap=True)
        shown = progress("eagle train, optimizer steps", steps - done, self._console)
        self._ticker = self._bar.enter_context(shown)

    def stepped(self, step: Step) -> None:
        first = step.acceptance[0]
        accepted = "" if first is None else f", {first:.0%} of first drafts"
        if self._ticker is not None:
            self._ticker.advance(1, f"loss {step.loss:.3f}{accepted}")

    def validated(self, found: Validation) -> None:
        words = f"after step {found.step:,}: loss {found.scores.loss:.3f}, acceptance length "
        words += f"{found.acceptance_length:.2f}, by position {_shares(found.scores.acceptance)}"
        self._console.print(Text(words), soft_wrap=True)


def print_trained(made: Made, folder: str, console: Console) -> None:
    """What the best head does, and where it is."""
    for line in _lines(made.found, folder):
        console.print(Text(line), soft_wrap=True)


def trained_json(made: Made, folder: str) -> dict[str, Any]:
    return {"folder": folder, **made.found}


def _lines(found: Mapping[str, Any], folder: str) -> list[str]:
    early = ": the acceptance that was asked for is reached" if found["stopped_early"] else ""
    if found["acceptance_length"] is None:
        best = f"training loss {found['loss']:.3f} at the end (no prompts were kept for validation)"
    else:
        best = (
            f"best after step {found['best_step']:,}: acceptance length "
            f"{found['acceptance_length']:.2f} with {count(found['k'], 'draft token')}, "
            f"loss {found['loss']:.3f}, on "
            f"{count(found['validation_samples'], 'validation sample')}"
        )
    return [
        f"{count(found['steps'], 'optimizer step')} on {count(found['train_samples'], 'sample')} in "
        f"{duration(found['seconds'])}{early}",
        best,
        f"acceptance by position, given that those before were accepted: {_shares(found['acceptance'])}",
        "acceptance is teacher-forced, as in training: `breakeven eagle evaluate` drafts in earnest",
        f"the head: {folder}/best",
    ]


def _shares(acceptance: Sequence[float | None]) -> str:
    return ", ".join("-" if one is None else f"{one:.0%}" for one in acceptance)
