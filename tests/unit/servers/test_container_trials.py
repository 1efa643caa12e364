"""Trials in containers and clusters with a journal: there and back, or recovered by another process."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from breakeven.servers.fake.docker import FakeDocker
from breakeven.servers.fake.host import Killed
from breakeven.servers.fake.kubernetes import FakeCluster
from breakeven.servers.lifecycle import Lifecycle
from breakeven.servers.recovery import change, pending, put_back, restart, undo_all
from breakeven.servers.targets import lifecycle_of
from breakeven.servers.undo_journal import UndoJournal
from breakeven.servers.undo_record import Verification
from tests.unit.servers.compose.test_lifecycle import FILE, project, state_of
from tests.unit.servers.containers import candidate, golden

VERIFICATION = Verification("http://127.0.0.1:8000/v1")


def docker() -> tuple[str, FakeDocker, Callable[[Any], Any]]:
    return "docker:vllm", FakeDocker(golden("docker-host-network.json")), FakeDocker.snapshot


def compose() -> tuple[str, FakeDocker, Callable[[Any], Any]]:
    return f"compose:{FILE}#vllm", project(), state_of


def kubernetes() -> tuple[str, FakeCluster, Callable[[Any], Any]]:
    cluster = FakeCluster(golden("kubernetes-deployment-sidecar.json"))
    return "kubernetes:llm/deployment/chat", cluster, FakeCluster.spec


@pytest.fixture(params=[docker, compose, kubernetes])
def site(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("platformdirs.user_state_dir", lambda *a, **k: str(tmp_path / "breakeven"))
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    return request.param()


async def answers(verification: Verification, lifecycle: Lifecycle, is_restarted: bool) -> None:
    assert verification == VERIFICATION
    assert (await lifecycle.state()).condition == "running"


async def test_there_and_back_twice(site):
    target, fake, snapshot = site
    before, lifecycle = snapshot(fake), lifecycle_of(target, fake.host)
    found = await lifecycle.inspect()
    with UndoJournal.open(lifecycle.kind, found, VERIFICATION) as journal:
        for _ in range(2):
            await change(journal, fake.host, lifecycle.change(found, candidate(found)))
            await restart(journal, lifecycle)
            assert snapshot(fake) != before
            assert (await lifecycle.state()).condition == "running"
            await undo_all(journal, fake.host, lambda line: None)
            await restart(journal, lifecycle)
            assert snapshot(fake) == before
        await put_back(journal, fake.host, lifecycle, answers)
    assert pending() == ()


async def test_another_process_recovers_it_and_the_journal_holds_no_secret(site):
    target, fake, snapshot = site
    before, lifecycle = snapshot(fake), lifecycle_of(target, fake.host)
    found = await lifecycle.inspect()
    with pytest.raises(Killed), UndoJournal.open(lifecycle.kind, found, VERIFICATION) as journal:
        await change(journal, fake.host, lifecycle.change(found, candidate(found)))
        raise Killed
    (left,) = pending()
    text = left.path.read_text()
    assert json.loads(text.partition("\n")[0])["entry"] == "opened"
    for secret in ("hf_notarealtoken", "sk-notarealkey"):
        assert secret not in text
    with UndoJournal.adopt(left.path) as journal:
        await put_back(journal, fake.host, lifecycle_of(journal.record.target, fake.host), answers)
    assert snapshot(fake) == before
    assert pending() == ()
