"""`breakeven guard vllm-config`: what it prints is what a server's guard reads."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from breakeven.cli.guard_vllm_config import vllm_config
from breakeven.cost.calibration import Calibration, save_calibration
from breakeven.cost.curve import CurvePoint
from breakeven.errors import UsageError
from breakeven.guard.config import CONFIG, GuardConfig, config_of
from breakeven.guard.survival import Survival
from breakeven.trace.meta import ServerInfo


def asked(*words: object) -> dict[str, Any]:
    done = CliRunner().invoke(vllm_config, [*map(str, words), "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def calibration(folder: Path, engine: str | None = "vllm", points: int = 3) -> Path:
    made = Calibration(
        created="2026-01-01T00:00:00Z",
        breakeven_version="0.1.0",
        url="http://127.0.0.1:8000",
        api="chat",
        model="tiny",
        server=ServerInfo(engine),
        workload="brief",
        max_tokens=64,
        moe=False,
        points=tuple(CurvePoint(n, 0.01, 0.01, 0.01, 9) for n in range(1, points + 1)),
    )
    save_calibration(made, folder / "calibration.json")
    return folder


def test_the_flag_loads_the_guard() -> None:
    flags = asked()["flags"]
    assert flags[0] == "--speculative-config"
    assert json.loads(flags[1]) == {
        "method": "custom_class",
        "model": "breakeven.guard.vllm.GuardedNgram",
        "num_speculative_tokens": 10,
    }


def test_the_environment_is_what_the_guard_reads(tmp_path: Path) -> None:
    file = calibration(tmp_path)
    words = ("--epsilon", "1.5%", "--most-tokens", 6, "--kill-file", tmp_path / "off", "--metrics-port", 9400)
    told = asked(*words, "--calibration", file, "--state-file", tmp_path / "state")
    config = config_of(told["environment"])
    assert (config.settings.epsilon, config.settings.most_tokens) == (0.015, 6)
    assert (config.kill_file, config.calibration) == (str(tmp_path / "off"), str(file))
    assert (config.metrics_port, config.state_file) == (9400, str(tmp_path / "state"))
    assert json.loads(told["flags"][1])["num_speculative_tokens"] == 6


def test_the_words_go_into_a_shell() -> None:
    done = CliRunner().invoke(vllm_config, ["--kill-file", "a b/off"], catch_exceptions=False)
    export, flag = done.stdout.splitlines()
    word, assigned = shlex.split(export)
    name, _, value = assigned.partition("=")
    config = config_of({name: value})
    assert (word, name) == ("export", CONFIG)
    assert config == GuardConfig(kill_file=str(Path("a b/off").absolute()))
    assert len(shlex.split(flag)) == 2


@pytest.mark.parametrize("text", ("0.02", "2%", " 2 % "))
def test_a_share_in_either_way(text: str) -> None:
    assert json.loads(asked("--epsilon", text)["environment"][CONFIG] or "{}") == {}


@pytest.mark.parametrize("text", ("1", "100%", "-1%", "two", "nan"))
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--epsilon 1%" if text == "1" else "--epsilon 2%"):
        CliRunner().invoke(vllm_config, ["--epsilon", text], catch_exceptions=False)


def test_a_calibration_of_another_engine_is_refused(tmp_path: Path) -> None:
    calibration(tmp_path, "sglang")
    with pytest.raises(UsageError, match="sglang"):
        CliRunner().invoke(vllm_config, ["--calibration", str(tmp_path)], catch_exceptions=False)


def test_a_calibration_without_a_curve_is_refused(tmp_path: Path) -> None:
    calibration(tmp_path, points=2)
    with pytest.raises(UsageError):
        CliRunner().invoke(vllm_config, ["--calibration", str(tmp_path)], catch_exceptions=False)


@pytest.mark.parametrize("option", ("--kill-file", "--state-file"))
def test_a_file_cannot_be_a_folder(option: str, tmp_path: Path) -> None:
    for folder in (str(tmp_path), ""):
        with pytest.raises(UsageError, match=rf"{option} .* is a folder: type  {option} .*guard$"):
            CliRunner().invoke(vllm_config, [option, folder], catch_exceptions=False)


def test_one_file_is_not_both(tmp_path: Path) -> None:
    words = ["--kill-file", str(tmp_path / "x"), "--state-file", str(tmp_path / "x")]
    with pytest.raises(UsageError, match="name another for one of them"):
        CliRunner().invoke(vllm_config, words, catch_exceptions=False)


def test_a_kill_file_that_is_there_is_told(tmp_path: Path) -> None:
    words = ["--kill-file", str(tmp_path / "off")]
    assert not CliRunner().invoke(vllm_config, words).stderr
    (tmp_path / "off").touch()
    done = CliRunner().invoke(vllm_config, words)
    assert "exists: nothing is drafted until it is removed" in " ".join(done.stderr.split())
    assert done.stdout.startswith("export ")


def test_a_state_is_not_written_over_something_else(tmp_path: Path) -> None:
    file = calibration(tmp_path) / "calibration.json"
    with pytest.raises(
        UsageError, match=r"holds something else \(no learned .*\): name another file$"
    ) as told:
        CliRunner().invoke(vllm_config, ["--state-file", str(file)], catch_exceptions=False)
    assert "remove" not in str(told.value)
    file.write_bytes(Survival().to_json())
    assert json.loads(asked("--state-file", file)["environment"][CONFIG]) == {"state_file": str(file)}


def test_folders_that_do_not_exist_here_are_to_be_made_where_the_server_runs(tmp_path: Path) -> None:
    kill, state = tmp_path / "a b" / "off", tmp_path / "c" / "state"
    both = CliRunner().invoke(vllm_config, ["--kill-file", str(kill), "--state-file", str(state)])
    (said,) = both.stderr.splitlines()
    assert said.startswith(
        f"! {kill.parent} and {state.parent} are no folders here: unless the server's machine"
    )
    assert said.endswith(f"mkdir -p '{kill.parent}' {state.parent}")
    one = CliRunner().invoke(vllm_config, ["--state-file", str(state), "--json"])
    assert one.stderr.endswith(f"it, type there mkdir -p {state.parent}\n") and json.loads(one.stdout)
    state.parent.mkdir()
    assert not CliRunner().invoke(vllm_config, ["--state-file", str(state)]).stderr


@pytest.mark.parametrize("option", ("--kill-file", "--state-file"))
def test_a_servers_file_may_be_out_of_sight(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    for name in ("exists", "is_dir", "is_file"):
        monkeypatch.setattr(Path, name, forbidden)
    done = CliRunner().invoke(vllm_config, [option, "/root/guard"], catch_exceptions=False)
    assert "/root/guard" in done.stdout and not done.stderr
