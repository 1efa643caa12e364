"""`breakeven measure` and `show`: what they print, what they keep, and what a killed run loses."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breakeven import ClosedLoop, Endpoint, MeasurePlan, Sampling, load_prompts, measure_endpoint
from breakeven.servers.fake import FakeServer, Script, http_error
from breakeven.trace.journal import RunWriter
from breakeven.trace.records import RequestError
from breakeven.trace.run import load_run
from tests.e2e.command import (
    Command,
    answered,
    breakeven,
    fake_process,
    soon,
    status_of,
    traces_of,
    without,
    write_prompts,
)

KEYS = {
    "run_dir", "requests", "errors", "truncated_in_reasoning", "tokens", "ttft_ms", "ttft_content_ms",
    "tpot_ms", "e2e_ms", "decode_tokens_per_s", "output_tokens_per_s", "tokens_per_chunk", "speculation",
    "self_check", "warnings",
}  # fmt: skip
DISTRIBUTION = {"mean", "p50", "p90", "p99", "n"}
SPECULATION = {"steps", "drafts", "drafted_tokens", "accepted_tokens", "accepted_per_position", "source"}
KEY = "sk-a-key-that-nobody-may-see"
QUICK = Script(ttft_s=0.005, tpot_s=0.001, n_tokens=12)
SLOW = replace(QUICK, tpot_s=0.025)
"""Whoever is held up for a tenth of a second while such a reply comes still reads it in several pieces."""


class Paced:
    """A fake server whose pace a test can change while it runs."""

    def __init__(self, servers: ExitStack) -> None:
        self.script = QUICK
        self.server = servers.enter_context(FakeServer(lambda _body, _index: self.script).in_thread())

    @property
    def url(self) -> str:
        return self.server.url

    def slow_down(self, ttft_s: float = SLOW.ttft_s) -> None:
        self.script = replace(SLOW, ttft_s=ttft_s)

    def speed_up(self) -> None:
        self.script = QUICK


@pytest.fixture
def paced() -> Iterator[Paced]:
    with ExitStack() as servers:
        yield Paced(servers)


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    return write_prompts(tmp_path / "prompts.jsonl")


def test_json_is_one_object_and_all_there_is_on_stdout(paced: Paced, prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    paced.slow_down()
    words = ("--prompts", prompts, "--repeats", 2, "--max-tokens", 9, "--out", out, "--json")
    done = breakeven("measure", "--url", paced.url, *words).succeeded()
    values = done.json()
    assert values.keys() >= KEYS
    assert values["run_dir"] == str(out) and (values["requests"], values["errors"]) == (6, 0)
    assert values["tokens"].keys() >= {"prompt", "output", "reasoning", "content"}
    assert values["tokens"]["output"] == 6 * 9
    for name in ("ttft_ms", "ttft_content_ms", "tpot_ms", "e2e_ms"):
        assert values[name].keys() >= DISTRIBUTION and values[name]["n"] == 6
        assert values[name]["p99"] is None and values[name]["absent"]["p99"]
    assert values["tpot_ms"]["p50"] > 0.5 * 1e3 * SLOW.tpot_s
    assert values["speculation"].keys() >= SPECULATION
    assert values["speculation"]["absent"]["drafted_tokens"]
    assert values["self_check"].keys() >= {"ok", "reasons"}
    assert "measure: 1 of 6" in done.err
    shown = breakeven("show", out, "--json").succeeded()
    assert shown.json() == values


def test_the_table_names_its_numbers_and_a_free_folder_is_found(paced: Paced, prompts: Path) -> None:
    for _ in range(2):
        words = ("measure", "--url", paced.url, "--prompts", prompts)
        table = breakeven(*words, cwd=prompts.parent).succeeded().out
        for word in (
            "TTFT",
            "TPOT",
            "end to end",
            "Decode speed",
            "Tokens: prompt",
            "Self-check",
            "3 requests",
        ):
            assert word in table
    runs = sorted((prompts.parent / "runs").iterdir())
    assert len(runs) == 2 and all(answered(run) == ("p0#0", "p1#0", "p2#0") for run in runs)


def test_a_closed_loop_keeps_its_concurrency(paced: Paced, prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("--prompts", prompts, "--repeats", 4, "--concurrency", 3, "--out", out, "--json")
    paced.slow_down()
    check = breakeven("measure", "--url", paced.url, *words).succeeded().json()["self_check"]
    assert check["asked_concurrency"] == 3 and check["decoding_peak"] == 3
    meta = load_run(out).meta
    assert (meta.schedule.mode, meta.schedule.concurrency, meta.warmup_requests) == ("closed", 3, 1)
    assert paced.server.requests == 4 * 3 + 1


def test_an_open_loop_sends_by_the_clock(paced: Paced, prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("--prompts", prompts, "--repeats", 2, "--rate", 40, "--constant-rate", "--out", out, "--json")
    check = breakeven("measure", "--url", paced.url, *words).succeeded().json()["self_check"]
    assert check["asked_rate_per_s"] == 40 and check["late_ms"]["p99"] is not None
    due_ns = sorted(trace.scheduled_ns for trace in load_run(out).traces())
    assert [later - due_ns[0] for later in due_ns] == [25_000_000 * i for i in range(6)]


def test_a_concurrency_that_the_server_does_not_give_voids_the_run(prompts: Path, tmp_path: Path) -> None:
    words = ("--prompts", prompts, "--repeats", 3, "--concurrency", 4, "--out", tmp_path / "run")
    with FakeServer(Script(ttft_s=0.002, tpot_s=0.01, n_tokens=10), slots=1).in_thread() as server:
        done = breakeven("measure", "--url", server.url, *words).succeeded()
    assert "void" in done.out and "--parallel" in done.out
    assert status_of(tmp_path / "run") == "void"
    check = breakeven("show", tmp_path / "run", "--json").succeeded().json()["self_check"]
    assert check["ok"] is False and any("one at a time" in reason for reason in check["reasons"])


@pytest.mark.parametrize("source", ["env", "file"])
def test_an_api_key_is_sent_and_never_shown(source: str, prompts: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    given = ("--api-key-env", "SOME_KEY") if source == "env" else ("--api-key-file", tmp_path / "key")
    out = tmp_path / "run"
    words = ("--prompts", prompts, "--out", out, *given, "--json")
    with FakeServer(api_key=KEY).in_thread() as server:
        done = breakeven("measure", "--url", server.url, *words, env={"SOME_KEY": KEY}).succeeded()
    seen = done.out + done.err + breakeven("show", out).succeeded().out
    seen += "".join(map(repr, load_run(out).traces())) + repr(load_run(out).meta)
    assert KEY not in seen
    assert not [path for path in out.iterdir() if KEY.encode() in path.read_bytes()]


def test_an_api_key_that_the_server_quotes_is_not_shown_either(prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("--prompts", prompts, "--warmup", 0, "--api-key-env", "SOME_KEY", "--out", out, "--json")
    with FakeServer(http_error(401, f"no such key: {KEY}")).in_thread() as server:
        done = breakeven("measure", "--url", server.url, *words, env={"SOME_KEY": KEY})
    done.refused(3, "every request failed", "[API key]", f"breakeven measure --resume {out}")
    assert done.json()["errors"] == 3
    assert KEY not in done.out + done.err + "".join(map(repr, load_run(out).traces()))


@pytest.mark.parametrize(
    ("how", "event_loop"),
    [("Ctrl-C", "uvloop"), ("Ctrl-C", "asyncio"), ("SIGTERM", "uvloop"), ("kill -9", "uvloop")],
)
def test_a_run_that_is_stopped_loses_at_most_the_request_in_flight(
    how: str, event_loop: str, paced: Paced, prompts: Path, tmp_path: Path
) -> None:
    out, repeats = tmp_path / "run", 4
    env = without("uvloop", tmp_path / "shim") if event_loop == "asyncio" else {}
    paced.slow_down()
    words = ("--prompts", prompts, "--repeats", repeats, "--out", out, "--json")
    command = Command(
        "measure", "--url", paced.url, *words, env=env, in_background=how == "SIGTERM"
    )  # a script's background, where Ctrl-C is ignored and SIGTERM is not
    assert soon(lambda: len(answered(out)) >= 2)
    assert status_of(out) == "running"
    command.signal({"Ctrl-C": signal.SIGINT, "SIGTERM": signal.SIGTERM, "kill -9": signal.SIGKILL}[how])
    stopped = command.end()
    if how == "kill -9":
        assert stopped.code == -signal.SIGKILL and stopped.orphans == ()
        with (out / "journal.jsonl").open("ab") as journal:
            journal.write(b'{"id": "p1#3", "torn')
    else:
        stopped.refused(130, "interrupted", f"breakeven measure --resume {out}")
        assert stopped.json()["exit_code"] == 130
    assert status_of(out) == ("running" if how == "kill -9" else "interrupted")
    before = traces_of(out)
    assert 2 <= len(before) < 3 * repeats
    shown = breakeven("show", out).succeeded()
    assert f"{len(before)} requests" in shown.out and "did not come to its end" in shown.out

    paced.speed_up()
    resumed = breakeven("measure", "--resume", out, "--json", env=env).succeeded().json()
    assert (resumed["requests"], resumed["errors"]) == (3 * repeats, 0)
    assert resumed["self_check"]["event_loop"] == event_loop
    after = traces_of(out)
    assert set(after) == {f"p{i}#{repeat}" for i in range(3) for repeat in range(repeats)}
    assert {name: after[name] for name in before} == before
    assert all(after[f"p{i}#{repeat}"].text == after[f"p{i}#0"].text for i in range(3) for repeat in range(4))
    in_flight, warmups = 1, 2
    assert 3 * repeats + warmups <= paced.server.requests <= 3 * repeats + warmups + in_flight
    assert not (out / "journal.jsonl").exists() and status_of(out) in ("complete", "void")


def test_a_run_that_is_being_measured_is_left_alone(paced: Paced, prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    paced.slow_down()
    command = Command("measure", "--url", paced.url, "--prompts", prompts, "--repeats", 5, "--out", out)
    assert soon(lambda: answered(out))
    paced.slow_down(ttft_s=2.0)
    before = paced.server.requests
    breakeven("measure", "--resume", out).refused(2, "being written by another process")
    paced.speed_up()
    command.end().succeeded()
    assert len(answered(out)) == 15 and paced.server.requests >= before
    assert paced.server.requests == 15 + 1


def finished(paced: Paced, prompts: Path, out: Path, repeats: int = 1, concurrency: int = 1) -> Path:
    """A whole run, measured in this process."""
    schedule = ClosedLoop(concurrency)
    plan = MeasurePlan(load_prompts(prompts), Sampling(), schedule, repeats)
    asyncio.run(measure_endpoint(Endpoint(paced.url), plan, out))
    return out


def rewritten(whole: Path, part: Path, keep: int, **meta: Any) -> Path:
    """A run that has the first `keep` requests of another, and is otherwise as `meta` says."""
    run = load_run(whole)
    changed = replace(run.meta, **{"self_check": None, "elapsed_s": None, "status": "interrupted", **meta})
    writer = RunWriter.create(part, changed, run.prompts())
    for _, trace in zip(range(keep), run.traces(), strict=False):
        writer.append(trace)
    writer.pause(changed)
    return part


def test_the_last_requests_may_be_too_few_for_the_concurrency(
    paced: Paced, prompts: Path, tmp_path: Path
) -> None:
    whole = finished(paced, prompts, tmp_path / "whole", repeats=3, concurrency=4)
    part = rewritten(whole, tmp_path / "part", keep=8)
    resumed = breakeven("measure", "--resume", part, "--json").succeeded().json()
    assert resumed["requests"] == 9
    assert not [reason for reason in resumed["self_check"]["reasons"] if "cannot keep" in reason]


def test_a_run_killed_between_its_last_request_and_its_end_is_only_closed(
    paced: Paced, prompts: Path, tmp_path: Path
) -> None:
    whole = finished(paced, prompts, tmp_path / "whole")
    part = rewritten(whole, tmp_path / "part", keep=3, status="running")
    asked = paced.server.requests
    resumed = breakeven("measure", "--resume", part, "--json").succeeded().json()
    assert (resumed["requests"], status_of(part), paced.server.requests) == (3, "complete", asked)
    assert traces_of(part) == traces_of(whole)
    breakeven("measure", "--resume", part).refused(2, "lacks nothing", f"breakeven show {part}")
    assert traces_of(part) == traces_of(whole)


def test_failed_requests_are_asked_again_and_a_void_run_stays_void(
    paced: Paced, prompts: Path, tmp_path: Path
) -> None:
    whole = finished(paced, prompts, tmp_path / "whole")
    why = "the client fell behind: its event loop lagged"
    void = {"status": "void", "self_check": {"ok": False, "reasons": [why]}}
    part = rewritten(whole, tmp_path / "part", keep=2, **void)
    writer, _ = RunWriter.resume(part)
    lost = traces_of(whole)["p2#0"]
    writer.append(replace(lost, events=(), text="", error=RequestError("StreamError", "broke off")))
    writer.pause(replace(writer.meta, **void))
    resumed = breakeven("measure", "--resume", part, "--json").succeeded().json()
    assert (resumed["requests"], resumed["errors"]) == (3, 0)
    assert why in resumed["self_check"]["reasons"] and status_of(part) == "void"


def test_a_resume_that_finds_no_server_leaves_the_run_as_it_was(
    paced: Paced, prompts: Path, tmp_path: Path
) -> None:
    whole = finished(paced, prompts, tmp_path / "whole")
    part = rewritten(whole, tmp_path / "part", keep=1)
    elsewhere = ("--url", "http://127.0.0.1:9")
    failed = breakeven("measure", "--resume", part, *elsewhere)
    failed.refused(3, "nothing answers", f"breakeven measure --resume {part}")
    assert (status_of(part), answered(part)) == ("interrupted", ("p0#0",))
    breakeven("measure", "--resume", part).succeeded()
    assert set(answered(part)) == {"p0#0", "p1#0", "p2#0"}


def test_a_resume_takes_no_option_that_the_run_has_set(paced: Paced, prompts: Path, tmp_path: Path) -> None:
    part = rewritten(finished(paced, prompts, tmp_path / "whole"), tmp_path / "part", keep=1)
    breakeven("measure", "--resume", part, "--max-tokens", 9).refused(2, "leave out --max-tokens")
    assert answered(part) == ("p0#0",)


def test_a_server_that_goes_away_ends_the_run_early_and_resume_goes_on(prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    paces = ("--ttft-ms", 5, "--tokens", 8)
    with fake_process(*paces, "--tpot-ms", 20) as (url, server):
        words = ("--prompts", prompts, "--repeats", 9, "--out", out, "--json")
        command = Command("measure", "--url", url, *words)
        assert soon(lambda: len(answered(out)) >= 3)
        server.kill()
        done = command.end()
    done.refused(3, "in a row failed", "nothing answers", f"breakeven measure --resume {out}")
    assert json.loads(done.out)["exit_code"] == 3
    good = [name for name, trace in traces_of(out).items() if trace.error is None]
    assert len(good) >= 3 and status_of(out) == "interrupted"
    with fake_process(*paces, "--tpot-ms", 1) as (url, _):
        resumed = breakeven("measure", "--resume", out, "--url", url, "--json").succeeded().json()
    assert (resumed["requests"], resumed["errors"]) == (27, 0)
