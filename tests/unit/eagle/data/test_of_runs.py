"""Requests of a run as chats."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.eagle.data.chats import Chat
from breakeven.eagle.data.of_runs import chats_of, files_of
from breakeven.eagle.data.sources import open_sources
from breakeven.eagle.recipe_file import read_recipe
from breakeven.errors import UsageError
from breakeven.trace.journal import RunWriter
from breakeven.trace.records import RequestError, RequestTrace
from breakeven.trace.run import load_run
from breakeven.trace.tokens import Header, RequestTokens, write_tokens
from tests.unit.eagle.data.plain import write_recipe
from tests.unit.trace import builders


def recorded(number: int, **changes: Any) -> RequestTrace:
    made = {"prompt_token_ids": (1, 2), "output_token_ids": (3, 4, 5), "usage": None}
    return replace(builders.trace(number), **{**made, **changes})


def a_run(folder: Path, *traces: RequestTrace, **changes: Any) -> Path:
    writer = RunWriter.create(folder, builders.meta(**changes), builders.PROMPTS)
    for trace in traces:
        writer.append(trace)
    writer.finish(writer.meta)
    return folder


def read(folder: Path) -> tuple[list[Chat], dict[str, int]]:
    left_out: Counter[str] = Counter()
    return list(chats_of(load_run(folder), "runs/a", left_out)), dict(left_out)


def test_ids_that_the_server_told(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 2, "completion_tokens": 3}
    told = recorded(0, text="Hello", reasoning="Hm.", finish_reason="length", usage=usage)
    (chat,), left_out = read(a_run(tmp_path / "a", told))
    assert chat.where == "runs/a, request p#0" and chat.category == "prose"
    assert chat.asked == ({"role": "user", "content": "Grüße 🦜"},)
    assert chat.reply == {"role": "assistant", "content": "Hello", "reasoning_content": "Hm."}
    assert chat.ids is not None
    assert (chat.ids.prompt.tolist(), chat.ids.output.tolist()) == ([1, 2], [3, 4, 5])
    assert chat.ids.output.dtype == np.int32
    assert (chat.ended, chat.counted, chat.several) == (False, (2, 3), False)
    assert left_out == {}


@pytest.mark.parametrize(("matches", "known"), [(True, True), (None, True), (False, False)])
def test_ids_that_its_tokenizer_made_are_taken_where_they_are_as_many(
    matches: bool | None, known: bool, tmp_path: Path
) -> None:
    folder = a_run(tmp_path / "a", recorded(0, prompt_token_ids=None, output_token_ids=None))
    made = RequestTokens("p#0", np.array([9], np.int32), np.array([8, 7], np.int32), 0, matches)
    write_tokens(folder, Header("server tokenizer"), [made])
    (chat,), _ = read(folder)
    assert (chat.ids is not None) == known
    if chat.ids is not None:
        assert (chat.ids.prompt.tolist(), chat.ids.output.tolist()) == ([9], [8, 7])


def test_text_alone(tmp_path: Path) -> None:
    (chat,), _ = read(a_run(tmp_path / "a", recorded(0, output_token_ids=None)))
    assert chat.ids is None and chat.reply == {"role": "assistant", "content": "text"}


def test_raw_completions_are_texts(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "a", recorded(0, prompt_id="q"), api="completions")
    (chat,), _ = read(folder)
    assert chat.asked == "def f("
    (chat,), _ = read(a_run(tmp_path / "b", recorded(0, prompt_id="q")))
    assert chat.asked == ({"role": "user", "content": "def f("},)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"error": RequestError("TimedOut", "too slow")}, "failed request"),
        ({"prompt_id": "gone"}, "a request of a prompt that the run does not keep"),
        ({"output_token_ids": None, "tool_calls": "f()"}, "tool calls without token ids"),
        ({"output_token_ids": None, "text": ""}, "no reply"),
    ],
)
def test_what_is_left_out_has_its_reason(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    chats, left_out = read(a_run(tmp_path / "a", recorded(0, **changes), recorded(1)))
    assert [chat.where for chat in chats] == ["runs/a, request p#1"]
    assert left_out == {reason: 1}


def test_numbers_that_are_no_ids(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="request p#0: `output_token_ids` holds 2147483648"):
        read(a_run(tmp_path / "a", recorded(0, output_token_ids=(2**31,))))


def test_a_source_is_a_run_or_the_baseline_of_a_trial(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "a", recorded(0), recorded(1))
    trial = tmp_path / "t"
    trial.mkdir()
    (trial / "trial.json").write_text("{}")
    a_run(trial / "baseline", recorded(0))
    sources = open_sources(read_recipe(write_recipe(tmp_path, tmp_path, ["a", "t"])))
    left_out: Counter[str] = Counter()
    assert [len(list(one.chats(True, left_out))) for one in sources] == [2, 1]
    prompts = [[chat.asked for chat in one.chats(False, left_out)] for one in sources]
    assert prompts[0] == prompts[1] and len(prompts[0]) == len(builders.PROMPTS)
    assert set(sources[0].inputs) == {"a/prompts.jsonl", "a/requests.parquet"}
    assert [one.name for one in files_of(folder)] == ["prompts.jsonl", "requests.parquet"]
