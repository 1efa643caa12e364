"""kill -9 at every step of a trial, on every kind of server, whatever its candidate does: it comes back.

What is killed really is a process, and what puts the service back is `breakeven recover` in another one. The
steps are those before and after every entry of the journal and every change of the machine;
tests/golden/journal-steps.txt lists them, and `python -m tests.e2e.test_faults` writes it anew.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import fault_child
from tests.e2e.fault_child import Task
from tests.e2e.fault_sites import SITES, Site, served

LISTED = Path(__file__).parents[1] / "golden" / "journal-steps.txt"
PATIENCE_S = 60.0
WORKERS = 2
NEVER = {("compose", "batch"), ("attached", "exits"), ("attached", "batch"), ("attached", "kept")}
NEVER |= {("second unit", "batch"), ("second unit", "kept")}
"""Nobody sees the process of an attached server, or keeps a second unit; the rest tells nothing new."""
MATRIX = [
    pytest.param(kind, scenario, marks=() if scenario == "fine" else pytest.mark.slow)
    for scenario in ("fine", "hangs", "exits", "batch", "kept")
    for kind in SITES
    if (kind, scenario) not in NEVER
]

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["tests.e2e.fault_child"])
_LOOKING = threading.Lock()


@dataclass
class Bench:
    """A machine that is served, and what is done on it."""

    site: Site
    task: Task
    folder: Path
    before: Any

    def trial(self, **changes: Any) -> tuple[int | None, list[str], str | None]:
        """How it ended: exit code, steps, and the error."""
        return ended(fault_child.trial, replace(self.task, **changes))

    def recover(self) -> list[str]:
        """Its steps."""
        code, names, _ = ended(fault_child.recover, self.task)
        assert code == 0, (self.folder / "recover.err").read_text()
        return names

    def recovery_is_killed(self, step: int) -> None:
        code, _, _ = ended(fault_child.recover, replace(self.task, kill_at=step))
        assert code == -9, (step, code)

    @property
    def journals(self) -> list[Path]:
        return sorted((self.folder / "state/breakeven/journals").glob("*.jsonl"))

    @property
    def is_kept(self) -> bool:
        closed = (self.folder / "state/breakeven/journals/closed").glob("*.jsonl")
        return any('"how":"kept"' in path.read_text() for path in [*closed, *self.journals])

    def check(self, where: object) -> None:
        """It is as it was found; or as it is kept, if the journal says so."""
        assert self.journals == [], where
        assert (self.site.snapshot() == self.before) is not self.is_kept, where


def ended(what: Callable[[Task, Connection], None], task: Task) -> tuple[int | None, list[str], str | None]:
    """How it ended: exit code, steps, and the error. No step of one that was killed."""
    receiver, sender = processes.Pipe(duplex=False)
    code = _run(what, task, sender)
    sender.close()
    try:
        names, error = receiver.recv()
    except EOFError:
        names, error = [], None
    return code, names, error


def _run(what: Callable[..., None], *given: Any) -> int | None:
    """Its exit code. Starting a process looks how all others ended, which no two threads may do at once."""
    process = processes.Process(target=what, args=given)
    with _LOOKING:
        process.start()
    has_ended = wait([process.sentinel], PATIENCE_S)
    if not has_ended:
        process.kill()
        raise AssertionError(f"{what.__name__} does not end: {given}")
    with _LOOKING:
        return process.exitcode


@contextmanager
def bench(kind: str, scenario: str) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as name:
        folder, site = Path(name), SITES[kind](scenario)
        before = site.snapshot()
        with served(site, folder) as (address, url):
            task = Task(site.target, site.second_unit, scenario, address, url, str(folder / "state"))
            yield Bench(site, task, folder, before)


def steps_of(kind: str, scenario: str) -> list[str]:
    """Of a trial that is not killed."""
    with bench(kind, scenario) as one:
        code, names, error = one.trial()
        assert code == 0, one
        assert (error is None) is (scenario in ("fine", "kept")), error
        one.check("not killed")
        return names


def killed(kind: str, scenario: str, step: int) -> bool:
    """Killed there and recovered. Returns whether anything had to be put back."""
    with bench(kind, scenario) as one:
        code, _, error = one.trial(kill_at=step)
        assert code == -9, (step, code, error)
        is_changed = one.site.snapshot() != one.before
        one.recover()
        one.check((kind, scenario, step))
        return is_changed


@pytest.mark.parametrize(("kind", "scenario"), MATRIX)
def test_killed_at_every_step_it_comes_back(kind: str, scenario: str):
    steps = range(len(steps_of(kind, scenario)))
    with ThreadPoolExecutor(WORKERS) as pool:
        changed = list(pool.map(lambda step: killed(kind, scenario, step), steps))
    assert sum(changed) > len(steps) / 5


def recovery_killed(kind: str, at: int, step: int | None) -> list[str]:
    """A recovery of a trial that was killed `at` is killed too, and done again. Its steps then."""
    with bench(kind, "fine") as one:
        assert one.trial(kill_at=at)[0] == -9
        assert one.site.snapshot() != one.before
        if step is not None:
            one.recovery_is_killed(step)
        steps = one.recover()
        one.check((kind, "recovery", step))
        return steps


@pytest.mark.parametrize("kind", list(SITES))
def test_a_recovery_that_is_killed_at_any_step_is_done_again(kind: str):
    at = steps_of(kind, "fine").index("the candidate runs, or has failed")
    steps = range(len(recovery_killed(kind, at, None)))
    assert len(steps) > 8
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda step: recovery_killed(kind, at, step), steps))


def full(kind: str, write: int, fits_bytes: int) -> bool:
    """The disk is full from that write on. Returns whether the trial came so far."""
    with bench(kind, "fine") as one:
        code, _, error = one.trial(full_at=write, fits_bytes=fits_bytes)
        assert code == 0, one
        if error is None:
            return False
        assert error.startswith(("StorageError", "Unnoted")), error
        assert one.site.snapshot() == one.before, (kind, write)
        one.recover()
        one.check((kind, "full", write))
        return True


@pytest.mark.parametrize("kind", list(SITES))
@pytest.mark.parametrize("fits_bytes", [0, 15])
def test_a_disk_that_is_full_from_any_entry_on(kind: str, fits_bytes: int):
    """What could not be noted was not done; what was done is undone, though that cannot be noted."""
    entries = sum(name.startswith("before: journal") for name in steps_of(kind, "fine"))
    with ThreadPoolExecutor(WORKERS) as pool:
        refused = list(pool.map(lambda write: full(kind, write, fits_bytes), range(entries)))
    assert all(refused)


def listing() -> str:
    """The steps of each kind."""
    text = ""
    for kind in SITES:
        names = steps_of(kind, "fine")
        text += f"{kind}: {len(names)} steps\n" + "".join(f"  {n:2} {name}\n" for n, name in enumerate(names))
    return text


def test_all_steps_are_listed():
    assert listing() == LISTED.read_text(), (
        "type  python -m tests.e2e.test_faults  and look at the difference"
    )


if __name__ == "__main__":
    LISTED.write_text(listing())
