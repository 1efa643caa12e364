"""Text as a source: which column is prompt and which output, and what the tokenizer makes of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from breakeven.errors import MissingExtra, UsageError
from breakeven.replay.sources import open_source
from breakeven.replay.sources.tokenizer import Tokeniser

WORDS = ("<unk>", "what", "is", "one", "two", "three", "four", "and")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's folder with a tokenizer.json: a token per word, and padding and truncation switched on."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.enable_truncation(2)
    made.enable_padding(length=8)
    folder = tmp_path_factory.mktemp("model")
    made.save(str(folder / "tokenizer.json"))
    return folder


def words(ids: Any) -> str:
    return " ".join(WORDS[i] for i in ids)


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


CHAT = [
    {"role": "system", "content": "one"},
    {"role": "user", "content": [{"type": "text", "text": "what is"}, {"type": "image_url", "url": "…"}]},
    {"role": "assistant", "content": "two three"},
    {"role": "user", "content": "four"},
]
SHAREGPT = [{"from": "human", "value": "what is"}, {"from": "gpt", "value": "two three"}]


@pytest.mark.parametrize(
    ("record", "prompt", "output"),
    [
        ({"prompt": "what is", "output": "two three"}, "what is", "two three"),
        ({"prompt": "what is", "completion": "two three"}, "what is", "two three"),
        ({"prompt": None, "response": "two three"}, "", "two three"),
        ({"generated_text": "one two three four"}, "", "one two three four"),
        ({"messages": CHAT}, "one what is", "two three"),
        ({"messages": CHAT[:2], "output": "two"}, "one what is", "two"),
        ({"messages": CHAT[:2], "prompt": None, "output": "two"}, "one what is", "two"),
        ({"output": None, "response": "two three"}, "", "two three"),
        ({"conversations": SHAREGPT}, "what is", "two three"),
        ({"conversations": [SHAREGPT[1], *SHAREGPT]}, "two three what is", "two three"),
    ],
)
def test_which_text_is_which(
    record: dict[str, Any], prompt: str, output: str, tokenizer: Path, tmp_path: Path
):
    source = open_source(write(tmp_path / "x.jsonl", record), tokenizer)
    (request,) = source
    assert (words(request.prompt), words(request.output)) == (prompt, output)
    assert (source.origin.kind, source.origin.ids) == ("text", "tokenizer")
    assert "may differ" in source.warnings[0]


def test_the_same_from_parquet(tokenizer: Path, tmp_path: Path):
    table = pa.table(
        {"prompt": ["one", None], "output": ["two three", ""], "conversations": [SHAREGPT, None]}
    )
    pq.write_table(table, tmp_path / "x.parquet")
    source = open_source(tmp_path / "x.parquet", tokenizer / "tokenizer.json")
    assert [(words(r.prompt), words(r.output)) for r in source] == [("one", "two three")]
    assert source.skipped == {"empty output": 1}


def test_no_answer_is_an_empty_output(tokenizer: Path, tmp_path: Path):
    records = [{"messages": CHAT}, {"messages": CHAT[:2]}, {"other": 1}, {"messages": None}]
    source = open_source(write(tmp_path / "x.jsonl", *records), tokenizer)
    assert len(list(source)) == 1 and source.skipped == {"empty output": 3}


@pytest.mark.parametrize(
    "record",
    [
        {"prompt": "one", "output": 7},
        {"prompt": ["one"], "output": "two"},
        {"messages": "one"},
        {"messages": ["one"]},
        {"messages": [{"role": "user", "content": 7}]},
        {"conversations": {"from": "gpt", "value": "two"}},
        {"conversations": [{"from": "gpt", "value": 2}]},
    ],
)
def test_what_is_no_text(record: dict[str, Any], tokenizer: Path, tmp_path: Path):
    with pytest.raises(UsageError, match=r"x\.jsonl, line 1: "):
        list(open_source(write(tmp_path / "x.jsonl", record), tokenizer))


def test_text_without_a_tokenizer_says_how_to_name_one(tmp_path: Path):
    path = write(tmp_path / "x.jsonl", {"prompt": "one", "output": "two"})
    with pytest.raises(UsageError, match="--tokenizer FOLDER"):
        open_source(path)


def test_recorded_ids_beyond_the_vocabulary_of_a_named_tokenizer(tokenizer: Path, tmp_path: Path):
    fits = write(tmp_path / "fits.jsonl", {"prompt_token_ids": [7], "token_ids": [0, 7]})
    source = open_source(fits, tokenizer)
    assert len(list(source)) == 1 and source.origin.ids == "recorded"
    for record in ({"token_ids": [8]}, {"prompt_token_ids": [8], "token_ids": [1]}):
        with pytest.raises(UsageError, match=r"line 1: token id 8 is beyond the vocabulary"):
            list(open_source(write(tmp_path / "x.jsonl", record), tokenizer))


def test_a_tokenizer_that_is_none(tmp_path: Path):
    pytest.importorskip("tokenizers")
    with pytest.raises(UsageError, match=r"there is no .*tokenizer\.json"):
        Tokeniser(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match="is no tokenizer"):
        Tokeniser(tmp_path)


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtra, match=r"pip install 'breakeven\[replay\]'"):
        Tokeniser(tmp_path)
