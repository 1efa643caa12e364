"""`breakeven calibrate`: what it refuses before it asks anything, and how it reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from breakeven.cli.calibrate import calibrate_verb
from breakeven.cli.show import show
from breakeven.cost.calibration import FILE, load_calibration
from breakeven.errors import BreakevenError, UsageError, WorkloadError
from breakeven.servers.fake import FakeServer, Script

pytestmark = pytest.mark.quiet
SCRIPT = Script(ttft_s=0.005, tpot_s=0.003, n_tokens=400)
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _as_on_an_idle_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy one makes the client lag, and points of the few tokens here drop out: see test_stretches."""
    monkeypatch.setattr("breakeven.cost.calibrate._lag_s", lambda meta: 0.0)


def calibrated(*words: object) -> Result:
    return CliRunner().invoke(calibrate_verb, list(map(str, words)), catch_exceptions=False)


def test_two_points_are_refused_before_a_server_is_asked():
    with pytest.raises(UsageError, match="there would be 2: type --max-concurrency 4"):
        calibrated(NOWHERE, "--max-concurrency", 2)


def test_more_at_once_than_any_engine_decodes_is_refused():
    done = calibrated(NOWHERE, "--max-concurrency", 1025)
    assert done.exit_code == 2 and "1025 is not in the range 1<=x<=1024" in done.stderr


def test_a_folder_in_use_is_refused(tmp_path: Path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(UsageError, match="is in use"):
        calibrated(NOWHERE, "--out", tmp_path)


def test_unknown_prompts_are_refused():
    with pytest.raises(WorkloadError, match="no built-in set"):
        calibrated(NOWHERE, "--prompts", "none-such")


def test_a_url_or_a_model_is_needed():
    with pytest.raises(UsageError, match=r"calibrate http://HOST:PORT .* calibrate --model smollm2"):
        calibrated()


@pytest.mark.parametrize("words", [("--slots", 4), ("--flags", "-t 2")])
def test_what_is_of_the_embedded_engine_is_refused_beside_a_url(words: tuple[object, ...]):
    with pytest.raises(UsageError, match=f"{words[0]} is of an embedded engine"):
        calibrated(NOWHERE, *words)


def test_beside_a_url_model_is_a_name_there(tmp_path: Path):
    words = ("--max-concurrency", 3, "--quick", "--max-tokens", 64, "--out", tmp_path / "out")
    with FakeServer(SCRIPT).in_thread() as server, pytest.raises(BreakevenError, match="no-such"):
        calibrated(server.url, "--model", "no-such", *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words", [("--flags", "--spec-type ngram-mod"), ("--moe",), ("--max-concurrency", 2)]
)
def test_a_refused_embedded_calibration_leaves_nothing(
    words: tuple[object, ...], tiny_model: Path, tmp_path: Path
):
    with pytest.raises(UsageError):
        calibrated("--model", tiny_model, *words, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_show_prints_a_calibration_again(tmp_path: Path):
    words = ("--max-concurrency", 3, "--quick", "--max-tokens", 64, "--dense")
    out = tmp_path / "out"
    with FakeServer(SCRIPT).in_thread() as server:
        made = calibrated(server.url, *words, "--out", out)
    for path in (out, out / FILE):
        assert CliRunner().invoke(show, [str(path)], catch_exceptions=False).stdout == made.stdout
        again = json.loads(CliRunner().invoke(show, [str(path), "--json"], catch_exceptions=False).stdout)
        assert again["path"] == str(out / FILE) and len(again["points"]) == 3 and "definitions" in again
    assert f"Next: breakeven forecast RECORD --calibration {out}" in made.stdout.splitlines()
    (out / FILE).write_text("{")
    with pytest.raises(UsageError, match="is no JSON"):
        CliRunner().invoke(show, [str(out)], catch_exceptions=False)


def test_show_lists_calibrations_in_its_help():
    assert "a calibration" in CliRunner().invoke(show, ["--help"]).stdout


def test_json_is_the_file_and_its_path(tmp_path: Path):
    words = ("--max-concurrency", 3, "--quick", "--max-tokens", 64, "--dense", "--json")
    with FakeServer(SCRIPT).in_thread() as server:
        done = calibrated(server.url, *words, "--out", tmp_path / "out")
    assert done.exit_code == 0
    shown = json.loads(done.stdout)
    assert shown.keys() >= {"path", "server", "points", "fit", "warnings", "definitions", "absent"}
    assert shown["path"] == str(tmp_path / "out" / FILE)
    kept = json.loads((tmp_path / "out" / FILE).read_text())
    assert {key: shown[key] for key in kept} == kept
    assert [point["concurrency"] for point in shown["points"]] == [1, 2, 3] and shown["moe"] is False


def test_a_server_with_too_few_slots_has_no_curve_and_is_told_so(tmp_path: Path):
    words = ("--max-concurrency", 4, "--quick", "--max-tokens", 64, "--out", tmp_path / "out")
    told = r"decoded at most 1 at once.*--parallel.*calibration\.json"
    with FakeServer(SCRIPT, slots=1).in_thread() as server, pytest.raises(UsageError, match=told):
        calibrated(server.url, *words)
    assert [point.concurrency for point in load_calibration(tmp_path / "out").points] == [1]


def test_the_default_folder_is_a_run_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with FakeServer(SCRIPT).in_thread() as server:
        done = calibrated(server.url, "--max-concurrency", 3, "--quick", "--max-tokens", 64)
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("calibrate-") and (folder / FILE).exists()
    assert "Straight line" in done.stdout and "a decode step by the tokens in it" in done.stdout
