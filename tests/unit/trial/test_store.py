import dataclasses
from pathlib import Path
from typing import Any

import orjson
import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.meter import FOREIGN
from breakeven.errors import RunFormatError, UsageError
from breakeven.trace.disk import META
from breakeven.trace.meta import dump_meta
from breakeven.trial.left_out import nothing_kept
from breakeven.trial.result import TrialResult
from breakeven.trial.store import (
    FILE,
    FORMAT_VERSION,
    SideRecord,
    TrialRecord,
    compare_runs,
    is_trial,
    load_record,
    load_trial,
    save_trial,
)
from tests.unit.report import builders

BASELINE = builders.traces(repeats=2)[0]
RECORD = TrialRecord(
    model="m",
    workload="w",
    started="2026-01-01T00:00:00+00:00",
    floor=0.02,
    alpha=0.05,
    sides={"baseline": SideRecord("plain", 1.5), "candidate": SideRecord("drafts", None, ("learns",))},
    left_out={1: ("the client fell behind",)},
)


def test_a_record_comes_back_as_it_was(tmp_path: Path):
    save_trial(tmp_path, RECORD)
    back = load_record(tmp_path)
    assert dict(back.left_out) == RECORD.left_out
    assert back.sides["baseline"] == RECORD.sides["baseline"]
    assert tuple(back.sides["candidate"].warnings) == ("learns",)
    assert dataclasses.replace(back, sides={}, left_out={}) == dataclasses.replace(
        RECORD, sides={}, left_out={}
    )


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format_version": 1}', b"\xff", b"null"])
def test_a_damaged_record_is_named(content: bytes, tmp_path: Path):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(RunFormatError, match=r"trial\.json is damaged"):
        load_record(tmp_path)


def test_a_newer_record_asks_for_a_newer_version(tmp_path: Path):
    save_trial(tmp_path, dataclasses.replace(RECORD, format_version=FORMAT_VERSION + 1))
    with pytest.raises(RunFormatError, match="pip install -U breakeven"):
        load_record(tmp_path)


def test_a_folder_without_a_record_is_no_trial(tmp_path: Path):
    assert not is_trial(tmp_path)
    with pytest.raises(RunFormatError, match="breakeven trial"):
        load_record(tmp_path)


def saved(folder: Path, *prompts: str) -> Path:
    traces = [trace for trace in BASELINE if trace.prompt_id in prompts]
    return builders.run_on_disk(folder, traces, {"ok": True, "reasons": ()}).path


def test_runs_of_other_prompts_are_not_compared(tmp_path: Path):
    ids = list(dict.fromkeys(trace.prompt_id for trace in BASELINE))
    first, second = saved(tmp_path / "a", *ids), saved(tmp_path / "b", *ids[1:])
    with pytest.raises(UsageError, match="asked different prompts"):
        compare_runs(first, second, 0.02, 0.95)


def test_a_run_compared_with_itself_is_the_same(tmp_path: Path):
    ids = {trace.prompt_id for trace in BASELINE}
    run = saved(tmp_path / "a", *ids)
    result = compare_runs(run, run, 0.02, 0.95)
    assert result.comparison.speedup is not None and result.comparison.speedup.estimate == 1
    assert result.stop_reason == "two runs compared"
    assert result.elapsed_s is None


@pytest.mark.parametrize(
    "change",
    [{"alpha": "x"}, {"elapsed_s": []}, {"left_out": {"0": [1]}}, {"model": None}, {"floor": True}],
)
def test_a_value_of_another_type_is_damage(change: dict, tmp_path: Path):
    save_trial(tmp_path, RECORD)
    values = orjson.loads((tmp_path / FILE).read_bytes())
    (tmp_path / FILE).write_bytes(orjson.dumps({**values, **change}))
    with pytest.raises(RunFormatError, match="damaged"):
        load_record(tmp_path)


PAGE = SpecCounters(None, 40, 160, 80, (30, 25, 15, 10), "vLLM /metrics")
REAL = " ".join(map(str, range(400)))
"""No loop."""
OWN = SpecCounters(200, 40, 160, 80, None, "vLLM metrics in the reply", 280)


def counting(folder: Path, own: SpecCounters | None = None, warnings: tuple[str, ...] = ()) -> Path:
    """A run whose page counted PAGE, and whose first reply counted `own`."""
    first, *others = [trace for trace in BASELINE if trace.repeat == 0]
    run = builders.run_on_disk(
        folder, [dataclasses.replace(first, speculation=own, text=REAL), *others], {"ok": True, "reasons": ()}
    )
    meta = dataclasses.replace(run.meta, counters=PAGE, warnings=warnings)
    (folder / META).write_bytes(dump_meta(meta))
    return folder


def candidate(tmp_path: Path, **how: Any) -> TrialResult:
    return compare_runs(counting(tmp_path / "a"), counting(tmp_path / "b", **how), 0.02, 0.95)


def test_what_the_page_counted_stands_in_where_no_reply_counts(tmp_path: Path):
    assert candidate(tmp_path).candidate.acceptance == PAGE


def test_what_the_page_alone_knows_is_put_beside_what_the_replies_counted(tmp_path: Path):
    found = candidate(tmp_path, own=OWN).candidate
    assert found.acceptance is not None and found.acceptance.accepted_per_position == (30, 25, 15, 10)
    assert found.acceptance.steps == OWN.steps and list(found.acceptance_by_prompt.values()) == [OWN]


@pytest.mark.parametrize("own", [None, OWN])
def test_what_a_page_counted_of_others_too_is_not_the_sides(own: SpecCounters | None, tmp_path: Path):
    why = f"{FOREIGN}: it finished 99 requests while 8 were asked of it"
    made = candidate(tmp_path, own=own, warnings=(why,))
    assert made.candidate.acceptance == own
    assert made.baseline.acceptance == PAGE, "whose server was its own"
    assert f"candidate: {why}" in made.confounders


def test_a_warning_of_both_sides_is_told_once_and_one_of_one_side_names_it(tmp_path: Path):
    sides = {name: counting(tmp_path / name, warnings=("both", name)) for name in ("baseline", "candidate")}
    told = compare_runs(*sides.values(), 0.02, 0.95).confounders
    assert told[:3] == ("both", "baseline: baseline", "candidate: candidate")


def left_out_trial(folder: Path, left_out: dict[int, tuple[str, ...]]) -> TrialResult:
    """Both sides answered two repeats; their self-checks passed in what is kept."""
    for name in ("baseline", "candidate"):
        builders.run_on_disk(folder / name, BASELINE, {"ok": True, "reasons": ()})
    save_trial(folder, dataclasses.replace(RECORD, left_out=left_out, finished=True))
    return load_trial(folder)


def test_what_was_answered_and_left_out_is_said_so(tmp_path: Path):
    why = "all 2 repeats that both sides answered were left out of the comparison"
    made = left_out_trial(tmp_path, {0: ("it lagged 9 ms",), 1: ("it lagged 8 ms",)})
    assert made.comparison.lossless.reason == why and made.verdict.reason == f"No verdict: {why}."
    assert [said for said in made.confounders if "lagged" in said] == [
        "2 repeats left out of the comparison: the first of them, number 1, because it lagged 9 ms"
    ]


def test_what_is_kept_is_compared(tmp_path: Path):
    made = left_out_trial(tmp_path, {0: ("it lagged 9 ms",)})
    assert made.comparison.lossless.compared == 8 and "left out" not in made.verdict.reason


def test_nothing_is_left_out_where_nothing_was_answered(tmp_path: Path):
    assert nothing_kept([[], BASELINE], {0: ("x",)}) is None
    assert nothing_kept([BASELINE, BASELINE], {}) is None
    once = [trace for trace in BASELINE if trace.repeat == 1]
    assert (nothing_kept([BASELINE, once], {1: ("x",)}) or "").startswith("the one repeat")
