import dataclasses
from pathlib import Path

import orjson
import pytest

from breakeven.errors import RunFormatError, UsageError
from breakeven.trial.store import (
    FILE,
    FORMAT_VERSION,
    SideRecord,
    TrialRecord,
    compare_runs,
    is_trial,
    load_record,
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
