"""A trial cut off at any step, and a recovery cut off too: the machine is as it was found, byte for byte."""

import asyncio
import errno
import itertools
import os
import platform
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from breakeven.errors import ServerError, StorageError, UsageError
from breakeven.servers import recovery, undo_journal
from breakeven.servers.fake.host import Killed
from breakeven.servers.lifecycle import Lifecycle, State
from breakeven.servers.operation_kinds import RunCommand
from breakeven.servers.operations import Completed, Host
from breakeven.servers.recovery import Unnoted, change, pending, put_back, restart, tidy, undo_all
from breakeven.servers.undo_journal import UndoJournal
from breakeven.servers.undo_record import Verification
from tests.unit.servers.fake_service import CANDIDATE, DROPIN, FOUND, UNIT, VERIFICATION, Machine, Service

MOST_STEPS = 60
ENDINGS = ("before", "after", "torn")
"""A step is never begun, is done but nothing is after it, or (of the journal) half a line is written."""


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_state_dir", lambda *a, **k: str(tmp_path / "breakeven"))
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(recovery, "FIRST_PAUSE_S", 0.001)


class Bench:
    """A machine with a service, whose steps and whose journal's entries are counted together."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.machine = Machine()
        self.service = Service(self.machine)
        self.before = self.machine.everything()
        self.verifications = 0
        self.torn = False
        real = undo_journal._write

        def write(descriptor: int, entry: dict[str, object]) -> None:
            if self.torn and self.machine.touches == self.machine.fail_at:
                os.write(descriptor, b'{"entry":"do')
            self.machine._touch(before=True)
            real(descriptor, entry)
            self.machine._touch(before=False)

        monkeypatch.setattr(undo_journal, "_write", write)

    def end_at(self, step: int | None, ending: str = "before", failure: BaseException | None = None) -> None:
        self.machine.touches = 0
        self.machine.fail_at = step
        self.machine.failure = failure or Killed()
        self.machine.takes_effect = ending == "after"
        self.torn = ending == "torn"

    async def trial(self) -> None:
        """Candidate, baseline, candidate again, and back: ABA with the service left as it was."""
        with UndoJournal.open("systemd", FOUND, VERIFICATION) as journal:
            operations = self.service.change(FOUND, CANDIDATE)
            await change(journal, self.machine, operations)
            await restart(journal, self.service)
            await undo_all(journal, self.machine, lambda line: None, limit_s=0)
            await restart(journal, self.service)
            await change(journal, self.machine, self.service.change(FOUND, CANDIDATE))
            await restart(journal, self.service)
            await put_back(journal, self.machine, self.service, self.verify, limit_s=0)

    async def recover(self) -> None:
        for found in pending():
            with UndoJournal.adopt(found.path) as journal:
                await put_back(journal, self.machine, self.service, self.verify, limit_s=0)

    async def verify(self, verification: Verification, lifecycle: Lifecycle, is_restarted: bool) -> None:
        assert verification == VERIFICATION
        assert self.machine.running == b"ExecStart=vllm serve m"
        self.verifications += 1

    def check(self) -> None:
        assert self.machine.everything() == self.before
        assert pending() == ()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


@pytest.fixture
def benches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Iterator[Bench]]:
    def fresh() -> Generator[Bench, None, None]:
        while True:
            with monkeypatch.context() as patch:
                yield Bench(patch)

    with closing(fresh()) as made:
        yield made


async def test_a_trial_that_ends_well_leaves_no_trace(bench: Bench):
    await bench.trial()
    bench.check()
    assert bench.verifications == 1
    assert bench.machine.restarts == 4


@pytest.mark.parametrize("ending", ENDINGS)
async def test_killed_at_every_step_of_the_trial(benches: Iterator[Bench], ending: str):
    whole = next(benches)
    await whole.trial()
    assert 40 < whole.machine.touches < MOST_STEPS
    for step in range(whole.machine.touches):
        bench = next(benches)
        bench.end_at(step, ending)
        with pytest.raises(Killed):
            await bench.trial()
        bench.end_at(None)
        await bench.recover()
        bench.check()


@pytest.mark.parametrize("ending", ENDINGS)
async def test_killed_at_every_step_and_started_again_by_its_supervisor(
    benches: Iterator[Bench], ending: str
):
    """A power cut: what is on disk is what comes up."""
    for step in range(MOST_STEPS):
        bench = next(benches)
        bench.end_at(step, ending)
        try:
            await bench.trial()
        except Killed:
            pass
        else:
            break
        bench.machine.crash_and_come_back()
        bench.end_at(None)
        await bench.recover()
        bench.check()


@pytest.mark.parametrize(("ending", "again"), list(itertools.product(ENDINGS, ENDINGS)))
async def test_the_recovery_is_killed_at_every_step_too(benches: Iterator[Bench], ending: str, again: str):
    """The trial is killed once the candidate runs; its recovery at every step, and then at every step once
    more."""
    for step in range(MOST_STEPS):
        bench = next(benches)
        bench.end_at(12, ending)
        with pytest.raises(Killed):
            await bench.trial()
        survived = True
        for further in (0, 1):
            bench.end_at(step + further, again)
            try:
                await bench.recover()
            except Killed:
                survived = False
        bench.end_at(None)
        await bench.recover()
        bench.check()
        if survived:
            return
    raise AssertionError("a recovery has no end")


@pytest.mark.parametrize("ending", ["before", "after"])
async def test_an_error_at_every_step_and_the_next_recovery(benches: Iterator[Bench], ending: str):
    """A command that fails, a file that cannot be written: the same process gives up, the next puts back."""
    for step in range(MOST_STEPS):
        bench = next(benches)
        bench.end_at(step, ending, ServerError("no"))
        try:
            await bench.trial()
        except ServerError:
            bench.end_at(None)
            await bench.recover()
            bench.check()
        else:
            return


async def test_a_recovery_that_fails_keeps_the_journal(bench: Bench):
    bench.end_at(12)
    with pytest.raises(Killed):
        await bench.trial()
    bench.end_at(1, failure=ServerError("the disk is read-only"))
    with pytest.raises(ServerError, match="read-only"):
        await bench.recover()
    assert len(pending()) == 1


async def test_a_baseline_that_does_not_answer_keeps_the_journal(bench: Bench):
    bench.end_at(12)
    with pytest.raises(Killed):
        await bench.trial()
    bench.end_at(None)

    async def silent(verification: Verification, lifecycle: Lifecycle, is_restarted: bool) -> None:
        raise ServerError("no completion")

    (found,) = pending()
    with UndoJournal.adopt(found.path) as journal, pytest.raises(ServerError, match="no completion"):
        await put_back(journal, bench.machine, bench.service, silent)
    assert bench.machine.everything() == bench.before
    assert len(pending()) == 1
    await bench.recover()
    bench.check()
    assert bench.machine.restarts == 2


async def test_a_trial_that_touched_nothing_needs_neither_restart_nor_completion(bench: Bench):
    UndoJournal.open("systemd", FOUND, VERIFICATION).release()
    await bench.recover()
    bench.check()
    assert bench.machine.touches == 3
    assert bench.verifications == bench.machine.restarts == 0


@pytest.mark.parametrize(("since_s", "restarts"), [(3600.0, 0), (0.0, 1), (None, 1)])
async def test_a_process_that_is_older_than_the_change_is_not_restarted(
    bench: Bench, since_s: float | None, restarts: int
):
    """A restart may cost an hour; but systemd may have started it again meanwhile, with the change."""
    journal = UndoJournal.open("systemd", FOUND, VERIFICATION)
    await change(journal, bench.machine, bench.service.change(FOUND, CANDIDATE))
    journal.release()
    bench.service.since_s = since_s
    await bench.recover()
    assert bench.machine.restarts == restarts
    assert bench.verifications == 1
    bench.check()


@pytest.mark.parametrize(("since_s", "is_restarted"), [(1e6, False), (0.0, True), (None, True)])
async def test_what_has_run_since_before_the_put_back_is_not_said_to_be_restarted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, since_s: float | None, is_restarted: bool
):
    """As a container that was put back already, which starting it again leaves alone."""
    said: list[bool] = []

    async def verify(verification: Verification, lifecycle: Lifecycle, is_restarted: bool) -> None:
        said.append(is_restarted)

    async def state() -> State:
        return State("running", since_s=since_s)

    with UndoJournal.open("systemd", FOUND, VERIFICATION) as journal:
        await change(journal, bench.machine, bench.service.change(FOUND, CANDIDATE))
        await restart(journal, bench.service)
        monkeypatch.setattr(bench.service, "state", state)
        await put_back(journal, bench.machine, bench.service, verify, limit_s=0)
    assert said == [is_restarted]


async def test_a_server_that_is_down_is_started(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    journal = UndoJournal.open("systemd", FOUND, VERIFICATION)
    await change(journal, bench.machine, bench.service.change(FOUND, CANDIDATE))
    journal.release()

    async def failed() -> State:
        return State("failed", "OOMKilled", since_s=3600.0)

    monkeypatch.setattr(bench.service, "state", failed)
    await bench.recover()
    assert bench.machine.restarts == 1


async def test_a_journal_that_cannot_be_written_touches_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    disk_full(monkeypatch)
    with pytest.raises(StorageError):
        await bench.trial()
    assert bench.machine.touches == 0
    bench.check()


async def test_a_disk_that_fills_up_at_any_entry_leaves_a_server_that_is_put_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    """Nothing is done that could not be noted; what was done is undone though that cannot be noted."""
    with UndoJournal.open("systemd", FOUND, VERIFICATION) as journal:
        await change(journal, bench.machine, bench.service.change(FOUND, CANDIDATE))
        await restart(journal, bench.service)
        with monkeypatch.context() as patch:
            disk_full(patch)
            with pytest.raises(StorageError):
                await change(journal, bench.machine, bench.service.change(FOUND, CANDIDATE))
            with pytest.raises(StorageError):
                await put_back(journal, bench.machine, bench.service, bench.verify)
        assert bench.machine.everything() == bench.before
        assert bench.verifications == 1
    assert len(pending()) == 1
    await bench.recover()
    bench.check()


async def test_a_damaged_journal_is_shown_and_hides_no_other(bench: Bench):
    bench.end_at(12)
    with pytest.raises(Killed):
        await bench.trial()
    folder = undo_journal.journals_folder()
    (folder / "other@here.jsonl").write_text("nonsense\n")
    (folder / "empty@here.jsonl").write_text("")
    found = {look.path.name: look for look in pending()}
    assert found["other@here.jsonl"].problem
    assert len(found) == 2


async def test_a_journal_that_is_held_is_not_pending(bench: Bench):
    with UndoJournal.open("systemd", FOUND, VERIFICATION):
        assert pending() == ()
    assert len(pending()) == 1


def disk_full(patch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, entry: dict[str, object]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    patch.setattr(undo_journal, "_write", full)


class Away:
    """Whatever it is asked, it fails so often before it answers."""

    def __init__(self, bench: Bench, times: int) -> None:
        self.left = times
        self.real = bench.machine.answer

    def __call__(self, argv: tuple[str, ...], stdin: bytes | None) -> Completed:
        if self.left:
            self.left -= 1
            raise ServerError("the daemon is away")
        done = self.real(argv, stdin)
        assert isinstance(done, Completed)
        return done


class Clock:
    """Goes on by what is slept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []
        monkeypatch.setattr(recovery, "FIRST_PAUSE_S", 1.0)
        monkeypatch.setattr(recovery.time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(recovery.asyncio, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds


async def away_while_put_back(bench: Bench, times: int, limit_s: float, said: list[str]) -> None:
    with UndoJournal.open("systemd", FOUND, VERIFICATION) as journal:
        await change(journal, bench.machine, bench.service.change(FOUND, CANDIDATE))
        await restart(journal, bench.service)
        bench.machine.answer = Away(bench, times)
        await put_back(journal, bench.machine, bench.service, bench.verify, said.append, limit_s)


async def test_a_daemon_that_is_away_for_long_is_asked_again_ever_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    clock, said = Clock(monkeypatch), list[str]()
    await away_while_put_back(bench, 40, 7200.0, said)
    bench.check()
    assert clock.pauses[:8] == [1, 2, 4, 8, 16, 32, 60, 60] and clock.now_s > 1800
    assert sum("trying again" in line and "the daemon is away" in line for line in said) == 40


async def test_a_daemon_that_stays_away_is_given_up_at_the_limit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(monkeypatch)
    with pytest.raises(ServerError, match="the daemon is away"):
        await away_while_put_back(bench, 1000, 100.0, [])
    assert clock.pauses == [1, 2, 4, 8, 16, 32, 37] and len(pending()) == 1


async def test_what_does_not_come_right_by_itself_is_given_up_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(monkeypatch)
    with UndoJournal.open("systemd", FOUND, VERIFICATION) as journal:
        await change(journal, bench.machine, bench.service.change(FOUND, CANDIDATE))
        bench.machine.files[DROPIN] = b"by somebody else"
        with pytest.raises(UsageError, match="changed by somebody else"):
            await put_back(journal, bench.machine, bench.service, bench.verify)
    assert clock.pauses == [] and len(pending()) == 1


async def test_what_is_under_way_comes_to_its_end_before_a_cancellation_passes(bench: Bench):
    """Killed half-way, its daemon would go on with it after the undo."""
    bench.machine.lasts_s = lambda argv: 0.05
    with UndoJournal.open("systemd", FOUND, VERIFICATION) as journal:
        trial = asyncio.ensure_future(
            change(journal, bench.machine, (RunCommand(("systemctl", "daemon-reload")),))
        )
        await asyncio.sleep(0.01)
        for _ in range(2):
            trial.cancel()
            await asyncio.sleep(0.005)
        assert not trial.done()
        with pytest.raises(asyncio.CancelledError):
            await trial
        assert bench.machine.under_way == 0
        assert [begun.done for begun in journal.record.begun] == [True]


async def test_who_waits_for_somebody_is_cancelled_at_once(bench: Bench):
    class Asks(RunCommand):
        waits_for_somebody = True

        async def do(self, host: Host) -> None:
            await asyncio.sleep(3600)

    with UndoJournal.open("systemd", FOUND, VERIFICATION) as journal:
        trial = asyncio.ensure_future(change(journal, bench.machine, (Asks(("ask",)),)))
        await asyncio.sleep(0.01)
        trial.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(trial, 5)


async def test_a_restart_comes_to_its_end_before_a_cancellation_passes(bench: Bench):
    bench.machine.lasts_s = lambda argv: 0.05
    with UndoJournal.open("systemd", FOUND, VERIFICATION) as journal:
        trial = asyncio.ensure_future(restart(journal, bench.service))
        await asyncio.sleep(0.01)
        trial.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trial
        assert bench.machine.restarts == 1 and not journal.record.may_run_changed


async def test_a_service_that_is_back_is_not_said_to_be_changed_where_that_cannot_be_noted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    real = undo_journal._write

    def write(descriptor: int, entry: dict[str, object]) -> None:
        if entry["entry"] == "closed":
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor, entry)

    monkeypatch.setattr(undo_journal, "_write", write)
    with pytest.raises(Unnoted, match="is back as it was found, but the journal"):
        await bench.trial()
    assert bench.machine.everything() == bench.before


async def test_a_draft_is_removed_once_whoever_began_it_must_be_gone(bench: Bench):
    folder = undo_journal.journals_folder()
    folder.mkdir(parents=True)
    ours = f"@{platform.node()}.jsonl"
    alive, dead = folder / f".a{ours}.{os.getpid()}", folder / f".a{ours}.{2**22 + 1}"
    fresh, old = folder / ".a@elsewhere.jsonl.1", folder / ".b@elsewhere.jsonl.2"
    for draft in (alive, dead, fresh, old):
        draft.write_text("")
    os.utime(old, (0, 0))
    tidy()
    assert sorted(folder.iterdir()) == sorted([alive, fresh])


async def test_a_process_that_is_known_to_run_as_found_is_not_restarted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    """As after a reboot: the drop-in was gone before the service started."""
    with UndoJournal.open("systemd", FOUND, VERIFICATION) as journal:
        await change(journal, bench.machine, bench.service.change(FOUND, CANDIDATE))
        await restart(journal, bench.service)

    async def yes() -> bool:
        return True

    monkeypatch.setattr(bench.service, "runs_as_found", yes)
    restarts = bench.machine.restarts
    bench.machine.running = bench.machine.files[UNIT]
    await bench.recover()
    assert bench.machine.restarts == restarts and bench.verifications == 1
    bench.check()
