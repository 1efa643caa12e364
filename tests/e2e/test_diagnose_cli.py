"""`breakeven diagnose` as a user runs it: a fake server, captured logs, runs, the published experiment."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import termios
import threading
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from breakeven.cli.diagnose import diagnose
from breakeven.servers.fake import FakeServer, Speculation, vllm_script
from tests.e2e.command import Command, answered, breakeven, fake_process, soon, write_prompts

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "kimi-k2.5-ngram"
LOGS = ROOT / "tests" / "golden" / "logs"
MODEL = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm")
SPECULATION = Speculation(k=4, acceptance=0.5, draft_share=0.6)


def run_example(*words: str) -> str:
    """What run.sh prints in a terminal of 100 columns."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", str(EXAMPLE / "run.sh"), *words],
        env={**os.environ, "PATH": path, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done
    assert done.stderr == ""
    return done.stdout


def test_the_example_prints_what_is_checked_in():
    assert run_example() == (EXAMPLE / "output.txt").read_text("utf-8")


def test_the_example_prints_the_json_that_is_checked_in():
    printed = run_example("--json")
    assert printed == (EXAMPLE / "output.json").read_text("utf-8")
    values = json.loads(printed)
    least = [round(one["unexplained_ms"]["low"], 1) for one in values["explanation"]["explained"]]
    assert least == [5.6, 2.6, 2.1, 1.2]
    assert {part["part"] for part in values["waterfall"]} >= {"experts", "all_reduce", "rest"}
    assert "draft_share" in values["unknown"]
    rate = next(one for one in values["acceptance"]["stated"] if one["name"] == "acceptance_rate")
    assert (rate["value"]["low"], rate["value"]["high"]) == (0.17, 0.31)


def test_nothing_of_the_example_is_invented():
    """Of the log's lines only the rates are numbers, and no count comes out of them."""
    values = json.loads((EXAMPLE / "output.json").read_text("utf-8"))
    counts = ("steps", "drafts", "drafted_tokens", "accepted_tokens", "accepted_per_position")
    assert all(values["acceptance"][name] is None for name in counts)
    lines = (EXAMPLE / "candidate.log").read_text("utf-8").splitlines()
    assert lines[0].startswith("Not a capture")
    numbers = {word for line in lines[1:] for word in line.replace("%", " ").split() if word[0].isdigit()}
    assert numbers == {"17.0", "31.0"}


def test_the_readme_of_the_example_shows_its_command_and_figures():
    readme = (EXAMPLE / "README.md").read_text("utf-8")
    assert "./run.sh" in readme
    printed = " ".join((EXAMPLE / "output.txt").read_text("utf-8").split())
    for figure in ("3.46 to 4.87", "0.24 to 1.17", "0.85 to 1.55", "0.24 to 0.49"):
        assert figure in readme and figure in printed, figure


@pytest.mark.parametrize("name", sorted(path.name for path in LOGS.glob("*.log")))
def test_every_captured_log_is_diagnosed(name: str, capsys: pytest.CaptureFixture[str]):
    diagnose.main(["--logs", str(LOGS / name), "--json"], standalone_mode=False)
    values = json.loads(capsys.readouterr().out)
    assert values["log"]["lines"] > 0 and values["answer"]
    assert {"speeds"} <= values["unknown"].keys()
    for finding in values["findings"]:
        assert finding["evidence"] and finding["confidence"] in ("high", "medium", "low")


def test_a_log_through_a_pipe_and_as_a_file_are_alike():
    path = LOGS / "vllm-0.32-dense-ngram.log"
    done = subprocess.run(
        [sys.executable, "-m", "breakeven", "diagnose", "--logs", "-", "--json"],
        input=path.read_bytes(),
        capture_output=True,
        check=True,
    )
    piped, filed = json.loads(done.stdout), breakeven("diagnose", "--logs", path, "--json").succeeded().json()
    for one in (*piped["findings"], *filed["findings"]):
        one["next_command"] = str(one["next_command"]).replace("<candidate-log>", str(path))
    assert piped == filed, "but for the name of the log"


def test_a_units_journal(tmp_path: Path):
    """journalctl in the place of the real one, with the captured log as entries."""
    log = LOGS / "vllm-0.32-dense-ngram.log"
    entries = [{"MESSAGE": list(line), "PRIORITY": "6"} for line in log.read_bytes().splitlines()]
    (tmp_path / "entries").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (tmp_path / "journalctl").write_text(f"#!/bin/sh\nexec cat {tmp_path}/entries\n")
    (tmp_path / "journalctl").chmod(0o755)
    env = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    by_unit = breakeven("diagnose", "--unit", "vllm", "--json", env=env).succeeded().json()
    by_file = breakeven("diagnose", "--logs", log, "--json").succeeded().json()
    for name in ("acceptance", "by_position", "drafting"):
        assert by_unit[name] == by_file[name]
    found = {one["id"]: one["next_command"] or "" for one in by_unit["findings"]}
    assert list(found) == [one["id"] for one in by_file["findings"]]
    assert any("<(journalctl --unit=vllm.service --output=cat --all)" in each for each in found.values())


def test_two_logs_name_what_was_lost():
    done = breakeven(
        *("diagnose", "--logs", LOGS / "vllm-0.32-dense-ngram.log"),
        *("--baseline-logs", LOGS / "vllm-0.32-moe-base.log", "--json"),
    ).succeeded()
    assert done.json()["baseline_log"]["engine"] == "vllm"


def test_a_hostile_log_is_shown_safely(tmp_path: Path):
    """Escape sequences, half UTF-8, NULs, and a line of 10 MB."""
    good = (LOGS / "vllm-0.32-dense-ngram.log").read_bytes()
    bad = b"\x1b]0;title\x07\x1b[31mWARNING \xff\xfe\x00 Async scheduling not supported \x1b[2J\n" * 20
    line = b"SpecDecoding metrics: " + b"9" * 10_000_000 + b"\n"
    (tmp_path / "bad.log").write_bytes(bad + line + good + bad + b"\xc3")
    for words in ((), ("--json",)):
        done = breakeven("diagnose", "--logs", tmp_path / "bad.log", *words).succeeded()
        assert "\x1b" not in done.out and "\x00" not in done.out and "\x07" not in done.out


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """It has drafted before: then it counts, as vLLM does from its start on."""
    folder = tmp_path_factory.mktemp("server")
    prompts = write_prompts(folder / "prompts.jsonl", 1)
    script = vllm_script(n_tokens=60, ttft_s=0.01, tpot_s=0.004, speculation=SPECULATION)
    with FakeServer(script).in_thread() as one:
        breakeven("measure", "--url", one.url, "--prompts", prompts, "--out", folder / "run").succeeded()
        yield one.url


@contextmanager
def busy(url: str, folder: Path) -> Iterator[None]:
    """Somebody uses the server all the while."""
    prompts = write_prompts(folder / "prompts.jsonl", 3)
    words = ("--prompts", prompts, "--repeats", 1000, "--out", folder / "busy")
    command = Command("measure", "--url", url, *words)
    try:
        assert soon(lambda: answered(folder / "busy"))
        yield
    finally:
        command.signal(signal.SIGINT)
        command.end()


def test_a_running_server_is_read_twice(server: str, tmp_path: Path):
    with busy(server, tmp_path):
        done = breakeven("diagnose", "--url", server, "--seconds", 3, "--k", 4, "--json")
    values = done.succeeded().json()
    assert values["engine"] == "vllm" and values["acceptance"]["drafted_tokens"] > 0
    assert values["traffic"]["seconds"] >= 3 and values["traffic"]["output_tokens"] > 0
    assert values["traffic"]["requests_asked"] is None


def test_a_server_that_drafts_nothing_meanwhile(server: str):
    done = breakeven("diagnose", "--url", f"{server}/metrics", "--seconds", 0.3).succeeded()
    assert "Nothing was drafted within" in done.out


def test_ctrl_c_reads_at_once(server: str):
    command = Command("diagnose", "--url", server, "--seconds", 600, "--json")
    assert command.process.stderr is not None
    assert command.process.stderr.readline().startswith("look: 1 of 600")
    command.signal(signal.SIGINT)
    values = command.end().succeeded().json()
    assert values["traffic"]["seconds"] < 60


@contextmanager
def web(status: int, body: bytes) -> Iterator[str]:
    """Answers every GET like that."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answering) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


def test_a_server_without_speculation_or_without_metrics():
    with FakeServer(vllm_script(n_tokens=8)).in_thread() as plain:
        done = breakeven("diagnose", "--url", plain.url, "--seconds", 0.2, "--json").succeeded()
        assert done.json()["acceptance"]["drafted_tokens"] is None
        assert done.json()["acceptance"]["absent"]["drafted_tokens"]
    for status, body in ((404, b"{}"), (200, b"<html>Sign in</html>"), (200, b"x_total 5\n")):
        with web(status, body) as url:
            breakeven("diagnose", "--url", url, "--seconds", 0.2).refused(3, "/metrics")
    breakeven("diagnose", "--url", "http://127.0.0.1:9", "--seconds", 0.2).refused(3)


def test_a_server_that_dies_between_the_readings():
    with fake_process() as (url, process):
        command = Command("diagnose", "--url", url, "--seconds", 3)
        assert command.process.stderr is not None
        assert command.process.stderr.readline().startswith("look: 1 of 3")
        process.kill()
        command.end().refused(3)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the same prompts: `before`, and a slower `after` that speculates."""
    folder = tmp_path_factory.mktemp("runs")
    prompts = write_prompts(folder / "prompts.jsonl", 4)
    slow: dict[str, Any] = {"tpot_s": 0.016, "speculation": SPECULATION}
    for name, fields in (("before", {"tpot_s": 0.006}), ("after", slow)):
        with FakeServer(vllm_script(**{"n_tokens": 48, "ttft_s": 0.01, **fields})).in_thread() as one:
            words = (
                "measure",
                "--url",
                one.url,
                "--prompts",
                prompts,
                "--repeats",
                3,
                "--out",
                folder / name,
            )
            breakeven(*words).succeeded()
        checked(folder / name)
    return folder


def checked(run: Path) -> None:
    """Has the client of a run pass its self-check, whatever else this machine did meanwhile."""
    meta = json.loads((run / "run.json").read_text())
    check = {**meta["self_check"], "ok": True, "reasons": ()}
    (run / "run.json").write_text(json.dumps({**meta, "status": "complete", "self_check": check}))


def test_two_runs_with_what_verifying_costs(runs: Path):
    words = ("diagnose", runs / "before", runs / "after", "--k", 4, *MODEL)
    values = breakeven(*words, "--json").succeeded().json()
    assert [one["name"] for one in values["observed"]] == ["even", "odd"]
    assert values["waterfall"] and values["unexplained_ms"]["low"] is not None
    assert values["findings"] and values["acceptance"]["drafted_tokens"] > 0
    text = breakeven(*words).succeeded().out
    assert "Findings, most telling first" in text


def test_two_runs_without_it_say_what_to_type(runs: Path):
    values = breakeven("diagnose", runs / "before", runs / "after", "--json").succeeded().json()
    assert values["waterfall"] is None and "--calibration" in values["absent"]["waterfall"]
    assert len(values["observed"]) == 2 and "window" not in values["unknown"]
    assert values["drafting"]["k"] == 4 and values["drafting"]["is_assumed"]


def test_two_sides_that_are_none(runs: Path, tmp_path: Path):
    breakeven("diagnose", runs / "after", runs / "before").refused(2, "only the baseline drafted")
    breakeven("diagnose", runs / "after", runs / "after").refused(2, "the same run")
    shutil.copytree(runs / "after", tmp_path / "copy")
    breakeven("diagnose", runs / "after", tmp_path / "copy").refused(2, "the same run")
    breakeven("diagnose", runs / "after", "--engine", "sglang").refused(2, "of another server")
    breakeven("diagnose", runs / "after", "--k", "10").refused(2, "a window of 10")
    told = breakeven("diagnose", runs / "before", runs / "after", *MODEL, "--json").succeeded().json()
    assert any("the cost is of llama-3.1-8b, as typed" in note for note in told["notes"])


def test_one_run_with_a_log(runs: Path):
    path = LOGS / "vllm-0.32-dense-ngram.log"
    values = breakeven("diagnose", runs / "after", "--logs", path, "--json").succeeded().json()
    assert values["drafting"]["method"] == "ngram" and values["drafting"]["k"] == 5
    assert [one["source"] for one in values["other_sources"]][-1] == "vLLM log"
    assert values["observed"] == [] and "speeds" in values["unknown"]


def test_a_run_that_is_damaged(runs: Path, tmp_path: Path):
    shutil.copytree(runs / "after", tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text("{")
    breakeven("diagnose", tmp_path / "run").refused(2, "damaged")
    breakeven("diagnose", tmp_path).refused(2)
    breakeven("diagnose").refused(2, "--url")
    breakeven("diagnose", "--unit", "a b").refused(2, "list-units")


@contextmanager
def following(*words: str) -> Iterator[tuple[Command, int, int]]:
    """`breakeven diagnose` on a pipe that stays open: itself, and the pipe's two ends."""
    reading, writing = os.pipe()
    try:
        yield Command("diagnose", "--logs", "-", *words, stdin=reading), reading, writing
    finally:
        os.close(reading)
        os.close(writing)


def is_read(pipe: int) -> bool:
    unread = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, unread)
    return unread[0] == 0


def is_waiting(pid: int) -> bool:
    """For more to read: it has taken what came."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_reading_of_a_log_that_is_followed(number: int):
    """What was read is reported, and the exit code says that it was interrupted."""
    path = LOGS / "vllm-0.32-dense-ngram.log"
    log = path.read_bytes()
    with following("--json") as (command, reading, writing):
        os.write(writing, log)
        assert soon(lambda: is_read(reading) and is_waiting(command.process.pid))
        command.signal(number)
        done = command.end()
    assert done.code == 130 and "Traceback" not in done.err and done.orphans == ()
    values, whole = done.json(), breakeven("diagnose", "--logs", path, "--json").succeeded().json()
    assert values["acceptance"] == whole["acceptance"]
    assert [one["id"] for one in values["findings"]] == [one["id"] for one in whole["findings"]]
    lines = log.count(b"\n")
    assert f"standard input: Ctrl-C ended the reading after {lines} lines" in values["notes"]


def test_ctrl_c_before_anything_was_said_is_an_interruption():
    with following() as (command, reading, writing):
        os.write(writing, b"no line of an engine\n")
        assert soon(lambda: is_read(reading) and is_waiting(command.process.pid))
        command.signal(signal.SIGINT)
        done = command.end()
    assert done.code == 130 and done.out == "" and done.err.splitlines()[-1] == "breakeven: interrupted"


def test_ctrl_c_ends_the_reading_of_a_log_without_end():
    words = ["sh", "-c", 'cat "$1"; exec yes nothing', "sh", LOGS / "vllm-0.32-dense-ngram.log"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        command = Command("diagnose", "--logs", "-", stdin=endless.stdout.fileno())
        endless.stdout.close()
        assert soon(lambda: read_by(command.process.pid) > 100_000_000)
        command.signal(signal.SIGINT)
        done = command.end()
        endless.kill()
    assert done.code == 130 and "Ctrl-C ended the reading" in " ".join(done.out.split())


def read_by(pid: int) -> int:
    """Bytes that a process has read of anything."""
    fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(fields["rchar"])


def test_a_command_that_is_printed_names_the_log_and_the_run(runs: Path, tmp_path: Path):
    told = tmp_path / "my vllm.log"
    told.write_bytes((LOGS / "vllm-0.32-dense-ngram.log").read_bytes())
    words = ("diagnose", runs / "before", runs / "after", "--logs", told, "--k", 5, "--json", *MODEL)
    values = breakeven(*words).succeeded().json()
    commands = [one["next_command"] or "" for one in values["findings"]]
    commands += [one["next_command"] or "" for one in values["explanation"]["ruled_out"]]
    assert commands and not any("<candidate-log>" in each or "<baseline-run>" in each for each in commands)
    for each in commands:
        if each.startswith("grep "):
            assert f"'{told}'" in each or each.endswith("<baseline-log>"), each


def test_a_server_that_died_while_it_served():
    values = breakeven("diagnose", "--logs", LOGS / "vllm-40756.log", "--json").succeeded().json()
    first = values["findings"][0]
    assert (first["id"], first["confidence"]) == ("died_while_serving", "high")
    assert values["log"]["death"]["at"] == "05-13 10:46:43" and values["log"]["events"]["died"]["lines"] == 1
