"""Live trials by the command line on a real llama.cpp that a real systemd runs: through, failed, cut off."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from breakeven.trace.run import load_run
from breakeven.trial.store import load_trial
from tests.e2e.command import Command, answered, soon
from tests.e2e.llama_server import PROGRAM
from tests.e2e.systemd_namespace import NamespaceHost, running_systemd, why_not
from tests.e2e.test_live_trial import NGRAM, WORDS, free_port, write_copies

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no systemd can be started: {why_not()}")

PATIENCE_S = 180.0
"""A machine that does much else too takes its time."""
TARGET = "systemd:engine.service"
UNITS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/run/systemd/system")
DROPIN = "/run/systemd/system/engine.service.d/zz-breakeven.conf"
STATE = "/run/state"
LISTENS = "main: server is listening"
ENVIRONMENT = {"XDG_STATE_HOME": STATE, "BREAKEVEN_COMPILED": "0"}
UNIT = """[Service]
Environment=NCCL_ALGO=Ring "NCCL_DEBUG_FILE=/run/100%% of it"
ExecStart=/run/server/llama-server --model /run/server/tiny.gguf \\
    # where it answers
    --port {port} -t 1
Restart=always
RestartSec=100ms
"""


@dataclass(frozen=True)
class Machine:
    """One whose service is asked, changed and put back; paths are those inside."""

    host: NamespaceHost
    port: int

    def does(self, *words: str) -> str:
        done = asyncio.run(self.host.run(words))
        assert done.returncode == 0, done
        return done.stdout

    def breakeven(self, *words: object) -> Command:
        return Command(*words, within=self.host.enter, env=ENVIRONMENT, is_steady=True)

    def trial(self, out: str, *options: object) -> Command:
        asked = ("--prompts", "/run/prompts.jsonl", *WORDS, "--start-limit", 60)
        return self.breakeven("trial", "--server", TARGET, "--yes", *asked, *options, "--out", out, "--json")

    def folder(self, path: str) -> Path:
        return Path(self.host.root + path)

    def process(self) -> tuple[bytes, ...]:
        """What runs as the service: its words, and what it has of the unit's variables."""
        pid = self.does("systemctl", "show", "--property=MainPID", "--value", "engine.service").strip()
        words, variables = (self.host.read(f"/proc/{pid}/{name}") or b"" for name in ("cmdline", "environ"))
        return (*words.split(b"\0"), *sorted(one for one in variables.split(b"\0") if b"NCCL" in one))

    def log(self) -> str:
        return self.does("journalctl", "--unit=engine.service", "--output=cat", "--no-pager")

    def journals(self) -> list[Path]:
        return list(self.folder(f"{STATE}/breakeven/journals").glob("*.jsonl"))


@pytest.fixture(scope="module")
def machine(unhurried_model: Path) -> Iterator[Machine]:
    port = free_port()
    files = {
        "/run/server/tiny.gguf": unhurried_model.read_bytes(),
        "/etc/systemd/system/engine.service": UNIT.format(port=port),
    }
    with running_systemd(files) as host:
        host.write("/run/server/llama-server", PROGRAM.encode(), 0o755)
        made = Machine(host, port)
        write_copies(made.folder("/run/prompts.jsonl"))
        made.does("systemctl", "start", "engine.service")
        assert soon(lambda: LISTENS in made.log(), PATIENCE_S), made.log()
        yield made


@pytest.fixture
def service(machine: Machine) -> Iterator[Machine]:
    """As it was found once the test is over: the files, the process, and nothing to be recovered."""
    files, process = machine.host.tree(*UNITS), machine.process()
    yield machine
    assert machine.host.tree(*UNITS) == files
    assert machine.process() == process
    assert machine.journals() == []


def test_measured_changed_and_put_back(service: Machine):
    before = service.log()
    told = service.trial("/run/whole", *NGRAM, "--repeats", 2).end(PATIENCE_S).succeeded().json()
    assert told["stop_reason"] == "all 2 repeats done"
    assert told["reload_s"]["baseline"] > 0 and told["reload_s"]["candidate"] > 0
    assert told["sides"]["candidate"]["description"] == "llama.cpp, ngram, k 3, n-grams of 3 tokens"
    for side in ("baseline", "candidate"):
        assert sorted(answered(service.folder(f"/run/whole/{side}"))) == ["p0#0", "p0#1", "p1#0", "p1#1"]
    counts = [trace.speculation for trace in load_run(service.folder("/run/whole/candidate")).traces()]
    assert sum(one.drafts or 0 for one in counts if one is not None) > 0
    since = service.log().removeprefix(before)
    assert since.count(LISTENS) == 2


def test_a_candidate_that_does_not_start(service: Machine):
    words = ("--method", "draft-model", "--k", 3, "--draft", "no-such.gguf", "--repeats", 1)
    done = service.trial("/run/failed", *words).end(PATIENCE_S)
    assert (done.code, done.orphans) == (3, ())
    told = done.json()
    assert told["verdict"] == "refused" and told["stopped_after"] == 0
    assert "candidate failed" in told["reason"] and "needs a second model" in told["reason"], told["reason"]
    assert "the service is as it was found" in done.err


def test_a_candidate_that_is_killed_while_it_is_asked(service: Machine):
    command = service.trial("/run/died", *NGRAM, "--repeats", 40)
    assert soon(lambda: is_asked(service, "/run/died"), PATIENCE_S)
    service.does("systemctl", "kill", "--signal=SIGKILL", "engine.service")
    done = command.end(PATIENCE_S)
    assert (done.code, done.orphans) == (3, ())
    reason = done.json()["reason"]
    assert "the candidate's process is failed" in reason
    assert "killed by SIGKILL" in reason or "restarted 1 time by systemd" in reason


def is_asked(machine: Machine, out: str) -> bool:
    return len(answered(machine.folder(f"{out}/candidate"))) > 1


def is_changed(machine: Machine, out: str) -> bool:
    return machine.host.read(DROPIN) is not None


@pytest.mark.parametrize("moment", [is_changed, is_asked])
def test_killed_in_the_middle_it_is_recovered(service: Machine, moment: Callable[[Machine, str], bool]):
    out = f"/run/{moment.__name__}"
    command = service.trial(out, *NGRAM, "--repeats", 40)
    assert soon(lambda: moment(service, out), PATIENCE_S), command.end(PATIENCE_S)
    kill_tool(command)
    assert command.end(PATIENCE_S).code == -signal.SIGKILL
    assert is_changed(service, out) and len(service.journals()) == 1
    listed = service.breakeven("recover", "--list").end(PATIENCE_S).succeeded()
    assert DROPIN in listed.out
    recovered = service.breakeven("recover").end(PATIENCE_S).succeeded()
    assert f"{TARGET} is as it was found" in recovered.err
    assert load_trial(service.folder(out)).stop_reason == "cut off"


def kill_tool(command: Command) -> None:
    """breakeven itself: nsenter only waits for it."""
    outer = command.process.pid
    (tool,) = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
    os.kill(int(tool), signal.SIGKILL)
