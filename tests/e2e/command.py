"""`breakeven` as a user runs it: a process of its own, whose end and whose children are looked at."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakeven.trace.run import Run, load_run

PATIENCE_S = 180
MARK = "BREAKEVEN_TEST_MARK"
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
"""Linux prctl(2) and capabilities(7)."""
PLAIN, STEADY = ("-m", "breakeven"), ("-P", str(Path(__file__).with_name("steady.py")))
PROMPTS = ("alpha alpha alpha", "what is a river?", "write a poem")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str
    orphans: tuple[int, ...]
    """Processes that it started, directly or not, and that outlived it by seconds."""

    def json(self) -> dict[str, Any]:
        """All of stdout as the one JSON object that it must be."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    def succeeded(self) -> Done:
        assert self.code == 0, self
        assert "Traceback" not in self.err
        assert self.orphans == ()
        return self

    def refused(self, code: int, *fragments: str) -> str:
        """The one message that it ended with: its exit code, no traceback, no orphan, what to do in it."""
        assert self.code == code, self
        assert "Traceback" not in self.err + self.out, self
        assert self.orphans == ()
        messages = [line for line in self.err.splitlines() if line.startswith("breakeven: ")]
        assert len(messages) == 1, self
        assert messages[0] == self.err.splitlines()[-1], self
        for fragment in fragments:
            assert fragment in messages[0], (fragment, messages[0])
        return messages[0]


Ends = Mapping[str, Future[Done]]


class Command:
    """A running `breakeven`."""

    def __init__(
        self,
        *words: object,
        within: Sequence[str] = (),
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        in_background: bool = False,
        most_file_bytes: int | None = None,
        obeys_modes: bool = False,
        stdin: int | None = None,
        is_steady: bool = False,
    ) -> None:
        """`within` is a command that runs it, such as nsenter. `in_background` ignores Ctrl-C, as a shell
        script has it for `command &`; with `obeys_modes` also root may not write where a folder's mode
        forbids it. `is_steady`: see steady.py.
        """
        self.mark = uuid.uuid4().hex

        def prepare() -> None:
            if in_background:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            if most_file_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most_file_bytes, most_file_bytes))
            if obeys_modes and os.geteuid() == 0:
                ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)

        self.process = subprocess.Popen(
            [*within, sys.executable, *(STEADY if is_steady else PLAIN), *map(str, words)],
            cwd=cwd,
            env={**_plain_environment(), **(env or {}), MARK: self.mark},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=prepare if in_background or most_file_bytes or obeys_modes else None,
        )

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def family(self) -> list[int]:
        """Living processes of this command, its own among them, wherever they were put."""
        return [pid for pid in _pids() if self._is_ours(pid)]

    def children(self) -> list[int]:
        return [pid for pid in self.family() if pid != self.process.pid]

    def end(self, patience_s: float = PATIENCE_S) -> Done:
        try:
            out, err = self.process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        gone = soon(lambda: not self.family(), patience_s=10)
        return Done(self.process.returncode, out, err, () if gone else tuple(self.family()))

    def _is_ours(self, pid: int) -> bool:
        try:
            return f"{MARK}={self.mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False


def breakeven(*words: object, **how: Any) -> Done:
    """Run to the end."""
    return Command(*words, **how).end()


@contextlib.contextmanager
def run_ahead(commands: Mapping[str, tuple[Sequence[object], Mapping[str, Any]]]) -> Iterator[Ends]:
    """Runs commands, as many at once as there are cores, while tests wait for one after the other."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {name: pool.submit(breakeven, *words, **how) for name, (words, how) in commands.items()}
        pool.shutdown(cancel_futures=True)


def soon(is_so: Callable[[], object], patience_s: float = PATIENCE_S) -> bool:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if is_so():
            return True
        time.sleep(0.02)
    return False


def answered(folder: Path) -> tuple[str, ...]:
    """Ids of the requests in a run folder, in their order; none where there is no run yet."""
    if not (folder / "run.json").exists():
        return ()
    return tuple(trace.id for trace in load_run(folder).traces())


def status_of(folder: Path) -> str:
    return load_run(folder).meta.status


def traces_of(folder: Path) -> dict[str, Any]:
    run: Run = load_run(folder)
    return {trace.id: trace for trace in run.traces()}


def write_prompts(path: Path, n: int = len(PROMPTS)) -> Path:
    """A JSONL file of prompts p0, p1, … in two categories."""
    lines = [
        json.dumps({"id": f"p{i}", "category": "odd" if i % 2 else "even", "prompt": f"{PROMPTS[i % 3]} {i}"})
        for i in range(n)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def without(module: str, folder: Path) -> dict[str, str]:
    """An environment in which importing the module fails, as it does where it is not installed."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(f"raise ImportError('no {module} here')\n")
    return {"PYTHONPATH": str(folder)}


@contextlib.contextmanager
def fake_process(*words: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A fake server in a process of its own, which can be killed: its URL and itself."""
    process = subprocess.Popen(
        [sys.executable, "-m", "breakeven.servers.fake", "--exit-with-stdin", *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["url"], process
    finally:
        process.kill()
        process.communicate()


def _plain_environment() -> dict[str, str]:
    proxies = {"http_proxy", "https_proxy", "all_proxy"}
    return {name: value for name, value in os.environ.items() if name.lower() not in proxies}


def _pids() -> list[int]:
    try:
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    except OSError:
        return []
