"""tokens.jsonl: what is written comes back, and what is damaged is refused."""

from pathlib import Path

import numpy as np
import pytest

from breakeven.errors import RunFormatError
from breakeven.trace.tokens import TOKENS, Header, RequestTokens, ids_of, load_tokens, write_tokens

HEADER = '{"format_version": 1, "made_by": "server tokenizer", "incomplete": null}\n'
LINE = '{"id": "p#0", "prompt": [1], "output": [2, 3], "reasoning_tokens": 0, "counts_match": true}\n'


def request(name: str, prompt: list[int], output: list[int]) -> RequestTokens:
    return RequestTokens(name, np.array(prompt, np.int32), np.array(output, np.int32), 1, None)


def test_what_is_written_comes_back(tmp_path: Path):
    asked = [request("p#0", [1, 2], [3, 2**31 - 1]), request("ü#1", [], [0])]
    write_tokens(tmp_path, Header("server tokenizer", "it was slow"), asked)
    tokens = load_tokens(tmp_path)
    assert tokens is not None and len(tokens) == 2
    assert tokens.header == Header("server tokenizer", "it was slow")
    for one in asked:
        found = tokens.get(one.id)
        assert found is not None and found.output.dtype == np.int32
        assert found.prompt.tolist() == one.prompt.tolist() and found.output.tolist() == one.output.tolist()
        assert (found.reasoning_tokens, found.counts_match) == (1, None)
    assert tokens.get("p#1") is None
    assert [path.name for path in tmp_path.iterdir()] == [TOKENS]


def test_a_run_without_the_file(tmp_path: Path):
    assert load_tokens(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]\n",
        "\0\0",
        HEADER.replace("1,", '"1",'),
        HEADER.replace("null", "7"),
        HEADER + LINE[:40],
        HEADER + "[]\n" + LINE,
        HEADER + LINE.replace("[1]", "[-1]"),
        HEADER + LINE.replace("[1]", "[true]"),
        HEADER + LINE.replace("[1]", f"[{2**31}]"),
        HEADER + LINE.replace("[1]", "[1.0]"),
        HEADER + LINE.replace("[1]", "null"),
        HEADER + LINE.replace("true", "1"),
        HEADER + LINE.replace('"p#0"', "0"),
        HEADER + LINE.replace(', "counts_match": true', ""),
    ],
)
def test_damage_is_refused(text: str, tmp_path: Path):
    (tmp_path / TOKENS).write_text(text)
    with pytest.raises(RunFormatError, match="is damaged"):
        load_tokens(tmp_path)


@pytest.mark.parametrize(("reasoning", "fits"), [(0, True), (2, True), (3, False), (-1, False)])
def test_reasoning_is_part_of_the_output(reasoning: int, fits: bool, tmp_path: Path):
    line = LINE.replace('"reasoning_tokens": 0', f'"reasoning_tokens": {reasoning}')
    (tmp_path / TOKENS).write_text(HEADER + line)
    if fits:
        assert load_tokens(tmp_path) is not None
        return
    with pytest.raises(RunFormatError, match=f"reasoning_tokens is {reasoning}, of 2 output tokens"):
        load_tokens(tmp_path)


def test_the_undamaged_file_loads(tmp_path: Path):
    (tmp_path / TOKENS).write_text(HEADER + LINE)
    assert load_tokens(tmp_path) is not None


def test_a_newer_format_says_what_to_type(tmp_path: Path):
    (tmp_path / TOKENS).write_text(HEADER.replace("1,", "2,"))
    with pytest.raises(RunFormatError, match="pip install -U breakeven"):
        load_tokens(tmp_path)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([1, -5], "holds -5"),
        ([2**31], "holds 2147483648"),
        ([2**70], "beyond 64 bits"),
        ([True], "'True', which is no integer"),
        ([1.0], "'1.0', which is no integer"),
        (["1"], "'1', which is no integer"),
        ([None], "'None', which is no integer"),
        (7, "must be a list"),
        ("12", "must be a list"),
        ({"a": 1}, "must be a list"),
        (np.array([2**63], np.uint64), "holds 9223372036854775808"),
    ],
)
def test_what_is_no_list_of_ids(value: object, problem: str):
    with pytest.raises(ValueError, match=problem):
        ids_of(value)


def test_ids_at_their_limits():
    assert ids_of([0, 2**31 - 1]).tolist() == [0, 2**31 - 1]
    assert ids_of([]).dtype == np.int32
