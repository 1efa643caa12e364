"""How long a server took to start when it was last seen to: a start's progress is shown against it."""

from __future__ import annotations

import json
import math
from pathlib import Path

from breakeven.servers.host import LocalHost
from breakeven.servers.state_folder import make_folder, name_of, state_folder


def last_start_s(target: str, changed: bool) -> float | None:
    """Seconds; None where it was never seen to start, or what is kept cannot be read.

    With speculation, `changed`, a server may start much slower: each way has its own time.
    """
    try:
        seconds = json.loads(_path(target).read_bytes())[_key(changed)]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds)
    return float(seconds) if is_time and seconds >= 0 else None


def keep_start_s(target: str, changed: bool, seconds: float) -> None:
    """Raises StorageError."""
    known = {_key(side): last_start_s(target, side) for side in (False, True)}
    kept = {key: value for key, value in {**known, _key(changed): seconds}.items() if value is not None}
    make_folder(_path(target).parent)
    LocalHost().write(str(_path(target)), json.dumps(kept).encode() + b"\n", 0o600)


def _key(changed: bool) -> str:
    return "candidate_s" if changed else "baseline_s"


def _path(target: str) -> Path:
    return state_folder() / "starts" / f"{name_of(target)}.json"
