"""`breakeven recover` after a trial that was really killed with -9, at every step; what it says and refuses.

The service is a systemd user unit as far as breakeven can see: `systemctl` and `journalctl` are programs of
the test, whose machine is a few files.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from breakeven.servers.fake import FakeServer, Script
from tests.e2e.command import Done, breakeven
from tests.e2e.killed_trial import DROPIN, TARGET

ROOT = Path(__file__).parents[2]
STEPS = 59
RUNS_CHANGED = 24
"""The step after the restart with the change."""
SYSTEMCTL = """#!{python}
import os, sys, time
from pathlib import Path

machine = Path(os.environ["MACHINE"])
words = [word for word in sys.argv[1:] if not word.startswith("-")]
dropins = sorted((machine / "units").glob("vllm.service.d/*.conf"))
now = (dropins[-1] if dropins else machine / "units" / "vllm.service").read_text()
if words[0] == "daemon-reload":
    (machine / "loaded").write_text(now)
elif words[0] == "restart":
    (machine / "running").write_text((machine / "loaded").read_text())
    with (machine / "restarts").open("a") as restarts:
        restarts.write("restart\\n")
elif words[0] == "show":
    up_s = float(Path("/proc/uptime").read_text().split()[0])
    age_s = time.time() - (machine / "running").stat().st_mtime
    stamp = int((up_s - age_s) * 1e6)
    print("LoadState=loaded\\nActiveState=active\\nSubState=running\\nResult=success\\nNRestarts=0\\nJob=0")
    print(f"StateChangeTimestampMonotonic={{stamp}}\\nInactiveExitTimestampMonotonic={{stamp}}")
elif words[0] != "reset-failed":
    sys.exit(f"unknown command {{words}}")
"""
JOURNALCTL = """#!{python}
print('{{"MESSAGE": "INFO:     Application startup complete."}}')
"""


@dataclass(frozen=True)
class Machine:
    """A service, its supervisor, and the state folder of its user."""

    folder: Path
    url: str

    @classmethod
    def make(cls, folder: Path, url: str) -> Machine:
        units = folder / "units"
        units.mkdir(parents=True)
        for name, text in {
            "units/vllm.service": "as it was",
            "loaded": "as it was",
            "running": "as it was",
        }.items():
            (folder / name).write_text(text)
        (folder / "bin").mkdir()
        for name, text in {"systemctl": SYSTEMCTL, "journalctl": JOURNALCTL}.items():
            program = folder / "bin" / name
            program.write_text(text.format(python=sys.executable))
            program.chmod(0o755)
        return cls(folder, url)

    @property
    def environment(self) -> Mapping[str, str]:
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return {"PATH": path, "MACHINE": str(self.folder), "XDG_STATE_HOME": str(self.folder / "state")}

    @property
    def journals(self) -> list[Path]:
        return sorted((self.folder / "state").glob("breakeven/journals/*.jsonl"))

    def service(self) -> dict[str, tuple[int, bytes | None]]:
        """All of the unit's folder, byte by byte, and what is loaded and runs."""
        paths = [*(self.folder / "units").rglob("*"), self.folder / "loaded", self.folder / "running"]
        return {
            str(path.relative_to(self.folder)): (
                stat.S_IMODE(path.stat().st_mode),
                path.read_bytes() if path.is_file() else None,
            )
            for path in paths
        }

    def trial(self, step: int | str | None = None, **limits: object) -> subprocess.CompletedProcess[str]:
        words = [] if step is None else [str(step)]
        return subprocess.run(
            [sys.executable, "-m", "tests.e2e.killed_trial", str(self.folder), self.url, *words],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, **self.environment},
            timeout=60,
            check=False,
            **limits,
        )

    def breakeven(self, *words: str) -> Done:
        return breakeven(*words, env=self.environment)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with FakeServer(Script(ttft_s=0.001, tpot_s=0.0005)).in_thread() as server:
        yield server.url


@pytest.fixture
def machine(tmp_path: Path, url: str) -> Machine:
    return Machine.make(tmp_path / "machine", url)


@pytest.fixture
def cut_off(machine: Machine) -> Machine:
    assert machine.trial(RUNS_CHANGED).returncode == -9
    assert machine.service()["running"][1] == b"ExecStart=with speculation\n"
    return machine


def test_a_trial_that_is_not_killed_has_so_many_steps(machine: Machine):
    before = machine.service()
    assert machine.trial().stdout.strip() == str(STEPS)
    assert machine.service() == before
    assert machine.journals == []


def test_killed_at_every_step_and_put_back(tmp_path: Path, url: str):
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        changed = list(pool.map(lambda step: kill_and_recover(tmp_path / str(step), url, step), range(STEPS)))
    assert sum(changed) > STEPS / 3


def kill_and_recover(folder: Path, url: str, step: int) -> bool:
    """Whether the kill left anything to put back."""
    machine = Machine.make(folder, url)
    before = machine.service()
    killed = machine.trial(step)
    assert killed.returncode == -9, (step, killed.stderr)
    left = machine.service()
    machine.breakeven("recover").succeeded()
    assert machine.service() == before, step
    assert [path.name for path in (folder / "state/breakeven/journals").glob("*")] in ([], ["closed"]), step
    return left != before


def test_every_call_reminds_until_it_is_put_back(cut_off: Machine):
    note = f"note: {TARGET} is not as a trial that was cut off found it: type  breakeven recover\n"
    plain = cut_off.breakeven("drafters", "--json").succeeded()
    assert plain.json()
    assert plain.err.count("note: ") == 1
    assert note in plain.err
    assert note not in cut_off.breakeven("recover", "--list").succeeded().err
    cut_off.breakeven("recover").succeeded()
    assert "note: " not in cut_off.breakeven("drafters", "--json").succeeded().err


def test_a_state_folder_that_cannot_be_read_stops_nothing(machine: Machine):
    (machine.folder / "state").write_text("a file")
    machine.breakeven("drafters", "--json").succeeded()
    journals = machine.folder / "other" / "breakeven" / "journals"
    journals.mkdir(parents=True)
    (journals / "x@y.jsonl").write_bytes(b"\xff\xfe nonsense\n")
    environment = {**machine.environment, "XDG_STATE_HOME": str(machine.folder / "other")}
    assert "note: x@y" in breakeven("drafters", "--json", env=environment).succeeded().err
    breakeven("recover", env=environment).refused(3, "is damaged")


def test_list_shows_and_touches_nothing(cut_off: Machine):
    left = cut_off.service()
    (entry,) = cut_off.breakeven("recover", "--list", "--json").succeeded().json()["pending"]
    assert entry["target"] == TARGET
    assert entry["may_run_changed"] is True
    assert entry["begun"][1] == f"write {cut_off.folder / 'units' / DROPIN}"
    shown = cut_off.breakeven("recover", "--list").succeeded().out
    assert DROPIN in shown
    assert cut_off.service() == left


def test_json_says_what_was_put_back(cut_off: Machine):
    done = cut_off.breakeven("recover", TARGET, "--json").succeeded()
    assert done.json()["recovered"] == [
        {"id": done.json()["recovered"][0]["id"], "target": TARGET, "problem": None}
    ]
    assert cut_off.breakeven("recover", "--json").succeeded().json() == {"recovered": []}


def test_a_name_that_is_not_pending_is_refused(cut_off: Machine):
    cut_off.breakeven("recover", "docker:other").refused(2, "docker:other", TARGET)


def test_a_baseline_that_does_not_answer_stays_pending(cut_off: Machine, url: str):
    (journal,) = cut_off.journals
    text = journal.read_text()
    journal.write_text(text.replace(url, "http://127.0.0.1:9"))
    (cut_off.folder / "bin" / "journalctl").write_text(f"#!{sys.executable}\n")
    cut_off.breakeven("recover", "--start-limit", "1").refused(3, "not put back yet", "nothing answers")
    assert len(cut_off.journals) == 1
    assert cut_off.service()["running"][1] == b"as it was"
    assert not (cut_off.folder / "units" / DROPIN).exists()


def test_a_key_that_is_gone_stops_only_the_completion(cut_off: Machine):
    (journal,) = cut_off.journals
    journal.write_text(journal.read_text().replace('"api_key_env":null', '"api_key_env":"GONE_KEY"'))
    cut_off.breakeven("recover").refused(3, "not put back yet", "GONE_KEY")
    assert cut_off.service()["running"][1] == b"as it was"
    assert not (cut_off.folder / "units" / DROPIN).exists()


def test_what_was_put_right_by_hand_can_be_forgotten(cut_off: Machine):
    left = cut_off.service()
    cut_off.breakeven("recover", "--forget").refused(2, "say what to forget")
    cut_off.breakeven("recover", "--forget", TARGET).succeeded()
    assert cut_off.service() == left
    assert cut_off.journals == []


def test_a_second_trial_waits_for_the_recovery(cut_off: Machine):
    again = cut_off.trial()
    assert again.returncode == 1
    assert "type  breakeven recover" in again.stderr


@pytest.mark.parametrize("most_bytes", [0, 200, 1500])
def test_a_disk_that_is_full_before_or_while_it_is_noted(machine: Machine, most_bytes: int):
    """The journal may not grow further: what could not be noted was not done."""
    import resource

    before = machine.service()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))  # noqa: E731
    ended = machine.trial(preexec_fn=limit)
    assert ended.returncode == 1
    assert "StorageError" in ended.stderr
    machine.breakeven("recover").succeeded()
    assert machine.service() == before
    if most_bytes < 500:
        assert not (machine.folder / "restarts").exists()


def test_a_disk_on_which_the_services_own_file_does_not_fit(machine: Machine):
    """Half of it was written: nothing of it is left, and nothing was restarted."""
    before = machine.service()
    ended = machine.trial("full")
    assert ended.returncode == 1
    assert "StorageError" in ended.stderr and DROPIN in ended.stderr
    machine.breakeven("recover").succeeded()
    assert machine.service() == before
    assert not (machine.folder / "restarts").exists()
