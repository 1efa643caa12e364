"""JSON lines as a source: what is read, what is counted out, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from breakeven.drafters.tokens import UNLIMITED
from breakeven.errors import UsageError
from breakeven.replay.records import RecordedRequest
from breakeven.replay.sources import Source, open_source

GOOD = {"prompt_token_ids": [1, 2], "generated_token_ids": [3, 4]}


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def compressed(path: Path, data: bytes) -> bytes:
    """The bytes of the file, which is compressed as its ending says."""
    with pa.output_stream(str(path)) as stream:
        stream.write(data)
    return path.read_bytes()


def read(path: Path) -> list[RecordedRequest]:
    return list(open_source(path))


def refused(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read(path)
    return str(caught.value)


@pytest.mark.parametrize(
    "column", ["generated_token_ids", "output_token_ids", "token_ids", "completion_token_ids"]
)
def test_every_name_of_the_output(column: str, tmp_path: Path):
    path = write(tmp_path / "x.jsonl", {"prompt_token_ids": [1], column: [2**31 - 1, 0]})
    source = open_source(path)
    (request,) = source
    assert request.prompt.tolist() == [1] and request.output.tolist() == [2**31 - 1, 0]
    assert request.output.dtype == np.int32 and request.prompt.dtype == np.int32
    assert (source.origin.kind, source.origin.ids, source.origin.temperature) == ("jsonl", "recorded", None)
    assert source.skipped == {} and source.warnings == ()


def test_the_optional_columns(tmp_path: Path):
    named = {**GOOD, "id": 7, "category": "code", "max_tokens": 9, "max_model_len": 64}
    first, second = read(write(tmp_path / "x.jsonl", named, GOOD))
    assert (first.id, first.category, first.max_tokens, first.max_model_len) == ("7", "code", 9, 64)
    assert (second.id, second.category, second.max_tokens) == ("line2", "uncategorised", None)
    assert second.answer_from is None and second.max_model_len is None


def test_it_can_be_read_again_and_counts_anew(tmp_path: Path):
    source = open_source(write(tmp_path / "x.jsonl", GOOD, {**GOOD, "generated_token_ids": []}))
    for _ in range(2):
        assert len(list(source)) == 1
        assert source.skipped == {"empty output": 1}


def test_what_is_skipped_is_counted_by_its_reason(tmp_path: Path):
    none = {**GOOD, "generated_token_ids": None}
    records = [GOOD, none, {"prompt_token_ids": [1]}, {**GOOD, "generated_token_ids": []}]
    source = open_source(write(tmp_path / "x.jsonl", *records))
    assert len(list(source)) == 1
    assert source.skipped == {"no token ids": 2, "empty output": 1}


def test_without_prompts_it_says_what_that_means(tmp_path: Path):
    source = open_source(write(tmp_path / "x.jsonl", {"token_ids": [5]}))
    (request,) = source
    assert len(request.prompt) == 0 and len(source.warnings) == 1 and "prompt" in source.warnings[0]


@pytest.mark.parametrize("ending", [".gz", ".zst", ".bz2"])
def test_compressed(ending: str, tmp_path: Path):
    """Wherever the file is cut, it is said that it ends early: never are fewer records taken for all."""
    path = tmp_path / f"x.jsonl{ending}"
    whole = compressed(path, (json.dumps(GOOD) + "\n").encode() * 3)
    assert len(read(path)) == 3
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        assert f"{path} ends early" in refused(path)


@pytest.mark.parametrize("ending", [".gz", ".zst", ".bz2"])
def test_a_compressed_file_that_ends_late(ending: str, tmp_path: Path):
    """Past what is looked at when it is opened: what was read before is given first."""
    path = tmp_path / f"x.jsonl{ending}"
    random = np.random.default_rng(0)
    records = [{"token_ids": random.integers(0, 100_000, 2000).tolist()} for _ in range(300)]
    whole = compressed(path, "".join(json.dumps(record) + "\n" for record in records).encode())
    path.write_bytes(whole[: len(whole) * 9 // 10])
    source = iter(open_source(path))
    assert next(source).output.tolist() == records[0]["token_ids"]
    with pytest.raises(UsageError, match=r"ends early or is damaged after line \d\d+ .*restore it"):
        list(source)


def test_one_json_list(tmp_path: Path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([GOOD, GOOD], indent=2))
    assert [request.id for request in read(path)] == ["item1", "item2"]


def test_a_byte_order_mark_and_blank_lines(tmp_path: Path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\r\n \n")
    assert len(read(path)) == 1


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_torn_last_line_is_left_out_and_named(end: str, tmp_path: Path):
    path = write(tmp_path / "x.jsonl", GOOD, GOOD)
    path.write_text(path.read_text() + json.dumps(GOOD)[:30] + end)
    source = open_source(path)
    assert len(list(source)) == 2
    assert len(source.warnings) == 1 and "line 3" in source.warnings[0]


def test_a_damaged_line_in_the_middle_is_refused(tmp_path: Path):
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join([json.dumps(GOOD), json.dumps(GOOD)[:30], json.dumps(GOOD)]))
    source = open_source(path)
    with pytest.raises(UsageError, match="line 2: not JSON"):
        list(source)


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        ([1, -5], "holds -5"),
        ([2**31], "holds 2147483648"),
        ([True], "'True'"),
        ([1.5], "'1.5'"),
        ("1 2", "'1 2'"),
        ([[1]], "'[1]'"),
        ([None], "'None'"),
        (10**30, "must be a list"),
    ],
)
@pytest.mark.parametrize("column", ["generated_token_ids", "prompt_token_ids"])
def test_ids_that_are_none(ids: Any, problem: str, column: str, tmp_path: Path):
    message = refused(write(tmp_path / "x.jsonl", GOOD, {**GOOD, column: ids}))
    assert f"x.jsonl, line 2: `{column}`" in message and problem in message


@pytest.mark.parametrize("value", [0, "9", 2.5, True])
@pytest.mark.parametrize("column", ["max_tokens", "max_model_len"])
def test_limits_that_are_none(column: str, value: Any, tmp_path: Path):
    assert f"line 1: {column} is" in refused(write(tmp_path / "x.jsonl", {**GOOD, column: value}))


def test_two_tokenizers_in_one_file(tmp_path: Path):
    records = [{**GOOD, "tokenizer": name} for name in ("a", "a", "b")]
    message = refused(write(tmp_path / "x.jsonl", *records))
    assert "line 3: tokenizer 'b', but 'a' in line 1" in message


def test_two_models_may_share_a_tokenizer(tmp_path: Path):
    source = open_source(write(tmp_path / "x.jsonl", *({**GOOD, "model": name} for name in "aba")))
    assert len(list(source)) == 3
    assert len(source.warnings) == 1 and "'a' and 'b'" in source.warnings[0]


def test_columns_that_say_nothing(tmp_path: Path):
    message = refused(write(tmp_path / "x.jsonl", {"tokens": [1], "text": "a"}))
    assert "generated_token_ids" in message and "it has tokens, text" in message


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"\x00\x01\x02" * 50, "is binary"),
        (bytes(range(1, 255)) * 3, "line 1"),
        (b'{"token_ids": [1', "no whole record"),
        (b"[1]\n", "item 1: not a JSON object"),
        (b"7\n", "line 1: not a JSON object"),
        (b"[", "no JSON list"),
        (b"[]", "no whole record"),
        (b'{"token_ids": []}\n', "empty output: 1"),
        (b'{"token_ids": [1], "id": "\xff"}', "line 1: byte 27 is no UTF-8: mend or remove that line"),
        (b'{"token_ids": [1], "x": NaN}', "line 1: holds NaN, which JSON has not: mend or remove that line"),
        (b'{"token_ids": [1], "x": -Infinity}\n', "line 1: holds -Infinity, which"),
        (b'{"token_ids": [1], "id": "\\ud800"}\n', "line 1: is no strict JSON"),
        (gzip.compress(b'{"token_ids": [1]}', mtime=0), "is compressed: rename it to x.jsonl.gz"),
    ],
)
def test_files_that_hold_nothing_to_replay(data: bytes, problem: str, tmp_path: Path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    message = refused(path)
    assert str(path) in message and problem in message


@pytest.mark.parametrize("end", [b'{"token_ids": [1', b'{"token_ids": [1], "id": "\xc3', b'{"x": NaN, "y'])
def test_a_last_line_that_may_be_cut_off_is_left_out(end: bytes, tmp_path: Path):
    path = write(tmp_path / "x.jsonl", GOOD)
    path.write_bytes(path.read_bytes() + end)
    source = open_source(path)
    assert len(list(source)) == 1
    assert "line 2, the last, is no whole JSON" in source.warnings[-1]


@pytest.mark.parametrize("data", [json.dumps(GOOD), f"[{json.dumps(GOOD)}]"])
def test_blank_lines_without_end_come_first(data: str, tmp_path: Path):
    path = tmp_path / "x.jsonl"
    path.write_text("\n" * 70_000 + data)
    assert len(read(path)) == 1


@pytest.mark.parametrize("value", [{"a": 1}, [1], []])
@pytest.mark.parametrize("column", ["id", "request_id", "category", "model", "tokenizer"])
def test_words_that_are_none(column: str, value: Any, tmp_path: Path):
    message = refused(write(tmp_path / "x.jsonl", GOOD, {**GOOD, column: value}))
    assert f"line 2: `{column}` is" in message and "it must be text or a number" in message


def test_limits_beyond_what_counts_are_none(tmp_path: Path):
    (request,) = read(write(tmp_path / "x.jsonl", {**GOOD, "max_tokens": 2**40, "max_model_len": 2**31}))
    assert (request.max_tokens, request.max_model_len) == (UNLIMITED, UNLIMITED)


def test_a_file_that_is_gone_is_not_counted(tmp_path: Path):
    path = write(tmp_path / "x.jsonl", GOOD)
    source = open_source(path)
    path.unlink()
    assert source.expected is None


def test_no_file(tmp_path: Path):
    assert "there is no file or folder" in refused(tmp_path / "nowhere.jsonl")
    (tmp_path / "folder").mkdir()
    assert "is no run" in refused(tmp_path / "folder")


def test_it_is_read_up_to_the_first_record_with_ids_when_it_is_opened(tmp_path: Path):
    path = write(tmp_path / "x.jsonl", {"error": "failed"}, GOOD)
    path.write_text(path.read_text() + "not JSON\n" + json.dumps(GOOD))
    assert isinstance(open_source(path), Source)
