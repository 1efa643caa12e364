"""Machines whose services are tried: each kind's fake in the test's own process, reached through a socket by
processes that really are killed.

What a machine answers at its address depends on what runs on it: so a candidate can hang, exit or run out of
memory there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from breakeven.servers.attached.probe import Seen
from breakeven.servers.fake import FakeServer, Script, http_error
from breakeven.servers.fake.docker import FakeDocker
from breakeven.servers.fake.host import FakeHost
from breakeven.servers.fake.kubernetes import FakeCluster
from breakeven.servers.fake.systemctl import FakeSystemd, Ran
from breakeven.servers.operations import Completed
from tests.unit.servers.compose.test_lifecycle import FILE, project, state_of
from tests.unit.servers.containers import golden

QUICK = Script(ttft_s=0.001, tpot_s=0.0005)
HANGS = Script(ttft_s=3600)
UNIT = b"""[Service]
Environment=NCCL_ALGO=Ring
ExecStart=/opt/vllm/bin/vllm serve /models/m \\
    --port 8000
"""
TUNED = b"[Service]\nEnvironment=NCCL_ALGO=Tree\n"
"""A drop-in of somebody else's."""
ETC = "/etc/systemd/system"
SCENARIOS = ("fine", "hangs", "exits", "batch", "kept")
"""The candidate runs well; never answers; exits at its start; dies of its first full batch; or is kept."""


class Site:
    """One machine with one service; `scenario` is what becomes of a candidate."""

    target: str
    host: FakeHost
    second_unit: str | None = None

    def __init__(self, scenario: str) -> None:
        self.scenario = scenario
        self._count = 0
        self._answered: Any = None

    @property
    def is_changed(self) -> bool:
        """Whether what runs is the candidate."""
        raise NotImplementedError

    @property
    def start(self) -> Any:
        """Another one after each restart."""
        raise NotImplementedError

    def snapshot(self) -> Any:
        """All that has to be as it was."""
        raise NotImplementedError

    def crash(self) -> None:
        """The candidate dies."""

    def told(self, text: str) -> None:
        """A person at the terminal was."""

    def answer(self, body: Mapping[str, Any], index: int) -> Script:
        """The first one after a restart comes too early."""
        if self.start != self._answered:
            self._answered = self.start
            return http_error(503, "Loading model")
        if not self.is_changed or self.scenario in ("fine", "kept"):
            return QUICK
        if self.scenario == "batch":
            self._count += 1
            if self._count == 1:
                return QUICK
            self.crash()
            return http_error(500, "CUDA out of memory")
        return HANGS


class Systemd(Site):
    target = "systemd:vllm.service"

    def __init__(self, scenario: str) -> None:
        super().__init__(scenario)
        files = {f"{ETC}/vllm.service": UNIT, f"{ETC}/vllm.service.d/10-tuned.conf": TUNED}
        self.host = self.systemd = FakeSystemd(files, self._program)
        self.systemd.modes[f"{ETC}/vllm.service"] = 0o640
        asyncio.run(self.systemd.run(("systemctl", "start", "--", "vllm.service")))

    def _program(self, argv: tuple[str, ...], environment: Mapping[str, str]) -> Ran:
        assert environment == {"NCCL_ALGO": "Tree"}
        dies = self.scenario == "exits" and "--speculative-config" in argv
        return Ran(("torch.OutOfMemoryError: CUDA out of memory.",), 1) if dies else Ran()

    @property
    def _units(self) -> list[str]:
        return ["vllm.service"] if self.second_unit is None else ["vllm.service", self.second_unit]

    @property
    def is_changed(self) -> bool:
        return any("--speculative-config" in self.systemd.service(unit).argv for unit in self._running())

    @property
    def start(self) -> Any:
        return [(unit, self.systemd.service(unit).pid) for unit in self._running()]

    def _running(self) -> list[str]:
        return [unit for unit in self._units if self.systemd.service(unit).pid]

    def crash(self) -> None:
        for unit in self._running():
            self.systemd.crash(unit, Ran(result="oom-kill"))

    def snapshot(self) -> Any:
        units = {unit: self.systemd.service(unit) for unit in self._units}
        running = {unit: (one.files, one.pid and one.argv, one.active) for unit, one in units.items()}
        return self.systemd.snapshot(), running


class SecondSystemdUnit(Systemd):
    second_unit = "vllm-trial.service"


class Docker(Site):
    target = "docker:vllm"

    def __init__(self, scenario: str) -> None:
        super().__init__(scenario)
        self.docker = FakeDocker(golden("docker-host-network.json"))
        self.host = self.docker.host
        start = self.docker._start

        def started(container: dict[str, Any]) -> None:
            start(container)
            if self.scenario == "exits" and _speculates(container["Config"]):
                self.crash()

        self.docker._start = started  # type: ignore[method-assign]

    @property
    def is_changed(self) -> bool:
        return any(_speculates(one["Config"]) for one in self.docker.containers if one["State"]["Running"])

    @property
    def start(self) -> Any:
        running = [one for one in self.docker.containers if one["State"]["Running"]]
        return [(one["Id"], one["State"]["StartedAt"]) for one in running]

    def crash(self) -> None:
        for one in self.docker.containers:
            if _speculates(one["Config"]):
                died = {"Status": "exited", "Running": False, "ExitCode": 137, "OOMKilled": True}
                one["State"] = {**one["State"], **died}

    def snapshot(self) -> Any:
        return self.docker.snapshot()


class Compose(Docker):
    target = f"compose:{FILE}#vllm"

    def __init__(self, scenario: str) -> None:
        super().__init__(scenario)
        start = self.docker._start
        self.docker = project()
        self.docker._start, self.host = start, self.docker.host  # type: ignore[method-assign]

    def snapshot(self) -> Any:
        return state_of(self.docker)


class Cluster(Site):
    target = "kubernetes:llm/deployment/chat"

    def __init__(self, scenario: str) -> None:
        super().__init__(scenario)
        self.cluster = FakeCluster(golden("kubernetes-deployment-sidecar.json"))
        self.host = self.cluster.host
        self.before = self.cluster.spec()
        roll_out = self.cluster._roll_out

        def rolled_out() -> None:
            roll_out()
            if self.scenario == "exits" and self.is_changed:
                self.crash()

        self.cluster._roll_out = rolled_out  # type: ignore[method-assign]

    @property
    def is_changed(self) -> bool:
        return self.cluster.spec() != self.before

    @property
    def start(self) -> Any:
        return [pod["metadata"]["name"] for pod in self.cluster.pods]

    def crash(self) -> None:
        ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
        for pod in self.cluster.pods:
            for status in pod["status"]["containerStatuses"]:
                status |= {"ready": False, "state": ended}

    def snapshot(self) -> Any:
        return self.cluster.spec()


class Attached(Site):
    """Somebody restarts it when told to, and what it says of itself shows how it runs."""

    target = "attached:"
    """With its URL behind it."""

    def __init__(self, scenario: str) -> None:
        super().__init__(scenario)
        self.host = FakeHost()
        self.starts = [False]
        """Each, by whether with speculation."""

    @property
    def is_changed(self) -> bool:
        return self.starts[-1]

    @property
    def start(self) -> Any:
        return len(self.starts)

    def told(self, text: str) -> None:
        self.starts.append("--speculative-config" in text)

    def seen(self) -> Seen:
        return Seen(True, "", self.starts[-1], str(len(self.starts)))

    def snapshot(self) -> Any:
        return self.starts[-1]


SITES: Mapping[str, Callable[[str], Site]] = {
    "systemd": Systemd,
    "second unit": SecondSystemdUnit,
    "docker": Docker,
    "compose": Compose,
    "kubernetes": Cluster,
    "attached": Attached,
}


def _speculates(config: Mapping[str, Any]) -> bool:
    return "--speculative-config" in [*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())]


# How other processes reach it


class Reached:
    """A Host in another process, which asks for all of it through the machine's socket."""

    look_s = 0.02

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, name: str, *given: Any) -> Any:
        with Client(self.address, "AF_UNIX") as connection:
            connection.send((name, given))
            is_fine, answer = connection.recv()
        if not is_fine:
            raise answer
        return answer

    async def run(
        self,
        argv: tuple[str, ...],
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        hold_stdin: bool = False,
    ) -> Completed:
        done = self.ask("run", argv, stdin)
        assert isinstance(done, Completed)
        return done

    async def lines(self, argv: tuple[str, ...]) -> Any:
        """Nothing, for ever."""
        await asyncio.sleep(3600)
        yield ""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in ("read", "mode", "missing_folders", "write", "remove", "told", "seen"):
            raise AttributeError(name)
        return lambda *given: self.ask(name, *given)


@contextmanager
def served(site: Site, folder: Path) -> Iterator[tuple[str, str]]:
    """The socket of the machine, and the URL of its service."""
    address = str(folder / "machine")
    with Listener(address, "AF_UNIX") as listener, FakeServer(site.answer).in_thread() as server:
        thread = threading.Thread(target=_serve, args=(listener, site), daemon=True)
        thread.start()
        yield address, server.url
        with Client(address, "AF_UNIX") as last:
            last.send(None)
        thread.join()


def _serve(listener: Listener, site: Site) -> None:
    while True:
        with listener.accept() as connection:
            try:
                asked = connection.recv()
            except EOFError:
                continue
            if asked is None:
                return
            _answer(connection, site, *asked)


def _answer(connection: Connection, site: Site, name: str, given: tuple[Any, ...]) -> None:
    try:
        if name in ("told", "seen"):
            answer: Any = getattr(site, name)(*given)
        elif name == "run":
            answer = asyncio.run(site.host.run(*given))
        else:
            answer = getattr(site.host, name)(*given)
    except Exception as error:
        answer = error
    with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked may have been killed
        connection.send((not isinstance(answer, Exception), answer))
