"""What to type after a simulation: the guard in its engine and a trial of it, or the best fixed setting."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from breakeven.forecast.next_steps import trial_commands
from breakeven.guard.settings import GuardSettings
from breakeven.guard.simulate.records import Simulation

_UNSET = GuardSettings()
TRIAL = "breakeven trial … --method guard --method guard-off"


def next_commands(made: Simulation, calibration: str | None = None) -> tuple[str, ...]:
    """In order; nothing where nothing pays. `calibration` is a file of this very engine."""
    if made.has_seam:
        return (_vllm_config(made.settings, calibration), TRIAL) if made.guard.speed.speedup > 1 else ()
    best = made.best_fixed
    return () if best is None or best.speed.speedup <= 1 else trial_commands(made.engine, best.flags)


def _vllm_config(settings: GuardSettings, calibration: str | None) -> str:
    return " ".join(("breakeven guard vllm-config", *_options(settings, calibration)))


def _options(settings: GuardSettings, calibration: str | None) -> Iterator[str]:
    if calibration is not None:
        yield f"--calibration {shlex.quote(calibration)}"
    if settings.epsilon != _UNSET.epsilon:
        yield f"--epsilon {settings.epsilon * 100:g}%"
    if settings.most_tokens != _UNSET.most_tokens:
        yield f"--most-tokens {settings.most_tokens}"
