"""What the data take from a target's folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from breakeven.eagle.data.target import open_target
from breakeven.errors import UsageError
from tests.unit.eagle.data.plain import write_target


def write(folder: Path, name: str, record: Any) -> None:
    (folder / name).write_text(json.dumps(record))


def test_vocabulary_and_tokens_that_are_no_text(tmp_path: Path) -> None:
    write_target(tmp_path, 100, eos_token_id=2, bos_token_id=1)
    write(tmp_path, "generation_config.json", {"eos_token_id": [2, 7]})
    added = [
        {"id": 9, "content": "<a>", "special": True},
        {"id": 10, "content": "<b>", "special": False},
        "x",
    ]
    write(tmp_path, "tokenizer.json", {"added_tokens": added})
    decoder = {"11": {"special": True}, "12": {"special": False}, "x": {"special": True}}
    write(tmp_path, "tokenizer_config.json", {"added_tokens_decoder": decoder})
    target = open_target(tmp_path)
    assert target.vocabulary == 100
    assert target.ends == {2, 7}
    assert target.special == {1, 2, 7, 9, 11}


@pytest.mark.parametrize("said", ["<end>", {"content": "<end>", "special": True}])
def test_the_tokenizer_may_name_the_end_by_its_text(said: Any, tmp_path: Path) -> None:
    write_target(tmp_path, 100, eos_token_id=2)
    added = [{"id": 9, "content": "<end>", "special": True}, {"id": 10, "content": "<b>", "special": True}]
    write(tmp_path, "tokenizer.json", {"added_tokens": added})
    write(tmp_path, "tokenizer_config.json", {"eos_token": said})
    assert open_target(tmp_path).ends == {2, 9}


def test_the_language_part_of_a_model_of_several(tmp_path: Path) -> None:
    config = {"vocab_size": 5, "text_config": {"vocab_size": 200, "eos_token_id": 3}, "eos_token_id": None}
    write(tmp_path, "config.json", config)
    target = open_target(tmp_path)
    assert (target.vocabulary, target.ends) == (200, {3})


def test_every_file_that_matters_is_an_input(tmp_path: Path) -> None:
    write_target(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("x")
    (tmp_path / "model.safetensors").write_text("weights")
    inputs = open_target(tmp_path).inputs()
    assert set(inputs) == {"target/config.json", "target/chat_template.jinja"}
    assert inputs["target/chat_template.jinja"] == hashlib.sha256(b"x").hexdigest()


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError, match="no model's folder"):
            open_target(path)


@pytest.mark.parametrize("size", [None, 0, -1, "5", True, 1 << 40])
def test_a_model_without_a_vocabulary(size: Any, tmp_path: Path) -> None:
    write(tmp_path, "config.json", {"vocab_size": size})
    with pytest.raises(UsageError, match="vocab_size"):
        open_target(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer.json"])
@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_damaged_files_are_named(name: str, text: str, tmp_path: Path) -> None:
    write_target(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=f"{name} is damaged"):
        open_target(tmp_path)


def test_a_tokenizer_that_cannot_be_read(tmp_path: Path) -> None:
    write_target(tmp_path)
    assert open_target(tmp_path).decoder() is None
    write(tmp_path, "tokenizer.json", {"version": "1.0"})
    with pytest.raises(UsageError, match="is no tokenizer"):
        open_target(tmp_path).decoder()
