"""GuardedNgram with faults that a test plants into a running vLLM, as files in the folder that FAULTS names.

vLLM's Python imports a copy of it; so it needs nothing but the guard. Its clock is one of its
own: what is drafted does not depend on what else the machine does.
"""

from __future__ import annotations

import gc
import json
import os
import signal
from pathlib import Path
from typing import Any, NoReturn

from breakeven.guard import state_file
from breakeven.guard.match_index import LongestMatch
from breakeven.guard.vllm import GuardedNgram
from breakeven.trace import files

FAULTS = Path(os.environ["FAULTS"])
PLAIN_S, DRAFT_S = 0.01, 0.0001
PAGE = os.sysconf("SC_PAGE_SIZE")
state_file.FIRST_S = state_file.EVERY_S = 0.2
_sync = files._sync


def planted(fault: str) -> str | None:
    """What its file says; None where it is not planted."""
    try:
        return (FAULTS / fault).read_text()
    except FileNotFoundError:
        return None


class Clock:
    """Stands but for what steps take."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now + float(planted("clock") or 0)

    def step(self, drafted: int) -> None:
        """Drafts are slow, or all steps, where that is planted."""
        self.now += PLAIN_S * (1 if planted("slow steps") is None else 3)
        self.now += DRAFT_S * drafted * (1 if planted("slow drafts") is None else 5)


def fail(*_: Any) -> NoReturn:
    raise RuntimeError("planted")


def sync_or_die(path: Path) -> None:
    """Of a file, not of its folder: between its being written and its taking the place of the old one."""
    if path.is_file() and planted("dies") is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    _sync(path)


files._sync = sync_or_die


class Unseen:
    """A kill file on a disk that fails."""

    def exists(self) -> NoReturn:
        raise OSError(5, "Input/output error")


class Faulty(GuardedNgram):
    """What is planted is in it from the next step on; all but what "index" breaks goes away with its file."""

    def __init__(self, vllm_config: Any) -> None:
        self._time = Clock()
        super().__init__(vllm_config, clock=self._time)
        self._kill_file, self._own_file = self._switch._file, self._file._file
        self._drafted = 0

    def propose(self, *given: Any, **named: Any) -> list[list[int]]:
        self._time.step(self._drafted)
        self._plant()
        drafts = super().propose(*given, **named)
        self._drafted = sum(map(len, drafts))
        self._plant_behind()
        return drafts

    def _plant(self) -> None:
        if planted("index") is not None:
            LongestMatch.match = fail
        self._switch._file = self._kill_file if planted("unseen") is None else Unseen()
        self._keep_in(Path(planted("state") or self._own_file))

    def _plant_behind(self) -> None:
        if planted("scrape") is not None:
            self._steps.learned = "no step times"
        elif isinstance(self._steps.learned, str):
            self._steps.learned = None
        if planted("sizes") is not None:
            self._tell_sizes()

    def _keep_in(self, path: Path) -> None:
        if self._file._file != path:
            self._file._file, self._file._told = path, None

    def _tell_sizes(self) -> None:
        """Of all that it holds; once."""
        (FAULTS / "sizes").unlink()
        gc.collect()
        rows, policy, cost = self._steps._rows, self._steps.policy, self._steps.cost
        sizes = {
            "rss": int(Path("/proc/self/statm").read_text().split()[1]) * PAGE,
            "requests": sum(row is not None for row in rows._rows),
            "parked": len(rows._parked),
            "accounts": len(policy._rows),
            "step sizes": len(cost._plain) + len(cost._drafted),
            "taught": float(policy.survival.counts[:, 0].sum()),
        }
        partial = FAULTS / "sizes.partial"
        partial.write_text(json.dumps(sizes))
        partial.replace(FAULTS / "sizes.json")
