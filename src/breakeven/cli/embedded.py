"""The embedded engine as a baseline to calibrate: its settings, its experts, and what it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from breakeven.cost.gguf_geometry import geometry_from_gguf
from breakeven.engines.llamacpp import LlamaSettings, baseline_settings
from breakeven.errors import UsageError

LOG = "engine.log"
"""In the folder of what is measured."""


def settings_of(flags: str | None, slots: int) -> LlamaSettings:
    """Of a baseline with so many slots, each with the context that the flags give to one, and one KV cache,
    so that a step takes them all together, as it does the tokens of a verification.

    Raises UsageError for flags that speculate, or say the slots themselves.
    """
    settings = LlamaSettings.parse(flags) if flags else baseline_settings()
    if settings.spec_types:
        raise UsageError(
            f"--flags speculate ({', '.join(settings.spec_types)}), and a calibration needs the baseline: "
            "leave out --spec-type"
        )
    if settings.parallel != baseline_settings().parallel:
        raise UsageError(
            f"--flags say --parallel {settings.parallel}: type  --slots {settings.parallel}  instead"
        )
    return replace(settings, parallel=slots, ctx_size=settings.ctx_size * slots, kv_unified=True)


def has_experts(name: str, model: Path, said: bool | None = None) -> bool | None:
    """What the weights say; else what the user does. Raises UsageError where the two differ."""
    try:
        found = geometry_from_gguf(model).experts is not None
    except UsageError:
        return said
    if said not in (None, found):
        right, has = ("--moe", "experts") if found else ("--dense", "no experts")
        raise UsageError(f"{name} has {has}: type {right}, or leave it out")
    return found


@contextmanager
def leaving_no_empty(folder: Path) -> Iterator[None]:
    """Has a failure take away a folder that holds nothing but an empty log."""
    existed = folder.exists()
    try:
        yield
    except BaseException:
        log = folder / LOG
        if log.is_file() and not log.stat().st_size:
            log.unlink()
        if not existed and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        raise
