"""A live trial as it really happens: on llama.cpp in a process, and on a unit while signals come."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from breakeven.servers.fake import FakeServer, Script, Speculation
from breakeven.servers.lifecycle import START_LIMIT_S
from breakeven.trace.run import load_run
from breakeven.trial.live_interrupts import wait_words
from breakeven.trial.store import load_trial
from tests.e2e.command import Command, Done, answered, breakeven, soon
from tests.e2e.live_on_units import PLAN
from tests.e2e.llama_server import ROOT, llama_server
from tests.e2e.test_recover_cli import Machine

NGRAM = ("--method", "ngram", "--k", 3, "--min-n", 3, "--max-n", 3)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


WORDS = ("--max-tokens", 24, "--extra", 'grammar="root ::= [a-z ]{64}"')
"""Replies of as many tokens as are asked for, each with a chunk of its own."""


def write_copies(path: Path) -> Path:
    """Prompts whose answers repeat what is in them, so that a lookup finds drafts."""
    lines = ["def area(width, height): return width * height", "the quick brown fox jumps over the lazy dog"]
    prompts = [{"id": f"p{i}", "prompt": f"Repeat exactly: {each}\n{each}"} for i, each in enumerate(lines)]
    path.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
    return path


class Process:
    """llama.cpp by its own flags in a process that `breakeven` starts."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.words = (llama_server(folder), "--model", model, "--port", self.port, "-t", 1)
        self.env = {"XDG_STATE_HOME": str(folder / "state")}
        prompts = ("--prompts", write_copies(folder / "prompts.jsonl"), *WORDS)
        self.options = ("--server", "process:", "--yes", *prompts, "--out", folder / "trial")

    def trial(self, *options: object) -> Done:
        words = ("trial", *self.options, *options, "--json", "--", *self.words)
        return breakeven(*words, env=self.env, cwd=self.folder, is_steady=True)

    @property
    def is_over(self) -> bool:
        """Nothing listens, and nothing is to be recovered."""
        return is_free(self.port) and not list(self.folder.glob("state/breakeven/journals/*.jsonl"))


@pytest.fixture
def tiny(tmp_path: Path, unhurried_model: Path) -> Process:
    return Process(tmp_path, unhurried_model)


def test_baseline_candidate_and_baseline_again_on_llama_cpp(tiny: Process, tmp_path: Path):
    """What random weights say ends in loops, and is drafted."""
    told = tiny.trial(*NGRAM, "--repeats", 2).succeeded().json()
    assert told["stop_reason"] == "all 2 repeats done"
    for side in ("baseline", "candidate"):
        assert sorted(answered(tmp_path / "trial" / side)) == ["p0#0", "p0#1", "p1#0", "p1#1"]
    assert told["reload_s"]["baseline"] > 0 and told["reload_s"]["candidate"] > 0
    counts = [trace.speculation for trace in load_run(tmp_path / "trial" / "candidate").traces()]
    assert sum(one.drafts or 0 for one in counts if one is not None) > 0
    assert told["sides"]["candidate"]["description"] == "llama.cpp, ngram, k 3, n-grams of 3 tokens"
    assert tiny.is_over
    shown = breakeven("show", tmp_path / "trial", "--json").succeeded().json()
    assert shown["verdict"] == told["verdict"] and shown["speedup"] == told["speedup"]
    logs = "".join(file.read_text(errors="replace") for file in tmp_path.rglob("*.log"))
    assert logs.count("main: server is listening") == 3


def test_a_candidate_that_llama_cpp_does_not_start_with(tiny: Process):
    done = tiny.trial("--method", "draft-model", "--k", 3, "--draft", "no-such.gguf", "--repeats", 1)
    assert (done.code, done.orphans) == (3, ())
    told = done.json()
    assert told["verdict"] == "refused"
    assert "candidate failed" in told["reason"] and "ended with status" in told["reason"]
    assert told["stopped_after"] == 0
    assert tiny.is_over


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_is_saved_and_nothing_is_left(tiny: Process, number: int):
    words = ("trial", *tiny.options, *NGRAM, "--repeats", 80)
    command = Command(*words, "--", *tiny.words, env=tiny.env, cwd=tiny.folder, is_steady=True)
    run = tiny.folder / "trial" / "candidate"
    try:
        assert soon(lambda: len(answered(run)) > 3)
    finally:
        command.signal(number)
        done = command.end()
    done.refused(130, "breakeven show")
    assert load_trial(tiny.folder / "trial").stop_reason == "interrupted"
    assert tiny.is_over


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[tuple[Machine, str]]:
    """A unit whose server is really asked: it drafts when it runs with the change.

    The candidate takes its time, and so does the baseline when it is asked whether it is back: signals find
    them at it, whatever else the machine does.
    """
    made = Machine.make(tmp_path / "machine", "")
    asked_changed: list[int] = []

    def script(body: dict[str, Any], index: int) -> Script:
        if "speculation" in (made.folder / "running").read_text():
            asked_changed.append(index)
            return Script(tpot_s=0.03, speculation=Speculation(3, 1.0))
        is_first_one_back = bool(asked_changed)
        asked_changed.clear()
        return Script(ttft_s=0.5 if is_first_one_back else 0.01, tpot_s=0.004)

    with FakeServer(script).in_thread() as server:
        yield made, server.url


class Trial:
    """live_on_units.py in a process of its own, and what it tells."""

    def __init__(self, machine: Machine, url: str, out: Path) -> None:
        self.machine = machine
        self.out = out
        self.lines: list[str] = []
        self.error = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.live_on_units", str(machine.folder), url, str(out)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **machine.environment},
        )

    def until(self, is_so: Callable[[str], bool]) -> str:
        """The next line that is so. Fails where there is none."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if is_so(line):
                return line
        raise AssertionError((self.lines, self.process.stderr and self.process.stderr.read()))

    def end(self) -> int:
        out, self.error = self.process.communicate(timeout=60)
        self.lines += out.splitlines()
        return self.process.returncode


def of_the_candidate(line: str) -> bool:
    return line.startswith("answered candidate")


def test_a_unit_is_measured_changed_and_put_back(machine: tuple[Machine, str], tmp_path: Path):
    service, url = machine
    before = service.service()
    trial = Trial(service, url, tmp_path / "out")
    assert trial.end() == 0, trial.error
    assert trial.lines[-1].startswith("verdict ")
    assert service.service() == before and service.journals == []
    assert [line for line in trial.lines if line.startswith("part")] == [
        "part 1 baseline, as it runs",
        "part 2 candidate",
        "part 3 baseline, once it is back",
    ]
    for side in ("baseline", "candidate"):
        assert len(answered(tmp_path / "out" / side)) == 3 * PLAN.most


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_put_it_back_however_many(machine: tuple[Machine, str], tmp_path: Path, number: int):
    service, url = machine
    before = service.service()
    trial = Trial(service, url, tmp_path / "out")
    trial.until(of_the_candidate)
    assert service.service() != before
    trial.process.send_signal(number)
    trial.until(lambda line: line.startswith("said interrupted"))
    for _ in range(3):
        trial.process.send_signal(number)
    assert trial.end() != 0
    assert service.service() == before and service.journals == []
    assert f"said {wait_words(START_LIMIT_S)}" in trial.lines
    assert load_trial(tmp_path / "out").stop_reason == "interrupted"


def test_killed_while_the_candidate_is_asked_it_is_recovered(machine: tuple[Machine, str], tmp_path: Path):
    service, url = machine
    before = service.service()
    trial = Trial(service, url, tmp_path / "out")
    trial.until(of_the_candidate)
    trial.process.kill()
    assert trial.end() == -signal.SIGKILL
    assert service.service() != before and len(service.journals) == 1
    done = service.breakeven("recover")
    assert done.code == 0, done
    assert service.service() == before and service.journals == []
    assert load_trial(tmp_path / "out").stop_reason == "cut off"
