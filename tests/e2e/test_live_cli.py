"""The examples of trials on live services, on a machine in memory: what they print is what is checked in.

`python -m tests.e2e.test_live_cli` writes examples/systemd-vllm/dry-run.txt anew.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from breakeven.cli import live_service
from breakeven.cli.trial import trial
from breakeven.client import selfcheck
from breakeven.servers import readiness
from breakeven.servers.fake import FakeServer, Script, vllm_script
from breakeven.servers.fake.presets import http_error
from breakeven.servers.fake.systemctl import FakeSystemd, Ran
from breakeven.servers.start_times import keep_start_s
from breakeven.trial import confounded

EXAMPLES = Path(__file__).parents[2] / "examples"
VLLM, GATE = EXAMPLES / "systemd-vllm", EXAMPLES / "ci-gate"
DRY_RUN = VLLM / "dry-run.txt"
README = EXAMPLES.parent / "README.md"
UNITS = "/etc/systemd/system"
TARGET = "systemd:vllm.service"
WORDS = ("--server", TARGET, "--method", "ngram", "--k", "5", "--min-n", "2", "--max-n", "4", "--dry-run")
READING = ("show", "show-environment")
RELOADS_S = {True: 90 * 60.0, False: 30 * 60.0}
"""With speculation and without, as the experiment had them."""


def machine() -> FakeSystemd:
    """One on which the service of the example runs."""
    files = [VLLM / "vllm.service", *sorted((VLLM / "vllm.service.d").iterdir())]
    systemd = FakeSystemd({f"{UNITS}/{path.relative_to(VLLM)}": path.read_bytes() for path in files})
    asyncio.run(systemd.run(("systemctl", "start", "--", "vllm.service")))
    systemd.commands.clear()
    return systemd


def dry_run(patch: pytest.MonkeyPatch, state: Path, *words: object) -> tuple[str, FakeSystemd]:
    """What it prints, and the machine afterwards."""
    systemd = machine()
    patch.setattr("platformdirs.user_state_dir", lambda *a, **k: str(state))
    patch.setattr(live_service, "host_of", lambda sudo: systemd)
    for changed, seconds in RELOADS_S.items():
        keep_start_s(TARGET, changed, seconds)
    result = CliRunner().invoke(trial, [str(word) for word in words], standalone_mode=False)
    assert result.exception is None and result.return_value == 0, result
    return result.stdout, systemd


def test_the_example_is_what_a_dry_run_prints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    said, _ = dry_run(monkeypatch, tmp_path, *WORDS)
    assert said == DRY_RUN.read_text(), "type  python -m tests.e2e.test_live_cli  and look at the difference"


def test_the_readme_shows_lines_of_it():
    section = README.read_text().partition("## On a live service")[2].partition("\n## ")[0]
    shown = section.partition("```text\n")[2].partition("\n```")[0].splitlines()
    assert len(shown) > 10 and set(shown) - {"…"} <= set(DRY_RUN.read_text().splitlines())


def test_a_dry_run_touches_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    _, systemd = dry_run(monkeypatch, tmp_path, *WORDS)
    assert systemd.files == machine().files
    assert all(set(argv) & {*READING, "find", "id", "stat"} for argv in systemd.commands), systemd.commands


def test_every_tuned_variable_stays_and_no_secret_is_printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    said, _ = dry_run(monkeypatch, tmp_path, *WORDS)
    assert "+    --speculative-config" in said
    removed = [line for line in said.splitlines() if line.lstrip().startswith("-") and "NCCL" in line]
    assert removed == []


def test_the_gate_is_a_plan_that_is_understood(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    said, _ = dry_run(monkeypatch, tmp_path, "--plan", GATE / "gate.toml", "--dry-run")
    assert "ngram, k 5, n-grams of 2 to 4 tokens" in said and "suffix, k 8" in said


# The whole trial


UNIT = """[Service]
Environment=NCCL_ALGO=Ring
ExecStart=/opt/vllm/bin/vllm serve /models/m --port {port}
"""


class Machine:
    """One whose service answers at a fake server, whatever it is started with; and what was seen on it."""

    def __init__(self, url: str, exit_code: int | None = None) -> None:
        """`exit_code` is that of a start with speculation; None lives."""
        self.exit_code = exit_code
        self.starts: list[bool] = []
        """Whether with speculation."""
        self.is_loading = False
        files = {f"{UNITS}/vllm.service": UNIT.format(port=url.rpartition(":")[2]).encode()}
        self.systemd = FakeSystemd(files, self._start)
        self.systemd.service("vllm.service")

    def _start(self, argv: tuple[str, ...], environment: Mapping[str, str]) -> Ran:
        assert environment == {"NCCL_ALGO": "Ring"}
        self.starts.append("--speculative-config" in argv)
        self.is_loading = len(self.starts) > 1
        fails = self.starts[-1] and self.exit_code is not None
        return Ran(("torch.OutOfMemoryError: CUDA out of memory.",), self.exit_code) if fails else Ran()


def tried(
    patch: pytest.MonkeyPatch, folder: Path, exit_code: int | None, *words: object
) -> tuple[Result, Machine]:
    """A whole trial, and the machine afterwards: as it was."""
    script = vllm_script(ttft_s=0.002, tpot_s=0.007, n_tokens=16)

    def answer(_body: Mapping[str, Any], _index: int) -> Script:
        """The first one after a restart comes too early."""
        is_loading, on.is_loading = on.is_loading, False
        return http_error(503, "Loading model") if is_loading else script

    with FakeServer(answer).in_thread() as server:
        on = Machine(server.url, exit_code)
        asyncio.run(on.systemd.run(("systemctl", "start", "vllm.service")))
        before = dict(on.systemd.files)
        patch.setattr("platformdirs.user_state_dir", lambda *a, **k: str(folder / "state"))
        patch.setattr(live_service, "host_of", lambda sudo: on.systemd)
        patch.setattr(readiness, "PAUSE_S", 0.01)
        patch.setattr(confounded, "QUIET_S", 0.01)
        patch.setattr(selfcheck, "LEAST_LAG_MS", 1e9)
        given = [*WORDS[:-1], "--prompts", "brief", "--repeats", 2, "--max-tokens", 16, "--yes", *words]
        result = CliRunner().invoke(trial, list(map(str, given)), standalone_mode=False)
        assert on.systemd.files == before
        assert on.systemd.service("vllm.service").active == "active"
        assert not list((folder / "state").glob("journals/*.jsonl"))
    return result, on


def test_a_trial_leaves_the_service_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    model = ("--geometry", "llama-3.1-8b", "--hardware", "h100-sxm")
    out = tmp_path / "out"
    result, on = tried(monkeypatch, tmp_path, None, *model, "--out", out, "--json")
    assert result.exception is None and result.return_value == 0, result
    told = json.loads(result.stdout)
    assert on.starts == [False, True, False]
    assert told["verdict"] != "refused" or "the client" in told["reason"], told["reason"]
    assert told["reload_s"]["candidate"] > 0 and told["reload_s"]["baseline"] > 0
    assert told["candidates"][0]["forecast"]["low"] > 0 and told["server"] == TARGET
    assert {path.name for path in out.iterdir()} == {"baseline", "candidate", "report.html", "trial.json"}


def test_a_candidate_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    result, on = tried(monkeypatch, tmp_path, 1, "--out", tmp_path / "out")
    assert result.exception is None and result.return_value == 3, result
    assert on.starts == [False, True, False]
    said = " ".join(result.output.split())
    assert "CUDA out of memory" in said and "the service is as it was found, but the candidate failed" in said


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as context, tempfile.TemporaryDirectory() as folder:
        DRY_RUN.write_text(dry_run(context, Path(folder), *WORDS)[0])
