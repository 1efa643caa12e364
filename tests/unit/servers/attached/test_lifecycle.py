"""AttachedLifecycle against servers that a person restarts, on a port of this machine."""

import asyncio
import json
import os

import pytest

from breakeven.client.endpoint import Endpoint
from breakeven.engines.dialects import dialect_of
from breakeven.errors import UsageError
from breakeven.servers.attached import ask
from breakeven.servers.attached.lifecycle import AttachedLifecycle
from breakeven.servers.attached.person import Terminal
from breakeven.servers.attached.probe import speculates
from breakeven.servers.fake.host import FakeHost
from breakeven.servers.operation_kinds import operation_from_json
from tests.unit.servers.containers import GOLDEN, NGRAM

ARGV = ("vllm", "serve", "m", "--api-key", "sk-mine")
BASELINE, SPECULATING = (
    (GOLDEN.parent / f"vllm-{name}.metrics.txt").read_text() for name in ("baseline", "ngram")
)


class Site:
    """A server as its URL shows it, and the person who restarts it when told to, in some number of looks."""

    def __init__(self, page: str = BASELINE, pages: tuple[str | None, ...] = (), yes: bool = True):
        self.page: str | None = page
        self.pages = list(pages)
        """What comes after each look once the person was told; None is a server that is down."""
        self.told: list[str] = []
        self.asked: list[str] = []
        self.yes = yes

    def check(self):
        pass

    def tell(self, text):
        self.told.append(text)

    async def confirm(self, question):
        self.asked.append(question)
        return self.yes

    async def look(self, endpoint):
        page = self.page
        if self.told and self.pages:
            self.page = self.pages.pop(0)
        if page is None:
            return ask.Seen(False, "refused")
        started = next((x.split()[-1] for x in page.splitlines() if x.startswith("process_start_time")), None)
        return ask.Seen(True, "", speculates(page), started)


@pytest.fixture
def no_waiting(monkeypatch):
    monkeypatch.setattr(ask, "LOOK_S", 0.0)


def attach(site, monkeypatch, argv=ARGV):
    from breakeven.servers.attached import lifecycle as module

    for place in (ask, module):
        monkeypatch.setattr(place, "look", site.look)
    return AttachedLifecycle(Endpoint("localhost:8000"), argv, site)


def started(page, at):
    return f"process_start_time_seconds {at}\n{page}"


def faster(found):
    return dialect_of(found.argv).with_speculation(found.argv, NGRAM)


async def test_the_new_command_line_is_said_and_seen(monkeypatch, no_waiting):
    site = Site(BASELINE, (BASELINE, None, None, SPECULATING))
    life = attach(site, monkeypatch)
    found = await life.inspect()
    (operation,) = life.change(found, faster(found))
    await operation.do(FakeHost())
    await life.restart()
    assert "vllm serve m --api-key '***' --speculative-config" in site.told[0]
    assert site.asked == []
    assert site.pages == []


async def test_a_server_that_came_back_without_speculation_is_waited_for(monkeypatch, no_waiting):
    site = Site(BASELINE, (None, BASELINE, BASELINE, None, SPECULATING))
    life = attach(site, monkeypatch)
    found = await life.inspect()
    await life.change(found, faster(found))[0].do(FakeHost())
    assert site.pages == []


async def test_what_counters_cannot_tell_is_asked(monkeypatch, no_waiting):
    site = Site("", ("", None, ""))
    life = attach(site, monkeypatch)
    found = await life.inspect()
    await life.change(found, faster(found))[0].do(FakeHost())
    assert site.asked == ["Does the server at http://localhost:8000/v1 run like that now?"]


async def test_another_way_to_speculate_is_asked_once_it_was_restarted(monkeypatch, no_waiting):
    argv = (*ARGV, "--speculative-config", '{"method":"ngram","num_speculative_tokens":3}')
    pages = (started(SPECULATING, 1), started(SPECULATING, 1), started(SPECULATING, 2))
    site = Site(started(SPECULATING, 1), pages)
    life = attach(site, monkeypatch, argv)
    found = await life.inspect()
    await life.change(found, faster(found))[0].do(FakeHost())
    assert len(site.asked) == 1
    assert site.pages == []


async def test_put_back_by_the_journal_alone(monkeypatch, no_waiting):
    site = Site(BASELINE, (None, SPECULATING))
    life = attach(site, monkeypatch)
    found = await life.inspect()
    (operation,) = life.change(found, faster(found))
    entry = json.dumps(operation.to_json())
    assert "sk-mine" not in entry
    await operation.do(FakeHost())
    site.told, site.pages = [], [None, BASELINE]
    monkeypatch.setattr(Terminal, "tell", lambda self, text: site.tell(text))
    await operation_from_json(json.loads(entry)).undo(FakeHost())
    assert "vllm serve m --api-key '***'\n" in site.told[0]
    assert site.pages == []


async def test_a_server_that_was_never_restarted_needs_nobody(monkeypatch, no_waiting):
    site = Site(started(BASELINE, 1))
    life = attach(site, monkeypatch)
    found = await life.inspect()
    entry = life.change(found, faster(found))[0].to_json()
    monkeypatch.setattr(Terminal, "tell", lambda self, text: site.tell(text))
    await operation_from_json(entry).undo(FakeHost())
    assert site.told == []


async def test_where_nobody_was_told_anything_nobody_is_asked_to_undo_it(monkeypatch, no_waiting):
    site = Site(BASELINE)
    life = attach(site, monkeypatch)
    found = await life.inspect()
    (operation,) = life.change(found, faster(found))
    told = site.told

    def gone(text):
        raise OSError("the terminal is gone")

    monkeypatch.setattr(site, "tell", gone)
    with pytest.raises(OSError, match="is gone"):
        await operation.do(FakeHost())
    await operation.undo(FakeHost())
    assert told == []


async def test_without_a_command_line_the_flags_are_said(monkeypatch, no_waiting):
    site = Site(BASELINE, (None, SPECULATING))
    life = attach(site, monkeypatch, ())
    found = await life.inspect()
    (operation,) = life.change(found, ("--speculative-config", "{}"))
    await operation.do(FakeHost())
    assert "--speculative-config '{}'" in site.told[0]
    site.told, site.pages = [], [None, BASELINE]
    await operation.undo(FakeHost())
    assert "as it ran before, without" in site.told[0]


async def test_nothing_answers_there(monkeypatch):
    life = attach(Site(None), monkeypatch)
    with pytest.raises(UsageError, match="start the server first"):
        await life.inspect()
    assert (await life.state()).condition == "stopped"


async def test_its_log_is_elsewhere(monkeypatch):
    assert [line async for line in attach(Site(), monkeypatch).logs()] == []


async def test_nobody_can_be_asked_without_a_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(UsageError, match="in a terminal"):
        await Terminal().confirm("Is it?")
    with pytest.raises(UsageError, match="nobody can be asked here to restart the server"):
        await AttachedLifecycle(Endpoint("localhost:8000"), ARGV).check_rights()


@pytest.mark.parametrize(
    ("page", "on"),
    [
        (BASELINE, False),
        (SPECULATING, True),
        ("", None),
        ("llamacpp:prompt_tokens_total 1\n", None),
        ((GOLDEN.parent / "llamacpp-ngram-simple.metrics.txt").read_text(), True),
    ],
)
def test_counters_tell_of_speculation(page, on):
    assert speculates(page) is on


async def test_a_question_that_was_given_up_takes_no_answer_of_the_next(monkeypatch: pytest.MonkeyPatch):
    """As when a trial is interrupted at its question, and asks another one to put the server back."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        first = asyncio.ensure_future(Terminal().confirm("Is it?"))
        await asyncio.sleep(0.01)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        os.write(ours, b"yes\n")
        assert await Terminal().confirm("Is it now?")
        os.write(ours, b"n\n")
        assert not await Terminal().confirm("Is it still?")
    os.close(ours)
