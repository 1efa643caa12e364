"""A target's folder whose tokenizer spells as the fake server speaks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from breakeven.servers.fake.text import EOS_TOKEN_ID, FIRST_TOKEN_ID, VOCABULARY, prompt_key, reply_tokens
from tests.unit.eagle.data.plain import write_target

TARGET_SIZE = 5000
"""Beyond every id that the fake server tells, of prompts too."""
TURN_END = "</s>"


def write_fake_target(folder: Path, shift: int = 0) -> Path:
    """With a `shift` every token is spelled as another one is: it is another model's tokenizer."""
    write_target(folder, TARGET_SIZE, eos_token_id=EOS_TOKEN_ID)
    pieces = [*VOCABULARY[shift:], *VOCABULARY[:shift]]
    vocabulary = {TURN_END: EOS_TOKEN_ID} | {piece: FIRST_TOKEN_ID + i for i, piece in enumerate(pieces)}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    tokenizer: Mapping[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": EOS_TOKEN_ID, "content": TURN_END} | flags],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": TURN_END},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


def said(prompt: str, n_tokens: int, seed: int = 0) -> list[int]:
    """What the fake server answers to one user message, greedily."""
    body = {"messages": [{"role": "user", "content": prompt}]}
    return list(reply_tokens(seed, prompt_key(body), n_tokens))
