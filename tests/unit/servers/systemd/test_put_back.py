"""Services that are put back: restarted wherever the changed process may still run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from breakeven.servers import recovery
from breakeven.servers.fake.systemctl import FakeSystemd, Ran
from breakeven.servers.lifecycle import Lifecycle, State
from breakeven.servers.looks import Looks
from breakeven.servers.systemd import SystemdLifecycle
from breakeven.servers.undo_journal import UndoJournal
from breakeven.servers.undo_record import Verification

VERIFICATION = Verification("http://127.0.0.1:8000", "m")


@pytest.mark.parametrize(
    ("start", "flags"),
    [
        ("Environment=LLAMA_ARG_MODEL=/m.gguf\nExecStart=/opt/llama-server", ("--spec-type", "ngram-simple")),
        ("Environment=MODEL_ID=m\nExecStart=/opt/text-generation-launcher", ("--speculate", "3")),
    ],
)
async def test_a_command_line_without_arguments(
    start: str, flags: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Set up by its environment alone, what answers after the undo is the candidate still."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    systemd = FakeSystemd({"/etc/systemd/system/x.service": f"[Service]\n{start}\n".encode()})
    lifecycle = SystemdLifecycle(systemd, "x")
    await lifecycle.restart()
    found = await lifecycle.inspect()
    seen: list[tuple[str, ...]] = []

    async def verify(verification: Verification, lifecycle: Lifecycle, is_restarted: bool) -> None:
        seen.append(systemd.service("x.service").argv)

    with UndoJournal.open("systemd", found, VERIFICATION) as journal:
        await recovery.change(journal, systemd, lifecycle.change(found, (*found.argv, *flags)))
        await recovery.restart(journal, lifecycle)
        assert systemd.service("x.service").argv == (*found.argv, *flags)
        await recovery.put_back(journal, systemd, lifecycle, verify)
    assert seen == [found.argv]


async def test_what_systemd_itself_brought_back_runs_as_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It restarts a candidate that died as soon as its drop-in is gone: that is the baseline, no crash."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def program(argv: tuple[str, ...], environment: Mapping[str, str]) -> Ran:
        return Ran(exit_code=1 if "--bad" in argv else None)

    class Quick(SystemdLifecycle):
        async def runs_as_found(self) -> bool:
            systemd.advance(1)
            return await super().runs_as_found()

    unit = b"[Service]\nRestart=on-failure\nExecStart=/opt/vllm serve m\n"
    systemd = FakeSystemd({"/etc/systemd/system/x.service": unit}, program)
    lifecycle = Quick(systemd, "x")
    await lifecycle.restart()
    found = await lifecycle.inspect()
    seen: list[str] = []

    async def verify(verification: Verification, lifecycle: Lifecycle, is_restarted: bool) -> None:
        seen.append((await Looks(lifecycle, is_returning=True).state() or State("failed")).condition)
        assert not is_restarted

    with UndoJournal.open("systemd", found, VERIFICATION) as journal:
        await recovery.change(journal, systemd, lifecycle.change(found, (*found.argv, "--bad")))
        await recovery.restart(journal, lifecycle)
        assert (await lifecycle.state()).condition == "failed"
        await recovery.put_back(journal, systemd, lifecycle, verify)
    assert systemd.service("x.service").restarts == 1
    assert [*seen, (await lifecycle.state()).condition] == ["running", "running"]
