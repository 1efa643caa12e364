"""TrainingRun: an EAGLE-3 head that somebody trained, as far as they said with what."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """None is not stated."""

    model: str
    """The target, named as presets are."""
    head: str | None
    """Its name on the Hugging Face hub."""
    samples: int | None
    tokens: int | None
    """Of all samples, each once."""
    epochs: float | None
    gpu: str | None
    gpus: int | None
    gpu_hours_low: float | None
    gpu_hours_high: float | None
    k: int | None
    """Drafted tokens of the chain that the lengths are of."""
    acceptance_low: float | None
    """Acceptance length on the workload where it is shortest, …"""
    acceptance_high: float | None
    """… and longest; the target's own token counts."""
    workloads: str | None
    note: str | None
    source: str


_WHOLE = ("samples", "tokens", "gpus", "k")
_NUMBERS = ("epochs", "gpu_hours_low", "gpu_hours_high", "acceptance_low", "acceptance_high")


@cache
def training_runs() -> tuple[TrainingRun, ...]:
    """All that are known, in the order of the file."""
    text = (files("breakeven.eagle") / "published" / "training_runs.csv").read_text("utf-8")
    return tuple(_run(row) for row in csv.DictReader(text.splitlines()))


def _run(row: dict[str, str]) -> TrainingRun:
    values = {name: _value(name, word) for name, word in row.items()}
    return TrainingRun(**values)  # type: ignore[arg-type]


def _value(name: str, word: str) -> str | int | float | None:
    if not word:
        return None
    if name in _WHOLE:
        return int(word)
    return float(word) if name in _NUMBERS else word


def heads_of(model: str) -> tuple[str, ...]:
    """Published heads for a target, by their names on the hub."""
    return tuple(run.head for run in training_runs() if run.model == model and run.head)


def with_as_few(samples: int) -> TrainingRun | None:
    """Of the runs with known lengths and no more samples, that with the most; None where all had more.

    Of equals the one with the shorter length.
    """
    known = [
        run
        for run in training_runs()
        if run.samples is not None and run.samples <= samples and run.acceptance_low is not None
    ]
    return max(known, key=lambda run: (run.samples or 0, -(run.acceptance_low or 0)), default=None)
