"""What was typed in the place of a URL, and what to type instead."""

from __future__ import annotations

import difflib
from pathlib import Path

from breakeven.cost.calibration import FILE
from breakeven.errors import UsageError
from breakeven.models import hub
from breakeven.models.catalog import BY_NAME
from breakeven.trace.disk import META
from breakeven.trace.run import load_run
from breakeven.trial.store import is_trial

CALIBRATE = "breakeven calibrate"
EXAMPLE = f"type  {CALIBRATE} http://HOST:PORT"


def refuse_no_url(typed: str) -> None:
    """Raises UsageError for a model, a file or a folder where `breakeven calibrate` takes a URL."""
    if "://" in typed and not typed.startswith(hub.PREFIX):
        return
    path = Path(typed).expanduser()
    if path.is_dir():
        raise UsageError(_folder(path))
    if (model := _model(typed)) is not None:
        raise UsageError(
            f"{typed} is no URL: did you mean --model {model}? Type  {CALIBRATE} --model {model}"
        )
    if path.is_file():
        raise UsageError(f"{typed} is a file, no URL: {EXAMPLE}")


def _model(typed: str) -> str | None:
    if typed.startswith(hub.PREFIX) or typed.endswith(".gguf"):
        return typed
    return next(iter(difflib.get_close_matches(typed, BY_NAME, 1)), None)


def _folder(path: Path) -> str:
    if (path / FILE).is_file():
        return f"{path} is a calibration already: type  breakeven show {path}"
    run = path / "baseline" if is_trial(path) else path
    if not (run / META).is_file():
        return f"{path} is a folder, no URL: {EXAMPLE}"
    meta = load_run(run).meta
    if meta.model in BY_NAME:
        return (
            f"{path} is a record, no URL: if its engine was an embedded one, type  {CALIBRATE} --model "
            f"{meta.model}, else  {CALIBRATE} {meta.url}"
        )
    return f"{path} is a record, no URL: type that of its baseline, such as  {CALIBRATE} {meta.url}"
