"""`breakeven trial`, whole: two embedded engines on a tiny model, and two endpoints whose truth is known."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from breakeven.servers.fake import FakeServer, Script, vllm_script
from breakeven.trial.plan import SIDES
from breakeven.trial.store import load_record
from tests.e2e.command import (
    Command,
    Done,
    answered,
    breakeven,
    fake_process,
    run_ahead,
    soon,
    status_of,
    traces_of,
    write_prompts,
)

KEYS = {
    "verdict", "reason", "speedup", "prompts", "acceptance", "lossless", "stopped_after", "reload_s",
    "confounders", "run_dir", "definitions",
}  # fmt: skip
PROMPT_KEYS = {"id", "category", "baseline_tpot_ms", "candidate_tpot_ms", "speedup", "low", "high"}
SLOW_S, FAST_S = 0.32, 0.16
"""Of the one token after the first: so long that a client on a machine with other work keeps up with it."""
SHORT = ("--repeats", 2, "--max-tokens", 16)
LONG = ("--repeats", 5000, "--max-tokens", 64)


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_prompts(tmp_path_factory.mktemp("prompts") / "prompts.jsonl", 4)


@pytest.fixture(scope="module")
def embedded(tiny_model: Path, prompts: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """One short trial with `--json`, and its folder."""
    out = tmp_path_factory.mktemp("trial") / "run"
    words = ("--model", tiny_model, "--prompts", prompts, *SHORT, "--out", out, "--json")
    return breakeven("trial", *words).succeeded(), out


def test_json_is_one_object_with_every_key(embedded: tuple[Done, Path]) -> None:
    done, out = embedded
    values = done.json()
    assert values.keys() >= KEYS
    assert values["verdict"] in ("faster", "slower", "same", "undecided", "refused")
    assert values["run_dir"] == str(out) and values["stopped_after"] <= 2
    assert values["speedup"] is None or values["speedup"].keys() >= {"estimate", "low", "high"}
    assert all(prompt.keys() >= PROMPT_KEYS for prompt in values["prompts"])
    assert values["acceptance"].keys() >= {"drafted_tokens", "accepted_tokens", "draft_share"}
    assert values["lossless"].keys() >= {"identical", "compared", "first_divergence"}
    assert values["reload_s"]["baseline"] > 0 and values["reload_s"]["candidate"] > 0
    assert values["definitions"]["speedup"]
    assert "trial: 1 of 16" in done.err


def test_it_leaves_two_runs_two_logs_and_a_report(embedded: tuple[Done, Path]) -> None:
    _, out = embedded
    names = {"baseline", "candidate", "baseline.log", "candidate.log", "report.html", "trial.json"}
    assert {path.name for path in out.iterdir()} == names
    page = (out / "report.html").read_text()
    assert "<title>" in page and "http://" not in page.partition("<script")[0].partition("<body")[0]
    ids = {f"p{i}#{repeat}" for i in range(4) for repeat in range(2)}
    assert set(answered(out / "baseline")) == set(answered(out / "candidate")) == ids


def test_show_says_the_same(embedded: tuple[Done, Path]) -> None:
    done, out = embedded
    assert breakeven("show", out, "--json").succeeded().json() == done.json()
    shown = breakeven("show", out).succeeded().out
    assert " ".join(done.json()["reason"].split())[:60] in " ".join(shown.split())
    side = breakeven("show", out / "candidate", "--json").succeeded().json()
    assert side["requests"] == 8 and side["speculation"]["drafted_tokens"] is not None


def test_compare_takes_its_two_runs(embedded: tuple[Done, Path], tmp_path: Path) -> None:
    _, out = embedded
    page = tmp_path / "compared.html"
    words = (out / "baseline", out / "candidate")
    compared = breakeven("compare", *words, "--html", page, "--json").succeeded().json()
    assert compared.keys() >= KEYS and len(compared["prompts"]) <= 4
    assert page.read_text().startswith("<!")


def test_one_side_of_a_trial_is_not_resumed(embedded: tuple[Done, Path]) -> None:
    _, out = embedded
    breakeven("measure", "--resume", out / "baseline").refused(2, "one side of a trial")


@contextmanager
def two_servers(baseline_tpot_s: float, candidate_tpot_s: float) -> Iterator[tuple[str, ...]]:
    """The words that name two endpoints which differ in nothing but their pace."""

    def script(tpot_s: float) -> Script:
        return vllm_script(ttft_s=0.01, tpot_s=tpot_s, n_tokens=2)

    with (
        FakeServer(script(baseline_tpot_s)).in_thread() as baseline,
        FakeServer(script(candidate_tpot_s)).in_thread() as candidate,
    ):
        yield "--baseline-url", baseline.url, "--candidate-url", candidate.url


def test_a_candidate_that_is_faster(prompts: Path, tmp_path: Path) -> None:
    """Anything but faster would be exit 1."""
    words = ("--prompts", prompts, "--fail-if", "not-faster", "--out", tmp_path / "run", "--json")
    with two_servers(SLOW_S, FAST_S) as urls:
        values = breakeven("trial", *urls, *words, "--repeats", 3).succeeded().json()
    assert values["verdict"] == "faster"
    assert values["speedup"]["low"] > 1.2 and values["speedup"]["estimate"] == pytest.approx(2, rel=0.15)
    assert values["reload_s"]["baseline"] is None and values["reload_s"]["absent"]["baseline"]
    assert values["lossless"]["identical"] == values["lossless"]["compared"] > 0


def test_a_candidate_that_is_slower_fails_the_gate_after_its_json(prompts: Path, tmp_path: Path) -> None:
    words = ("--prompts", prompts, "--repeats", 3, "--out", tmp_path / "run", "--json")
    with two_servers(FAST_S, SLOW_S) as urls:
        done = breakeven("trial", *urls, *words, "--fail-if", "slower")
    assert done.code == 1 and done.json()["verdict"] == "slower" and "Traceback" not in done.err
    sides = (tmp_path / "run/baseline", tmp_path / "run/candidate")
    compared = {"there": sides, "back": sides[::-1]}
    gate = ("--fail-if", "slower")
    with run_ahead({name: (("compare", *way, *gate), {}) for name, way in compared.items()}) as ends:
        assert [ends[name].result().code for name in compared] == [1, 0]


def test_two_that_are_equal(prompts: Path, tmp_path: Path) -> None:
    words = ("--prompts", prompts, "--repeats", 2, "--floor", 0.1, "--out", tmp_path / "run", "--json")
    with two_servers(SLOW_S, SLOW_S) as urls:
        done = breakeven("trial", *urls, *words, "--fail-if", "slower").succeeded()
    assert done.json()["verdict"] in ("same", "undecided")


def test_auto_stops_when_decided_and_says_after_how_many(prompts: Path, tmp_path: Path) -> None:
    words = ("--prompts", prompts, "--repeats", "auto", "--cap", 8, "--out", tmp_path / "run")
    with two_servers(SLOW_S, FAST_S) as urls:
        done = breakeven("trial", *urls, *words).succeeded()
    shown = breakeven("show", tmp_path / "run", "--json").succeeded().json()
    assert shown["verdict"] == "faster" and 2 <= shown["stopped_after"] <= 8
    n, said = shown["stopped_after"], " ".join(done.out.split())
    assert f"decided after {n} repeats: faster" in said
    assert f"Stopped after {n} repeats" in said or f"Compared: {n} repeats" in said, "others are left out"
    assert "2 to 8 repeats" in done.err


def test_concurrency_asks_one_side_at_a_time(prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("--prompts", prompts, "--repeats", 2, "--concurrency", 4, "--out", out, "--json")
    with two_servers(SLOW_S, FAST_S) as urls:
        values = breakeven("trial", *urls, *words).succeeded().json()
    loads = []
    for side in SIDES:
        traces = traces_of(out / side).values()
        assert len(traces) == 8 and values["quality"][side]["requests"] == 4 * values["stopped_after"]
        for repeat in range(2):
            sent_ns, end_ns = zip(*((t.sent_ns, t.end_ns) for t in traces if t.repeat == repeat), strict=True)
            assert max(sent_ns) < min(end_ns), "all four at once"
            loads.append((min(sent_ns), max(end_ns)))
    assert all(end_ns <= sent_ns for (_, end_ns), (sent_ns, _) in pairwise(sorted(loads)))


def test_a_side_that_does_not_answer_is_named_and_leaves_no_folder(prompts: Path, tmp_path: Path) -> None:
    with FakeServer(Script(n_tokens=4)).in_thread() as server:
        urls = ("--baseline-url", server.url, "--candidate-url", "http://127.0.0.1:9")
        done = breakeven("trial", *urls, "--prompts", prompts, "--out", tmp_path / "run")
    done.refused(3, "nothing answers", "that was the candidate, http://127.0.0.1:9")
    assert not (tmp_path / "run").exists()


def readable(out: Path) -> None:
    """Whatever ended the trial, it and both its runs can be shown and compared."""
    sides = (out / "baseline", out / "candidate")
    assert all(answered(side) for side in sides)
    words = [("show", out), ("show", sides[0]), ("show", sides[1]), ("compare", *sides)]
    with run_ahead({str(i): (command, {}) for i, command in enumerate(words)}) as ends:
        for end in ends.values():
            end.result().succeeded()


def test_an_endpoint_that_goes_away_ends_the_trial_and_both_runs_stay(prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    paces = ("--ttft-ms", 5, "--tpot-ms", 5, "--tokens", 8)
    with fake_process(*paces) as (baseline, _), fake_process(*paces) as (candidate, dying):
        urls = ("--baseline-url", baseline, "--candidate-url", candidate)
        command = Command("trial", *urls, "--prompts", prompts, "--repeats", 50, "--out", out)
        assert soon(lambda: len(answered(out / "candidate")) >= 6)
        dying.kill()
        done = command.end()
    done.refused(3, "the candidate is gone", "nothing answers", f"breakeven show {out}")
    readable(out)
    assert [status_of(out / side) for side in ("baseline", "candidate")] == ["interrupted"] * 2
    record = load_record(out)
    assert not record.finished and "the candidate is gone" in record.stop_reason


def test_an_engine_that_crashes_ends_the_trial_and_the_other_engine(
    tiny_model: Path, prompts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    command = Command("trial", "--model", tiny_model, "--prompts", prompts, *LONG, "--out", out)
    assert soon(lambda: len(answered(out / "candidate")) >= 8)
    os.kill(max(command.children()), signal.SIGKILL)
    done = command.end()
    assert done.code == 3 and "Traceback" not in done.err and done.orphans == ()
    assert "is gone: the embedded engine was killed by SIGKILL" in done.err
    assert done.err.endswith(f"what was measured is saved: type  breakeven show {out}\n")
    readable(out)


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM", "kill -9"])
def test_a_trial_that_is_stopped_takes_its_engines_with_it(
    how: str, tiny_model: Path, prompts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    words = ("--model", tiny_model, "--prompts", prompts, *LONG, "--out", out)
    command = Command("trial", *words, in_background=how == "SIGTERM")
    assert soon(lambda: len(answered(out / "candidate")) >= 8)
    assert len(command.children()) == 2
    command.signal({"Ctrl-C": signal.SIGINT, "SIGTERM": signal.SIGTERM, "kill -9": signal.SIGKILL}[how])
    done = command.end()
    if how == "kill -9":
        assert done.code == -signal.SIGKILL and done.orphans == ()
    else:
        done.refused(130, "interrupted", f"breakeven show {out}")
        assert load_record(out).elapsed_s is not None
    readable(out)
