"""A trace comes back from parquet and from the journal exactly as it went in."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.acceptance.counters import SpecCounters
from breakeven.trace.disk import REQUESTS
from breakeven.trace.journal import RunWriter
from breakeven.trace.records import Event, Kind, RequestError, RequestTrace
from breakeven.trace.requests_file import SCHEMA
from breakeven.trace.rows import from_row, to_row
from breakeven.trace.run import load_run
from breakeven.workload.prompts import Workload
from tests.unit.trace.builders import PROMPTS, meta, trace

big = st.integers(-(2**63), 2**63 - 1)
maybe_big = st.none() | big
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = big | st.floats(allow_nan=False, allow_infinity=False)
json_objects = st.dictionaries(
    text, st.recursive(st.none() | st.booleans() | numbers | text, st.lists), max_size=3
)
counts = st.none() | st.lists(big, max_size=4).map(tuple)
traces = st.builds(
    RequestTrace,
    id=text,
    prompt_id=text,
    category=text,
    repeat=big,
    block=big,
    max_tokens=big,
    scheduled_ns=maybe_big,
    connect_ns=maybe_big,
    sent_ns=big,
    end_ns=big,
    events=st.lists(st.builds(Event, big, big, st.sampled_from(Kind), maybe_big), max_size=5).map(tuple),
    text=text,
    reasoning=text,
    tool_calls=text,
    finish_reason=st.none() | text,
    usage=st.none() | json_objects,
    prompt_token_ids=counts,
    output_token_ids=counts,
    speculation=st.none()
    | st.builds(
        SpecCounters,
        maybe_big,
        maybe_big,
        maybe_big,
        maybe_big,
        accepted_per_position=counts,
        source=text,
        emitted_tokens=maybe_big,
    ),
    server_timings=st.none() | json_objects,
    error=st.none() | st.builds(RequestError, text, text, maybe_big),
    warnings=st.lists(text, max_size=3).map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(traces, max_size=4, unique_by=lambda trace: trace.id))
def test_journal_and_parquet_round_trip(expected):
    with tempfile.TemporaryDirectory() as folder:
        writer = RunWriter.create(Path(folder) / "run", meta(), PROMPTS)
        for one in expected:
            writer.append(one)
        assert list(load_run(writer.path).traces()) == expected
        writer.finish(meta())
        run = load_run(writer.path)
        assert list(run.traces()) == expected
        assert len(run) == len(expected)


def test_rows_of_before_emitted_tokens_were_kept():
    counted = replace(trace(1), speculation=SpecCounters(3, 2, 6, 4, (2, 2), "x", emitted_tokens=7))
    row = to_row(counted)
    del row["speculation"]["emitted_tokens"]
    assert from_row(row).speculation == SpecCounters(3, 2, 6, 4, (2, 2), "x")


def test_lone_surrogates_become_the_replacement_character(tmp_path):
    writer = RunWriter.create(tmp_path / "run", meta(), PROMPTS)
    writer.append(trace(1, text="a\ud800b \ud83e\udd9c c"))
    writer.finish(meta())
    (read,) = load_run(tmp_path / "run").traces()
    assert read.text == "a\ufffdb 🦜 c"


def test_the_file_has_the_declared_types(tmp_path):
    writer = RunWriter.create(tmp_path / "run", meta(), PROMPTS)
    writer.append(trace(1))
    writer.finish(meta())
    assert pq.read_schema(tmp_path / "run" / REQUESTS).equals(SCHEMA)
    column = pq.read_metadata(tmp_path / "run" / REQUESTS).row_group(0).column(10)
    assert column.path_in_schema == "event_read_ns.list.element"
    assert column.compression == "ZSTD"
    assert "DELTA_BINARY_PACKED" in column.encodings


def test_numbers_beyond_64_bits_do_not_stop_a_run(tmp_path):
    odd = replace(
        trace(1),
        output_token_ids=(2**64 - 1,),
        usage={"completion_tokens": 10**400},
        events=(Event(1000, 0, Kind.CONTENT, 2**63),),
    )
    writer = RunWriter.create(tmp_path / "run", meta(), PROMPTS)
    writer.append(odd)
    writer.finish(meta())
    (read,) = load_run(tmp_path / "run").traces()
    assert read.output_token_ids == (2**63 - 1,)
    assert read.events[0].n_tokens == 2**63 - 1
    assert read.usage == {"completion_tokens": 1e300}


def test_usage_nested_beyond_all_measure_does_not_stop_a_run(tmp_path):
    deep: list = []
    for _ in range(600):
        deep = [deep]
    writer = RunWriter.create(tmp_path / "run", meta(), PROMPTS)
    writer.append(replace(trace(1), usage={"completion_tokens": 4, "odd": deep}))
    writer.finish(meta())
    (read,) = load_run(tmp_path / "run").traces()
    assert read.usage is not None and read.usage["completion_tokens"] == 4


def test_names_that_are_no_text_do_not_stop_a_run(tmp_path):
    """Of the folder, the prompt file and the model: paths may hold any bytes, and servers send anything."""
    odd = meta(workload=Workload("\udcff", PROMPTS), model="\ud800")
    writer = RunWriter.create(tmp_path / "\udcff", odd, PROMPTS)
    writer.append(trace(1))
    writer.finish(odd)
    run = load_run(tmp_path / "\udcff")
    assert list(run.traces()) == [trace(1)]
    assert (run.meta.workload.name, run.meta.model) == ("\ufffd", "\ufffd")
