"""A run, or a trial's baseline, as a source of recorded requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.drafters.tokens import UNLIMITED
from breakeven.errors import RunFormatError, UsageError
from breakeven.replay.sources import open_source
from breakeven.trace.journal import RunWriter
from breakeven.trace.records import Event, Kind, RequestError, RequestTrace
from breakeven.trace.run import ServerInfo
from breakeven.trace.tokens import TOKENS, Header, RequestTokens, write_tokens
from breakeven.workload.prompts import Sampling
from tests.unit.trace import builders

SLOW = RequestError("TimedOut", "too slow")


def recorded(number: int, *output: int, **changes: Any) -> RequestTrace:
    trace = replace(builders.trace(number), prompt_token_ids=(1, 2), output_token_ids=output)
    return replace(trace, **changes)


def a_run(folder: Path, *traces: RequestTrace, **changes: Any) -> Path:
    changes = {"server": ServerInfo("vllm"), **changes}
    writer = RunWriter.create(folder, builders.meta(**changes), builders.PROMPTS)
    for trace in traces:
        writer.append(trace)
    writer.finish(writer.meta)
    return folder


def tokens(name: str, *output: int, reasoning: int = 0, matches: bool | None = True) -> RequestTokens:
    return RequestTokens(name, np.array([9], np.int32), np.array(output, np.int32), reasoning, matches)


def test_recorded_ids(tmp_path: Path):
    source = open_source(a_run(tmp_path / "r", recorded(0, 5, 6), recorded(1, 7)))
    first, second = source
    assert (first.id, first.category, first.max_tokens) == ("p#0", "prose", 16)
    assert first.prompt.tolist() == [1, 2] and first.output.tolist() == [5, 6]
    assert first.output.dtype == np.int32 and second.output.tolist() == [7]
    origin = source.origin
    assert (origin.kind, origin.ids, origin.temperature) == ("run", "recorded", 0.0)
    assert origin.path == str(tmp_path / "r") and source.warnings == () and source.skipped == {}


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama.cpp", None])
def test_the_engine_is_named_as_the_run_names_it(engine: str | None, tmp_path: Path):
    path = a_run(tmp_path / "r", recorded(0, 5), server=ServerInfo(engine))
    assert open_source(path).origin.engine == engine


@pytest.mark.parametrize("temperature", [None, 0.7])
def test_the_temperature_is_told(temperature: float | None, tmp_path: Path):
    path = a_run(tmp_path / "r", recorded(0, 5), sampling=Sampling(temperature=temperature))
    assert open_source(path).origin.temperature == temperature


def test_the_room_of_the_server_is_told(tmp_path: Path):
    server = ServerInfo("vllm", flags={"max_model_len": 4096})
    (request,) = open_source(a_run(tmp_path / "r", recorded(0, 5), server=server))
    assert request.max_model_len == 4096
    (request,) = open_source(a_run(tmp_path / "s", recorded(0, 5), server=ServerInfo("vllm", flags={"k": 1})))
    assert request.max_model_len is None


REPEATS = [recorded(0, 5, 6), recorded(1, 5, 6), recorded(2, 5), recorded(3, 5, 6, prompt_id="q")]


@pytest.mark.parametrize("temperature", [None, 0.7])
def test_at_a_temperature_equal_answers_are_all_kept(temperature: float | None, tmp_path: Path):
    path = a_run(tmp_path / "r", *REPEATS, sampling=Sampling(temperature=temperature))
    source = open_source(path)
    assert source.expected == len(list(source)) == 4 and source.skipped == {}


def test_greedy_equal_answers_to_one_prompt_are_kept_once(tmp_path: Path):
    source = open_source(a_run(tmp_path / "r", *REPEATS))
    assert source.expected == 3
    for _ in range(2):
        assert [request.id for request in source] == ["p#0", "p#2", "p#3"]
        assert source.skipped == {"repeat with the same output": 1}


def test_what_is_skipped(tmp_path: Path):
    traces = [
        recorded(0, 5),
        recorded(1, error=SLOW, output_token_ids=(5,)),
        recorded(2, output_token_ids=None),
        recorded(3, output_token_ids=None, text="", events=()),
    ]
    source = open_source(a_run(tmp_path / "r", *traces))
    assert source.expected == len(list(source)) == 1
    assert source.skipped == {"failed request": 1, "no token ids": 1, "empty output": 1}


def test_without_ids_of_the_prompts_it_says_so(tmp_path: Path):
    source = open_source(a_run(tmp_path / "r", recorded(0, 5, prompt_token_ids=None)))
    (request,) = source
    assert len(request.prompt) == 0 and "prompt" in source.warnings[0]


def events(*kinds_and_counts: tuple[Kind, int | None]) -> tuple[Event, ...]:
    return tuple(Event(i, i, kind, n) for i, (kind, n) in enumerate(kinds_and_counts))


@pytest.mark.parametrize(
    ("seen", "answer_from"),
    [
        (events((Kind.CONTENT, 2)), 0),
        (events((Kind.CONTENT, None)), 0),
        (events((Kind.REASONING, 2), (Kind.REASONING, 3), (Kind.CONTENT, None)), 5),
        (events((Kind.REASONING, 2), (Kind.SILENT, 1), (Kind.REASONING, 1), (Kind.CONTENT, 4)), 4),
        (events((Kind.REASONING, None), (Kind.CONTENT, 4)), None),
    ],
)
def test_where_the_answer_begins(seen: tuple[Event, ...], answer_from: int | None, tmp_path: Path):
    (request,) = open_source(a_run(tmp_path / "r", recorded(0, 5, 6, events=seen)))
    assert request.answer_from == answer_from


def test_ids_of_the_servers_tokenizer(tmp_path: Path):
    traces = [recorded(i, output_token_ids=None) for i in range(4)]
    path = a_run(tmp_path / "r", *traces)
    made = [tokens("p#0", 5, 6, reasoning=1), tokens("p#1", 7, matches=False), tokens("p#2", 8, matches=None)]
    write_tokens(path, Header("server tokenizer", "it took too long"), made)
    source = open_source(path)
    first, *others = source
    assert first.prompt.tolist() == [9] and first.output.tolist() == [5, 6] and first.answer_from == 1
    assert len(others) == 2 and source.skipped == {"no token ids": 1}
    assert source.origin.ids == "server tokenizer"
    assert any("it took too long" in warning for warning in source.warnings)
    assert any("1 of 3 requests" in warning for warning in source.warnings)


def test_ids_that_the_server_recorded_come_first(tmp_path: Path):
    path = a_run(tmp_path / "r", recorded(0, 5))
    write_tokens(path, Header("server tokenizer"), [tokens("p#0", 6)])
    assert [request.output.tolist() for request in open_source(path)] == [[5]]


def test_a_trial_is_its_baseline(tmp_path: Path):
    a_run(tmp_path / "baseline", recorded(0, 5))
    a_run(tmp_path / "candidate", recorded(0, 6))
    (tmp_path / "trial.json").write_text("{}")
    source = open_source(tmp_path)
    assert [request.output.tolist() for request in source] == [[5]]
    assert (source.origin.kind, source.origin.path) == ("trial", str(tmp_path))
    assert [request.output.tolist() for request in open_source(tmp_path / "candidate")] == [[6]]


@pytest.mark.parametrize(("engine", "advice"), [("llama.cpp", "measure again"), ("vllm", "--token-ids")])
def test_without_any_ids_it_says_how_to_record_them(engine: str, advice: str, tmp_path: Path):
    path = a_run(tmp_path / "r", recorded(0, output_token_ids=None), server=ServerInfo(engine))
    with pytest.raises(UsageError, match=f"has no token ids: .*{advice}.*--tokenizer FOLDER"):
        open_source(path)
    write_tokens(path, Header("server tokenizer", "HTTP 404"), [])
    with pytest.raises(UsageError, match="HTTP 404"):
        open_source(path)


def test_a_run_in_which_every_request_failed(tmp_path: Path):
    path = a_run(tmp_path / "r", recorded(0, 5, error=SLOW))
    with pytest.raises(UsageError, match="failed request: 1"):
        list(open_source(path))


def test_ids_out_of_range_are_named(tmp_path: Path):
    path = a_run(tmp_path / "r", recorded(0, 5, 2**31))
    with pytest.raises(UsageError, match=r"request p#0: `output_token_ids` holds 2147483648"):
        list(open_source(path))


def test_damaged_tokens(tmp_path: Path):
    path = a_run(tmp_path / "r", recorded(0, output_token_ids=None))
    (path / TOKENS).write_text("{")
    with pytest.raises(RunFormatError, match="is damaged"):
        open_source(path)


def test_text_and_a_tokenizer(tmp_path: Path):
    tokenizers = pytest.importorskip("tokenizers")
    names = {"<unk>": 0, "hm": 1, "Grüße": 2, "text": 3}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(names, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    traces = [
        recorded(i, output_token_ids=None, reasoning=text) for i, text in enumerate(["hm hm", "hm", "hm"])
    ]
    source = open_source(a_run(tmp_path / "r", *traces), tmp_path)
    assert source.expected == 2
    first, second = source
    assert first.prompt.tolist() == [2, 0] and first.output.tolist() == [1, 1, 3] and first.answer_from == 2
    assert second.output.tolist() == [1, 3] and source.skipped == {"repeat with the same output": 1}
    assert source.origin.ids == "tokenizer" and len(source.warnings) == 2


def test_llamacpp_whose_tokenizer_gave_none_is_not_told_that_its_version_is_old(tmp_path: Path):
    path = a_run(tmp_path / "r", recorded(0, output_token_ids=None), server=ServerInfo("llama.cpp"))
    with pytest.raises(UsageError, match="with this version"):
        open_source(path)
    write_tokens(path, Header("server tokenizer", "it timed out"), [])
    with pytest.raises(UsageError, match=r"it timed out.*: measure again, or name") as caught:
        open_source(path)
    assert "with this version" not in str(caught.value)


def test_limits_beyond_what_counts_are_none(tmp_path: Path):
    server = ServerInfo("vllm", flags={"max_model_len": 2**40})
    (request,) = open_source(a_run(tmp_path / "r", recorded(0, 5, max_tokens=2**40), server=server))
    assert (request.max_tokens, request.max_model_len) == (UNLIMITED, UNLIMITED)
