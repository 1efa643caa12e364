"""A live trial on the service of a small machine in a folder, in a process that can be sent signals.

`python -m tests.e2e.live_on_units MACHINE URL OUT`. The machine is that of test_recover_cli.py: a unit,
drop-ins, and what its supervisor has loaded and runs. What happens is told line by line on stdout.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from breakeven.client import selfcheck
from breakeven.client.endpoint import Endpoint
from breakeven.client.loop import run
from breakeven.engines.speculation import SpeculationConfig
from breakeven.engines.vllm import Vllm
from breakeven.servers.host import LocalHost
from breakeven.servers.lifecycle import Found
from breakeven.servers.operation_kinds import RunCommand, WriteFile
from breakeven.servers.operations import Operation
from breakeven.servers.systemd.lifecycle import SystemdLifecycle
from breakeven.trace.records import RequestTrace
from breakeven.trial.live import LivePlan, Service, Watch, measure_baseline, try_candidate
from breakeven.trial.plan import TrialPlan
from breakeven.workload.prompts import Prompt, Sampling, Workload
from tests.e2e.killed_trial import DROPIN, RELOAD, TARGET

PROMPTS = Workload("three", tuple(Prompt(f"p{i}", "c", text=f"prompt number {i}") for i in range(3)))
NGRAM = SpeculationConfig("ngram", k=3, min_n=2, max_n=4)
PLAN = LivePlan(TrialPlan(PROMPTS, Sampling(max_tokens=32), repeats=4), (NGRAM,), start_limit_s=60.0)


class Unit(SystemdLifecycle):
    """Changed as in killed_trial.py: what this machine's systemctl knows is enough for that."""

    def __init__(self, host: LocalHost, machine: Path) -> None:
        super().__init__(host, TARGET.partition(":")[2], user=True)
        self.machine = machine

    async def check_rights(self) -> None:
        return

    async def inspect(self) -> Found:
        return Found(TARGET, ("vllm", "serve", "m"))

    def change(self, found: Found, argv: tuple[str, ...]) -> tuple[Operation, ...]:
        path = str(self.machine / "units" / DROPIN)
        dropin = WriteFile.on(self.host, path, b"ExecStart=with speculation\n", 0o600)
        return (RunCommand(None, RELOAD), dropin, RunCommand(RELOAD))


class Telling(Watch):
    def begins(self, part: str, number: int, of: int, requests: int) -> None:
        print("part", number, part, flush=True)

    def answered(self, side: str, trace: RequestTrace) -> None:
        print("answered", side, trace.id, flush=True)

    def said(self, line: str) -> None:
        print("said", line, flush=True)


async def trial(machine: Path, url: str, out: Path) -> None:
    host = LocalHost()
    unit = Unit(host, machine)
    service = Service(unit, Vllm(), host, await unit.inspect(), Endpoint(url), {"sudo": False})
    await measure_baseline(service, PLAN, out, Telling())
    result = await try_candidate(service, PLAN, NGRAM, out, Telling())
    print("verdict", result.verdict.outcome, flush=True)


if __name__ == "__main__":
    selfcheck.LEAST_LAG_MS = math.inf
    run(trial(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
