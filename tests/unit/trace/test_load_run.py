"""load_run: every folder that is no run, and every run that is not whole."""

import io
import json
import tracemalloc
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.errors import RunFormatError
from breakeven.trace.disk import JOURNAL, META, REQUESTS
from breakeven.trace.journal import RunWriter
from breakeven.trace.journal_file import lines
from breakeven.trace.meta import dump_meta, load_meta
from breakeven.trace.rows import dump_json, to_row
from breakeven.trace.run import load_run
from tests.unit.trace.builders import PROMPTS, meta, trace


@pytest.fixture
def finished(tmp_path):
    writer = RunWriter.create(tmp_path / "run", meta(), PROMPTS)
    writer.append(trace(1))
    writer.finish(meta())
    return tmp_path / "run"


def refused(path, message):
    with pytest.raises(RunFormatError, match=message):
        list(load_run(path).traces())


def test_not_a_run(tmp_path, finished):
    refused(tmp_path / "nothing", "there is no folder")
    refused(finished / META, r"is a file: name the run's folder, such as .*run$")
    refused(tmp_path, r"is no run, but these in it are: .*run$")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", r"has no run\.json")


def test_truncated_run_json(finished):
    (finished / META).write_bytes((finished / META).read_bytes()[:100])
    refused(finished, r"run\.json is damaged \(line")


@pytest.mark.parametrize("content", ["[]", "{}", '{"format_version": "1"}', "null"])
def test_foreign_run_json(finished, content):
    (finished / META).write_text(content)
    refused(finished, "was not written by breakeven")


def test_run_json_without_its_fields(finished):
    (finished / META).write_text('{"format_version": 1, "url": "x"}')
    refused(finished, "damaged or was not written by breakeven")


def test_newer_format(finished):
    record = json.loads((finished / META).read_bytes())
    (finished / META).write_text(json.dumps({**record, "format_version": 2}))
    refused(finished, "has format 2, and this version reads up to 1: type  pip install -U breakeven")


@pytest.mark.parametrize("keep", [0, 10, -20])
def test_truncated_parquet(finished, keep):
    (finished / REQUESTS).write_bytes((finished / REQUESTS).read_bytes()[:keep])
    refused(finished, "is truncated or damaged")


def test_damage_inside_the_parquet(finished):
    data = bytearray((finished / REQUESTS).read_bytes())
    data[20:200] = bytes(180)
    (finished / REQUESTS).write_bytes(data)
    refused(finished, "damaged")


def test_foreign_parquet(finished):
    pq.write_table(pa.table({"id": ["a"]}), finished / REQUESTS)
    refused(finished, "was not written by breakeven: it lacks prompt_id")


def test_no_requests_and_no_prompts(finished):
    (finished / REQUESTS).unlink()
    refused(finished, "holds no requests")
    (finished / JOURNAL).touch()
    (finished / "prompts.jsonl").unlink()
    with pytest.raises(RunFormatError, match=r"lacks prompts\.jsonl"):
        load_run(finished).prompts()


class Growing(io.BytesIO):
    """A file whose end is reached before its last line is written whole."""

    def __iter__(self):
        return iter([*self.getvalue().splitlines(keepends=True), b'{"id": "p', b'9#0"}\n', b"{}\n"])


def test_a_journal_that_is_being_written_is_read_up_to_its_last_whole_line(tmp_path, monkeypatch):
    RunWriter.create(tmp_path / "run", meta(), PROMPTS).append(trace(1))
    journal = tmp_path / "run" / JOURNAL
    written = journal.read_bytes()
    monkeypatch.setattr(type(journal), "open", lambda self, mode: Growing(written))
    assert [end for _, end, _ in lines(journal)] == [len(written)]


def test_a_damaged_line_in_the_middle_of_a_journal_is_named(tmp_path):
    writer = RunWriter.create(tmp_path / "run", meta(), PROMPTS)
    writer.append(trace(1))
    writer.append(trace(2))
    first, second = (tmp_path / "run" / JOURNAL).read_bytes().splitlines(keepends=True)
    (tmp_path / "run" / JOURNAL).write_bytes(first + b"{garbage\n" + second)
    refused(tmp_path / "run", r"journal\.jsonl, line 2 is damaged")


def test_a_journal_row_without_its_fields(tmp_path):
    RunWriter.create(tmp_path / "run", meta(), PROMPTS).pause(meta())
    (tmp_path / "run" / JOURNAL).write_text('{"id": "x", "end_ns": 1}\n')
    refused(tmp_path / "run", "holds a request that is damaged")


def test_unknown_fields_are_kept(tmp_path):
    record = json.loads(dump_meta(meta(kind="trial-side")))
    record["from_tomorrow"] = {"a": [1]}
    record["client"]["gpu"] = "none"
    loaded = load_meta(json.dumps(record).encode(), tmp_path)
    assert loaded.extra == {"from_tomorrow": {"a": [1]}}
    assert json.loads(dump_meta(loaded)) == record


def test_meta_round_trip(tmp_path):
    counters = SpecCounters(steps=4, accepted_per_position=(2, 1), source="vllm /metrics")
    before = replace(
        meta(),
        self_check={"ok": True, "reasons": []},
        counters=counters,
        load=Load(requests=3, kv_usage=0.5, token_s=(0.25, 8)),
        notes=("a",),
        elapsed_s=2.0,
    )
    assert load_meta(dump_meta(before), tmp_path) == before
    assert before.created.endswith("+00:00")
    assert before.client.cores >= 1


@pytest.mark.parametrize("field", ["load", "counters"])
def test_runs_of_before_it_was_kept_still_load(tmp_path, field):
    record = json.loads(dump_meta(meta()))
    del record[field]
    loaded = load_meta(json.dumps(record).encode(), tmp_path)
    assert getattr(loaded, field) is None and loaded.status == "running"


@pytest.mark.parametrize("pair", [[], [1], [1, 2, 3], [None, 1], "ab"])
def test_seconds_that_are_no_pair_are_refused(tmp_path, pair):
    record = json.loads(dump_meta(replace(meta(), load=Load(token_s=(1.0, 2.0)))))
    record["load"]["token_s"] = pair
    with pytest.raises(RunFormatError, match="token_s"):
        load_meta(json.dumps(record).encode(), tmp_path)


def test_memory_stays_flat(tmp_path):
    """Twenty thousand small requests are written, finished and read within a few row groups of memory."""
    writer = RunWriter.create(tmp_path / "run", meta(), PROMPTS)
    row = trace(1, n_events=2)
    peaks = []
    for part in (range(2_000), range(2_000, 20_000)):
        tracemalloc.start()
        for number in part:
            writer._journal.append(f"p#{number}", _line(row, number), number)
        writer_peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        peaks.append(writer_peak)
    assert peaks[1] < peaks[0] + 200_000
    writer.finish(meta())
    run = load_run(tmp_path / "run")
    tracemalloc.start()
    assert sum(1 for _ in run.traces()) == len(run) == 20_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60_000_000


def _line(row, number):
    return dump_json(to_row(replace(row, id=f"p#{number}"))) + b"\n"


ODD = (None, True, -1, 1.5, "x", [], {}, [None], {"a": 1}, 10**400)


def places(value, path=()):
    """Paths to everything inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def test_any_value_in_any_place_of_run_json_is_read_or_refused(tmp_path):
    """What is read can be written again, and holds what a report formats."""
    counters = SpecCounters(steps=4, accepted_per_position=(2, 1))
    check = {"ok": True, "reasons": ["a"], "event_loop_lag_ms": {"p99": 0.5}}
    before = replace(meta(), counters=counters, load=Load(requests=3, token_s=(0.5, 8)), elapsed_s=2.0)
    good = dump_meta(replace(before, self_check=check, warnings=("w",)))
    for path in places(json.loads(good)):
        for odd in ODD:
            record = json.loads(good)
            inner = record
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = odd
            try:
                loaded = load_meta(json.dumps(record).encode(), tmp_path)
            except RunFormatError:
                continue
            assert loaded.elapsed_s is None or loaded.elapsed_s >= -1
            assert all(warning.split() for warning in loaded.warnings)
            dump_meta(loaded)


def test_text_that_is_no_utf8_inside_the_parquet(finished):
    data = (finished / REQUESTS).read_bytes()
    table = pq.read_table(finished / REQUESTS)
    column = table.schema.get_field_index("id")
    broken = pa.array([b"\xf0"] * len(table)).cast(pa.binary()).view(pa.string())
    pq.write_table(table.set_column(column, table.schema.field("id"), broken), finished / REQUESTS)
    assert (finished / REQUESTS).read_bytes() != data
    refused(finished, "is truncated or damaged")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("counters", {"drafts": -5}, "drafts is below 0"),
        ("counters", {"drafts": 5, "accepted_per_position": [3, -1]}, "accepted_per_position is below 0"),
        ("counters", {"drafted_tokens": 5, "accepted_tokens": 9}, "contradict themselves"),
        ("counters", {"drafts": 5, "accepted_per_position": [9]}, "contradict themselves"),
        ("load", {"output_tokens": -1}, "output_tokens is below 0"),
        ("load", {"token_s": [-1.0, 5]}, "token_s is below 0"),
    ],
)
def test_counts_that_cannot_be(finished, field, value, said):
    record = json.loads((finished / META).read_bytes())
    (finished / META).write_bytes(dump_json({**record, field: value}))
    refused(finished, said)
