"""`breakeven trial --server`: what is refused, forecast, asked, skipped and told, on a machine in memory."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from breakeven.cli import live, live_service
from breakeven.cli.trial import trial
from breakeven.client import selfcheck
from breakeven.client.endpoint import Endpoint
from breakeven.compare.records import Verdict
from breakeven.engines.speculation import SpeculationConfig
from breakeven.engines.vllm import Vllm
from breakeven.errors import UsageError
from breakeven.interval import Interval
from breakeven.servers.fake import FakeServer, vllm_script
from breakeven.servers.fake.systemctl import FakeSystemd
from breakeven.servers.lifecycle import Found
from breakeven.servers.occupied import occupied
from breakeven.servers.start_times import keep_start_s
from breakeven.servers.systemd.dropin import TRIAL_NAME
from breakeven.trace.meta import ServerInfo
from breakeven.trace.run import load_run
from breakeven.trial import confounded
from breakeven.trial import live as live_trial
from breakeven.trial.live import LivePlan, Service, Watch
from breakeven.trial.outlook import Outlook
from breakeven.trial.plan import SIDES
from breakeven.trial.result import TrialResult
from breakeven.trial.store import SideRecord, TrialRecord, load_trial, save_trial
from tests.unit.trial.live_service import falls_behind

UNIT = """[Service]
Environment=NCCL_ALGO=Ring
ExecStart=/opt/vllm/bin/vllm serve /models/m --port {port} {more}
"""
SERVED = {"ttft_s": 0.002, "tpot_s": 0.007, "n_tokens": 12}
"""As fast as the model on the hardware of MODEL: another speed is refused."""
NGRAM = ("--method", "ngram", "--k", "5", "--min-n", "2", "--max-n", "4")
MODEL = ("--geometry", "llama-3.1-8b", "--hardware", "h100-sxm")
SHORT = ("--prompts", "brief", "--repeats", "1", "--max-tokens", "12")
READING = ("show", "show-environment")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with FakeServer(vllm_script(**SERVED)).in_thread() as server:
        yield server.url


class Stage:
    """A machine with one service, and a command line that is run on it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.tried: list[SpeculationConfig] = []
        self.failures: dict[str, str] = {}
        """Why which candidates fail, as they are described."""
        self.systemd = self.machine()

    def machine(self, more: str = "", command: str | None = None) -> FakeSystemd:
        text = UNIT.format(port=self.url.rpartition(":")[2], more=more)
        if command is not None:
            text = f"[Service]\nExecStart={command}\n"
        self.systemd = FakeSystemd({"/etc/systemd/system/vllm.service": text.encode()})
        asyncio.run(self.systemd.run(("systemctl", "start", "--", "vllm.service")))
        self.systemd.commands.clear()
        return self.systemd

    def run(self, *words: object) -> Result:
        given = [str(word) for word in ("--server", "systemd:vllm.service", *words)]
        return CliRunner().invoke(trial, given, standalone_mode=False)

    def done(self, *words: object) -> Result:
        result = self.run(*SHORT, "--out", self.folder / "out", *words)
        if result.exception is not None:
            raise result.exception
        return result

    def refused(self, *words: object) -> str:
        result = self.run(*words)
        assert isinstance(result.exception, (UsageError, click.UsageError)), result
        return str(result.exception)

    def touched(self) -> list[tuple[str, ...]]:
        """Commands that change anything."""
        return [
            argv for argv in self.systemd.commands if argv[0] == "systemctl" and not set(argv) & set(READING)
        ]


@pytest.fixture
def stage(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    on = Stage(url, tmp_path)

    async def tries(
        service: Service,
        plan: LivePlan,
        candidate: SpeculationConfig,
        out: Path,
        watch: Watch,
        baseline: Path | None = None,
    ) -> TrialResult:
        on.tried.append(candidate)
        assert baseline is not None
        for side in SIDES:
            if (out / side) != baseline:
                shutil.copytree(baseline, out / side)
        run, sides = load_run(baseline), {side: SideRecord(side) for side in SIDES}
        record = TrialRecord("m", run.meta.workload.name, run.meta.created, 0.02, 0.05, sides, finished=True)
        save_trial(out, replace(record, failed=on.failures.get(candidate.describe())))
        return load_trial(out)

    monkeypatch.setattr("platformdirs.user_state_dir", lambda *a, **k: str(tmp_path / "state"))
    monkeypatch.setattr(confounded, "QUIET_S", 0.01)
    monkeypatch.setattr(selfcheck, "LEAST_LAG_MS", 1e9)
    monkeypatch.setattr(live_service, "host_of", lambda sudo: on.systemd)
    monkeypatch.setattr(live_trial, "try_candidate", tries)
    return on


# What is asked for


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "type  --method ngram --k 5"),
        (("--k", 5), "--k stands without a method: type --method ngram"),
        (("--set", "a=1"), "--set stands without a method"),
        ((*NGRAM, "--k", 3), "--k is given twice for --method ngram"),
        ((*NGRAM, "--baseline-url", "http://a"), "--baseline-url is of two sides"),
        ((*NGRAM, "--as-new-unit", "b", "--keep-if", "faster"), "--as-new-unit lasts until a reboot"),
        ((*NGRAM, "--method", "suffix", "--keep-if", "faster"), "--keep-if leaves one winner on"),
        ((*NGRAM, "--hardware", "h100-sxm"), "type --geometry X too"),
        ((*NGRAM, "--if-forecast-above", 1), "--if-forecast-above needs the cost of a step"),
        ((*NGRAM, *MODEL, "--calibrate"), "--calibrate measures what a step costs"),
        ((*NGRAM, "--geometry", "no-such-model", "--hardware", "h100-sxm"), "no-such-model"),
        (("--method", "suffix", "--min-n", 2), "suffix has no min_n"),
        (("--method", "eagle3", "--k", 3), "needs draft"),
        ((*NGRAM, "--", "vllm", "serve"), "knows its own command line"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_measured(
    stage: Stage, words: tuple[object, ...], said: str
):
    assert said in stage.refused("--yes", *words)
    assert stage.touched() == [] and not list(stage.folder.glob("out*"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--server", "vllm.service", *NGRAM), "is no server: type  --server"),
        (("--server", "docker:vllm", "--as-new-unit", "b", *NGRAM), "--as-new-unit is of systemd"),
        (("--server", "attached:http://127.0.0.1:1", "--url", "http://x", *NGRAM), "leave out --url"),
        (("--yes",), "--yes is of a live service: type --server"),
        (("--k", "5"), "--k is of a live service"),
        (("--start-limit", "5"), "--start-limit is of a live service"),
        (("vllm", "serve"), "a command line belongs to  --server process:"),
    ],
)
def test_a_server_is_named_as_its_kind_has_it(stage: Stage, words: tuple[str, ...], said: str):
    result = CliRunner().invoke(trial, list(words), standalone_mode=False)
    assert isinstance(result.exception, UsageError) and said in str(result.exception)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--method", "ngrm", "--k", 5), "vLLM has no ngrm: did you mean ngram?"),
        (("--method", "ngram", "--k", 5, "--set", "revison=x"), "did you mean revision?"),
    ],
)
def test_a_slip_is_told_before_anything_is_measured(stage: Stage, words: tuple[object, ...], said: str):
    assert said in stage.refused("--yes", *words)
    assert stage.touched() == [] and not list(stage.folder.glob("out*"))


@pytest.mark.parametrize("version", ["0.32.0", "0.99.0", None])
def test_a_name_that_is_not_known_is_right_where_the_server_is_newer(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, version: str | None
):
    asked: list[str] = []

    async def server_at(endpoint: Endpoint) -> ServerInfo:
        asked.append(endpoint.base_url)
        return ServerInfo("vllm", version)

    monkeypatch.setattr(live_service, "_server_at", server_at)
    words = ("--method", "ngram", "--k", 5, "--set", "newest=1")
    if version == "0.99.0":
        said = stage.run(*words, "--dry-run").stdout
        assert "setting newest is none that vLLM has as far as is known here" in said
        assert '"newest":1' in said
    else:
        assert "vLLM up to 0.33 has no setting newest" in stage.refused(*words, "--dry-run")
    assert len(asked) == 1
    stage.run(*NGRAM, "--dry-run")
    assert len(asked) == 1


def test_a_service_of_no_known_engine_is_refused(stage: Stage):
    stage.machine(command="/usr/bin/nginx -g daemon")
    assert "starts none of vLLM" in stage.refused(*NGRAM)


def test_a_candidate_that_runs_already_is_refused(stage: Stage):
    stage.machine(more='--speculative-config \'{"method":"ngram","num_speculative_tokens":5}\'')
    assert "runs with ngram, k 5 already" in stage.refused("--method", "ngram", "--k", 5)


def test_a_server_with_a_certificate_needs_its_address(stage: Stage):
    stage.machine(more="--ssl-certfile /etc/c.pem")
    assert "type its address, such as  --url https" in stage.refused(*NGRAM)


def test_a_port_that_is_not_known_needs_the_address(stage: Stage):
    stage.machine(command="/opt/vllm/bin/vllm serve m --port %Z")
    assert "or type where it answers:  --url" in stage.refused(*NGRAM)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("[fe80::1]", "http://[fe80::1]:8000"),
        ("gpu7", "http://gpu7:8000"),
    ],
)
def test_the_address_is_that_of_the_command_line(host: str, url: str):
    found = Found("systemd:x.service", ("vllm", "serve", "m", "--host", host))
    assert live_service._url("systemd", found, Vllm()) == url


def test_the_port_of_a_container_is_not_that_of_its_command_line():
    found = Found("docker:vllm", ("vllm", "serve", "m"))
    with pytest.raises(UsageError, match="type  --url http"):
        live_service._url("docker", found, Vllm())


def test_a_recovery_reaches_the_same_container_of_the_same_cluster():
    evidence = {"container": "vllm", "context": "prod", "other": "x"}
    found = Found("kubernetes:default/deployment/vllm", (), evidence=evidence)
    assert live_service._place("kubernetes", found) == {"container": "vllm", "context": "prod"}
    assert live_service._place("docker", found) == {}


# Without touching anything


def test_a_trial_that_another_left_unfinished_is_not_begun(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    def taken(path: Path, target: str) -> None:
        raise UsageError(f"a trial on {target} was cut off")

    monkeypatch.setattr("breakeven.servers.undo_journal.refuse_taken", taken)
    with pytest.raises(UsageError, match="was cut off"):
        stage.done(*NGRAM, "--yes")
    assert not (stage.folder / "out").exists()


def test_two_trials_do_not_measure_each_other(stage: Stage):
    with (
        occupied("systemd:vllm.service"),
        pytest.raises(UsageError, match=r"a trial on .* runs"),
    ):
        stage.done(*NGRAM, "--yes")
    assert not (stage.folder / "out").exists()


def test_what_a_running_trial_changed_is_its_own(stage: Stage):
    """Only without it is its drop-in one that is to be recovered."""
    stage.systemd.write(f"/run/systemd/system/vllm.service.d/{TRIAL_NAME}", b"[Service]\n")
    asyncio.run(stage.systemd.run(("systemctl", "daemon-reload")))
    with occupied("systemd:vllm.service"):
        assert "runs (process" in stage.refused("--server", "systemd:vllm", *NGRAM)
    assert "type  breakeven recover" in stage.refused("--server", "systemd:vllm", *NGRAM)


def test_rights_are_asked_for_before_anything_is_measured(stage: Stage):
    stage.systemd.uid = 1000
    with pytest.raises(UsageError, match="add --sudo"):
        stage.done(*NGRAM, "--yes")
    assert not (stage.folder / "out").exists()


def test_without_a_terminal_it_ends_before_the_restart(stage: Stage):
    with pytest.raises(UsageError, match="type --yes to go on; the baseline is kept in"):
        stage.done(*NGRAM)
    assert stage.tried == [] and (stage.folder / "out" / "baseline" / "run.json").exists()


def test_the_change_and_the_cost_of_restarts_are_shown_first(stage: Stage):
    keep_start_s("systemd:vllm.service", True, 5400)
    keep_start_s("systemd:vllm.service", False, 1800)
    said = " ".join(stage.done(*NGRAM, *MODEL, "--yes").stderr.split())
    assert '"method":"ngram"' in said or "method" in said
    assert "restarts cost about 2 h 00 min, as last time (1 h 30 min with it, 30 min 00 s back)" in said
    assert said.index('"method":"ngram"') < said.index("go on? yes (--yes)")
    assert "forecast " in said and "logit_bias" in said


# What the client makes of the baseline

THREE = ("--method", "ngram", "--k", 2, "--method", "ngram", "--k", 3, "--method", "ngram", "--k", 4)
TWO_REPEATS = ("--repeats", 4)
"""Of ABA's baseline before the candidate."""


@pytest.mark.parametrize("asking", [("--yes",), ("--calibrate", "--yes"), ("--json", "--yes"), ()])
def test_a_baseline_of_which_nothing_is_left_ends_it_before_any_restart(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, asking: tuple[str, ...]
):
    falls_behind(monkeypatch, 0, 1)
    with pytest.raises(UsageError) as raised:
        stage.done(*THREE, *TWO_REPEATS, *asking)
    said = str(raised.value)
    assert raised.value.exit_code == 2 and stage.tried == [] and stage.touched() == []
    assert "all 2 repeats of the baseline are left out (number 1, 2, by the figures of the first" in said
    assert "free the machine, run the client elsewhere, or lower --concurrency" in said
    assert said.count("fell behind") == 1 and said.endswith(str(stage.folder / "out" / "baseline"))
    assert {path.name for path in (stage.folder / "out").iterdir()} == {"baseline"}


def test_repeats_that_are_left_out_are_said_at_the_question(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    falls_behind(monkeypatch, 1)
    done = stage.done(*NGRAM, *TWO_REPEATS, "--yes")
    said = " ".join(done.stderr.split())
    assert len(stage.tried) == 1
    assert "; 1 of 2 repeats of the baseline is left out; go on? yes (--yes)" in said
    assert "! 1 of 2 repeats of the baseline is left out: the client fell behind" in said


def test_nothing_is_said_where_no_repeat_is_left_out(stage: Stage):
    assert "left out" not in stage.done(*NGRAM, *TWO_REPEATS, "--yes").stderr


def test_a_candidate_that_only_a_lost_repeat_pairs_up_with_is_not_tried(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    """A drafter that learns is asked each prompt once."""
    falls_behind(monkeypatch, 0)
    done = stage.done(*NGRAM, "--method", "suffix", *TWO_REPEATS, "--yes")
    assert [one.method for one in stage.tried] == ["ngram"]
    assert "suffix is not tried: nothing is left to compare" in " ".join(done.stderr.split())


def test_a_baseline_without_a_speed_ends_it_too(stage: Stage):
    terse = FakeServer(vllm_script(ttft_s=0.002, tpot_s=0.003, n_tokens=1))
    with (
        terse.in_thread() as server,
        pytest.raises(
            UsageError, match=r"without a TPOT.*type {2}breakeven trial … --max-tokens.*Nothing was"
        ),
    ):
        stage.done(*NGRAM, "--url", server.url, "--yes")
    assert stage.tried == []


def test_a_baseline_that_gets_no_verdict_by_itself_is_said_before_the_question(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("breakeven.compare.quality.is_degenerate", lambda trace: True)
    said = " ".join(stage.done(*NGRAM, "--yes").stderr.split())
    of_itself = "of the baseline compared with itself there is no verdict: most replies end in a short loop"
    assert 0 <= said.find(of_itself) < said.index("go on?") and len(stage.tried) == 1


# What is expected


def test_acceptance_alone_is_told_where_no_cost_is_known(stage: Stage):
    done = stage.done(*NGRAM, "--yes", "--json")
    one = json.loads(done.stdout)["candidates"][0]
    assert one["forecast"] is None and "on the baseline's replies it never drafts" in one["words"]
    assert "--calibrate" in done.stderr and "no speedup was forecast" in " ".join(done.stderr.split())


def test_a_model_gives_a_forecast(stage: Stage):
    one = json.loads(stage.done(*NGRAM, *MODEL, "--yes", "--json").stdout)["candidates"][0]
    assert one["forecast"]["low"] <= one["forecast"]["estimate"] <= one["forecast"]["high"]
    assert "forecast" not in one["absent"] and one["verdict"]


def test_a_calibration_of_the_baseline_gives_one(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    """On a busy machine the client lags, and points of the few tokens here drop out: see test_stretches."""
    monkeypatch.setattr("breakeven.cost.calibrate._lag_s", lambda meta: 0.0)
    with FakeServer(vllm_script(ttft_s=0.002, tpot_s=0.003, n_tokens=64)).in_thread() as slower:
        done = stage.done(*NGRAM, "--url", slower.url, "--calibrate", "--yes", "--json", "--max-tokens", 64)
    assert json.loads(done.stdout)["candidates"][0]["forecast"]["low"] > 0
    assert (stage.folder / "out" / "calibration" / "calibration.json").exists()


def test_a_learned_drafter_is_told_what_it_must_reach(stage: Stage):
    head = ("--method", "eagle3", "--k", 3, "--draft", "org/head")
    one = json.loads(stage.done(*head, *MODEL, "--yes", "--json").stdout)["candidates"][0]
    assert "acceptance length of" in one["words"] and one["forecast"] is None


def test_a_service_that_speculates_already_has_no_forecast(stage: Stage):
    stage.machine(more='--speculative-config \'{"method":"ngram","num_speculative_tokens":2}\'')
    done = stage.done(*NGRAM, *MODEL, "--yes", "--json")
    assert "speculates already" in json.loads(done.stdout)["candidates"][0]["words"]
    assert "compares with that" in done.stderr


# What is not tried


@pytest.mark.parametrize(("gate", "code"), [("slower", 0), ("not-faster", 1)])
def test_a_forecast_below_the_bound_restarts_nothing(stage: Stage, gate: str, code: int):
    words = (*NGRAM, *MODEL, "--if-forecast-above", 50, "--fail-if", gate, "--json")
    done = stage.done(*words)
    told = json.loads(done.stdout)
    assert stage.tried == [] and done.return_value == code
    assert told["verdict"] is None and told["absent"]["verdict"]
    assert "not above 50" in told["candidates"][0]["absent"]["verdict"]


def test_a_bound_without_a_forecast_restarts_nothing(stage: Stage):
    head = ("--method", "eagle3", "--k", 3, "--draft", "org/head")
    done = stage.done(*head, *MODEL, "--if-forecast-above", 0.1, "--yes")
    assert stage.tried == [] and "needs a forecast" in " ".join(done.stderr.split())
    assert "Nothing was restarted" in done.stdout


def expected(monkeypatch: pytest.MonkeyPatch, *speedups: tuple[float, float, float]) -> None:
    def outlooks(service: Service, plan: LivePlan, *rest: Any) -> Any:
        pairs = zip(plan.candidates, speedups, strict=True)
        return [Outlook(one, Interval(*speedup), "") for one, speedup in pairs], "", ()

    monkeypatch.setattr(live, "outlooks", outlooks)


def test_the_most_promising_is_first_and_the_rest_stops(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    """Both sides are one server here: the measured speedup is about 1."""
    expected(monkeypatch, (0.1, 0.05, 0.2), (3.0, 2.0, 4.0), (2.0, 0.5, 3.0))
    done = stage.done(
        "--method", "ngram", "--k", 2, "--method", "ngram", "--k", 3, "--method", "suffix", "--yes", "--json"
    )
    told = json.loads(done.stdout)
    assert [one.describe() for one in stage.tried] == ["ngram, k 3", "suffix"]
    assert [one["candidate"] for one in told["candidates"]] == ["ngram, k 3", "suffix", "ngram, k 2"]
    assert "was measured at least" in told["candidates"][2]["absent"]["verdict"]
    assert {"verdict", "speedup", "prompts", "reload_s", "definitions"} <= told.keys()


@pytest.mark.parametrize(("failing", "code"), [(1, 0), (2, 3)])
def test_candidates_that_fail_are_an_error_where_all_do(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, failing: int, code: int
):
    """Sure to be tried: nothing is forecast of them."""
    stage.failures = {"ngram, k 2": "out of memory", **({"ngram, k 3": "crashed"} if failing == 2 else {})}
    two = ("--method", "ngram", "--k", 2, "--method", "ngram", "--k", 3)
    done = stage.done(*two, "--yes", "--fail-if", "slower", "--json")
    reasons = [one["reason"] for one in json.loads(done.stdout)["candidates"]]
    assert done.return_value == code
    assert sum("the candidate failed" in reason for reason in reasons) == failing
    assert ("all 2 candidates that were tried failed" in done.stderr) == (failing == 2)


def test_each_of_several_candidates_is_told_as_it_ends(stage: Stage):
    stage.failures = {"ngram, k 3": "out of memory"}
    done = stage.done(*THREE, "--yes")
    told = [row for row in done.stderr.splitlines() if row.startswith("ngram, k")]
    ends = [row for row in told if "decode speed" in row or ": refused" in row]
    assert [row.partition(":")[0] for row in ends] == ["ngram, k 2", "ngram, k 3", "ngram, k 4"]
    assert "refused, decode speed +0.0 %: No verdict, as the candidate failed" in ends[1]
    assert told.index(ends[0]) < [row.startswith("ngram, k 3") for row in told].index(True), "as it ends"


def test_reports_of_several_candidates_are_kept_apart(stage: Stage):
    rows = stage.done(*THREE, "--yes").stdout.splitlines()
    reports = [number for number, row in enumerate(rows) if row.startswith("Report: ")]
    assert len(reports) == 3 and [rows[number + 1] for number in reports] == [""] * 3
    assert rows[reports[-1] + 2].startswith("ngram, k 2: ")


def test_one_candidate_has_no_line_beside_its_report(stage: Stage):
    done = stage.done(*NGRAM, "--yes")
    assert "decode speed" not in done.stderr and done.stdout.splitlines()[-1].startswith("Report: ")


@pytest.mark.parametrize(
    ("gate", "code"), [((), 0), (("--fail-if", "slower"), 0), (("--fail-if", "not-faster"), 1)]
)
def test_no_verdict_is_no_failure_of_the_server(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, gate: tuple[str, ...], code: int
):
    monkeypatch.setattr("breakeven.trial.store.judge", lambda *given: Verdict("refused", "No verdict: so."))
    done = stage.done(*THREE, "--yes", "--json", *gate)
    assert {one["verdict"] for one in json.loads(done.stdout)["candidates"]} == {"refused"}
    assert done.return_value == code


# At a terminal


@pytest.mark.parametrize("answer", [True, False])
def test_it_asks_at_a_terminal(stage: Stage, monkeypatch: pytest.MonkeyPatch, answer: bool):
    asked: list[str] = []

    def confirm(question: str, err: bool) -> bool:
        asked.append(question)
        return answer

    monkeypatch.setattr(live, "can_ask", lambda: True)
    monkeypatch.setattr(click, "confirm", confirm)
    done = stage.done(*NGRAM, *MODEL)
    assert len(stage.tried) == answer and done.return_value == 0
    assert asked[0].startswith("ngram, k 5, n-grams of 2 to 4 tokens: forecast ")
    assert asked[0].endswith("; 2 restarts, of which none was timed yet (each may take 2 h 00 min); go on?")


def test_ctrl_c_at_the_question_says_that_nothing_was_restarted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    def confirm(question: str, err: bool) -> bool:
        raise click.Abort

    monkeypatch.setattr(live, "can_ask", lambda: True)
    monkeypatch.setattr(click, "confirm", confirm)
    with pytest.raises(click.Abort) as raised:
        stage.done(*NGRAM)
    (note,) = raised.value.__notes__
    assert note.startswith("nothing was restarted for ngram, k 5") and "baseline is kept in" in note
    assert stage.tried == []


# Plan file and order of options


def test_a_plan_file_holds_all_of_it(stage: Stage):
    plan = stage.folder / "plan.toml"
    plan.write_text(
        'server = "systemd:vllm.service"\nyes = true\njson = true\nprompts = "brief"\nrepeats = 1\n'
        f'max-tokens = 12\nout = "{stage.folder / "out"}"\n[[candidate]]\nmethod = "ngram"\nk = 7\n'
        "min-n = 2\nmax-n = 3\n"
    )
    result = CliRunner().invoke(trial, ["--plan", str(plan)], standalone_mode=False)
    assert result.exception is None, result.exception
    assert stage.tried == [SpeculationConfig("ngram", 7, 2, 3)]
    assert json.loads(result.stdout)["run_dir"]


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("repeats = 1.5", (), "1.5"),
        ("concurrency = true", (), "true"),
        ('order = "BA"', (), "BA"),
        ("repeats = 3\ncap = 4", (), "--cap limits --repeats auto"),
        ('[[candidate]]\nmethod = "ngram"', NGRAM, "the plan file has its candidates"),
        ("plan = 'x'", (), "plan is not known"),
    ],
)
def test_a_plan_file_is_checked_as_options_are(stage: Stage, text: str, words: tuple[str, ...], said: str):
    plan = stage.folder / "plan.toml"
    plan.write_text(text)
    assert said in stage.refused("--plan", plan, *(words or NGRAM))


def test_a_plan_with_candidates_needs_a_server(tmp_path: Path):
    plan = tmp_path / "plan.toml"
    plan.write_text('[[candidate]]\nmethod = "ngram"\nk = 5')
    result = CliRunner().invoke(trial, ["--plan", str(plan)], standalone_mode=False)
    assert isinstance(result.exception, UsageError) and 'write  server = "' in str(result.exception)


def test_what_is_typed_counts_more_than_the_plan(stage: Stage):
    plan = stage.folder / "plan.toml"
    plan.write_text('if-forecast-above = 0.0\nkeep-if = "faster"\n')
    done = stage.done("--plan", plan, *NGRAM, *MODEL, "--if-forecast-above", 50)
    assert stage.tried == [] and "not above 50" in done.stderr


def test_options_belong_to_the_method_before_them(stage: Stage):
    stage.done("--yes", "--k", 4, "--method", "ngram", "--max-n", 3, "--min-n", 2, "--method", "suffix")
    told = {one.describe() for one in stage.tried}
    assert told == {"ngram, k 4, n-grams of 2 to 3 tokens", "suffix, k 4"}


# Where an engine is told by a file, and as whom


TRT = "/opt/trt/bin/trtllm-serve /models/m --port {port}"
TRT_NGRAM = ("--method", "ngram", "--k", "5", "--max-n", "4")


def test_a_file_of_an_engine_lies_where_the_unit_finds_it_and_goes_with_the_trial(stage: Stage):
    stage.machine(command=TRT.format(port=stage.url.rpartition(":")[2]))
    said = stage.run(*TRT_NGRAM, "--dry-run").stdout
    assert "write /run/breakeven/breakeven-speculation-" in said
    assert "remove /run/breakeven/breakeven-speculation-" in said


def test_a_file_that_a_reboot_takes_away_is_not_kept(stage: Stage):
    stage.machine(command=TRT.format(port=8000))
    assert "leave out --keep-if" in stage.refused(*TRT_NGRAM, "--keep-if", "faster").replace("\n", " ")


@pytest.mark.parametrize(
    ("target", "more"),
    [
        ("systemd-user:vllm", ()),
        ("process:", ("--", "vllm", "serve", "m")),
        ("attached:http://127.0.0.1:1", ()),
    ],
)
def test_sudo_is_refused_where_it_is_of_no_use(target: str, more: tuple[str, ...], stage: Stage):
    given = ["--server", target, "--sudo", *NGRAM, *more]
    result = CliRunner().invoke(trial, given, standalone_mode=False)
    assert isinstance(result.exception, UsageError)
    assert str(result.exception).startswith(target) and "leave out --sudo" in str(result.exception)


def test_speculation_that_only_its_counters_tell_of_is_said(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("breakeven.forecast.anchor.speculated", lambda run: True)
    said = " ".join(stage.done(*NGRAM, "--yes").stderr.split())
    assert "by its counters, though its command line does not say so" in said


@pytest.mark.parametrize(("somebody", "asleep"), [(True, True), (True, False), (False, True)])
def test_sudo_asks_while_somebody_is_there(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, somebody: bool, asleep: bool
):
    """At the beginning, and again before the restart: half an hour of measuring may lie in between."""
    (stage.folder / "sudo").write_text(
        f'#!/bin/sh\n[ "$1" = -n ] && exit {int(asleep)}\necho "$@" >> {stage.folder}/asked\n'
    )
    (stage.folder / "sudo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{stage.folder}:{os.environ['PATH']}")
    monkeypatch.setattr(live, "can_ask", lambda: somebody)
    stage.done(*NGRAM, "--sudo", "--yes")
    asked = stage.folder / "asked"
    assert (asked.read_text().split() if asked.exists() else []) == ["-v", "-v"] * (somebody and asleep)
