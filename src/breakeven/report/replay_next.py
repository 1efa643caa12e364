"""What to type after a replay or a sweep."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from breakeven.replay.records import Origin, Replay, Sweep
from breakeven.report.replay_words import LLAMACPP, too_little_sentence
from breakeven.report.text import line

_OTHERS = {
    "trial": "(… are the other options of that trial)",
    "run": "(… are the model, prompts and lengths of that run)",
}
"""By kind of record: what stands for the options that it was made with."""
_YOURS = "(name your --model and --prompts)"


@dataclass(frozen=True, slots=True)
class Next:
    command: str
    note: str = ""
    """What the command leaves open, and what else may be typed; empty where there is neither."""


def after_replay(replay: Replay) -> Next | None:
    """A trial of the drafter; a sweep where it never drafted; None without flags, or a step to draft at."""
    counters = replay.total.counters
    if not counters.steps:
        return None
    return _trial(replay.engine, replay.flags, replay.origin) if counters.drafts else _sweep(replay)


def after_sweep(sweep: Sweep) -> Next | None:
    """A trial of the row that is suggested; None where it is not worth one, or has no flags."""
    best = sweep.suggested
    return None if too_little_sentence(sweep) else _trial(best.engine, best.flags, sweep.origin)


def _trial(engine: str, flags: str, origin: Origin) -> Next | None:
    if not flags:
        return None
    if engine != LLAMACPP:
        command, open_ = "breakeven trial --baseline-url URL --candidate-url URL", ""
    else:
        is_run = origin.kind in _OTHERS
        command = f"breakeven trial {'… ' if is_run else ''}--candidate {shlex.quote(flags)}"
        open_ = _OTHERS.get(origin.kind, _YOURS)
    return Next(command, f"{open_} {_forecast(origin)}".strip())


def _forecast(origin: Origin) -> str:
    tokenizer = " --tokenizer …" if origin.ids == "tokenizer" else ""
    return (
        "Whether it would pay, before any restart:  breakeven forecast "
        f"{shlex.quote(line(origin.path, 500))}{tokenizer} --calibration FILE  (of `breakeven calibrate URL`)"
    )


def _sweep(replay: Replay) -> Next:
    words = ["breakeven replay", shlex.quote(replay.origin.path), "--sweep"]
    if replay.origin.ids == "tokenizer":
        words.append("--tokenizer …")
    if replay.first_token != "prefill":  # noqa: S105
        words.append(f"--first-token {replay.first_token}")
    shortest = replay.settings.get("min_n", replay.settings.get("n"))
    is_long = isinstance(shortest, int) and shortest > 1
    return Next(" ".join(words), "(or a smaller n)" if is_long else "")
