"""Deterministic pseudo-text: the same seed and prompt give the same tokens on every server."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import orjson

VOCABULARY_SIZE = 4096
FIRST_TOKEN_ID = 100
EOS_TOKEN_ID = 2

_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "st", "tr")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "é", "ö")
_CODAS = ("", "n", "r", "s", "l", "nt", "st", "m")
_MARKS = (
    ",",
    ".",
    ":",
    "\n",
    " (",
    ")",
    ' "',
    '"',
    " –",
    " →",
    " 速度",
    " 🚀",
    " naïve",
    " Größe",
    "\t",
    " {}",
)


def _vocabulary() -> tuple[str, ...]:
    words = [f" {onset}{vowel}{coda}" for onset in _ONSETS for vowel in _VOWELS for coda in _CODAS]
    tails = [word.strip() for word in words]
    pairs = [first + second for first, second in zip(words, tails[7:], strict=False)]
    pieces = [*_MARKS, *words, *tails, *pairs]
    more = (first + second for first, second in zip(words * 2, tails[101:] + tails, strict=False))
    return tuple(dict.fromkeys([*pieces, *more]))[:VOCABULARY_SIZE]


VOCABULARY = _vocabulary()


def prompt_key(body: dict[str, Any]) -> bytes:
    """A digest of what was asked, whatever the sampling: 16 bytes."""
    asked = orjson.dumps([body.get("messages"), body.get("prompt")])
    return hashlib.blake2b(asked, digest_size=16).digest()


def prompt_length(body: dict[str, Any]) -> int:
    """Tokens of the prompt: a list of ids counts itself, text counts one per four bytes."""
    prompt = body.get("prompt")
    if isinstance(prompt, list) and all(isinstance(token, int) for token in prompt):
        return len(prompt)
    return max(1, len(orjson.dumps(body.get("messages") or prompt)) // 4)


def reply_tokens(
    seed: int, key: bytes, n_tokens: int, diverge_at: int | None = None, loop_from: int | None = None
) -> tuple[int, ...]:
    """Token ids of a reply to the prompt `key`. A longer reply begins as the shorter one does."""
    tokens = _draw(f"{seed}:{key.hex()}", n_tokens)
    if diverge_at is not None:
        tokens[diverge_at:] = _draw(f"{seed}:{key.hex()}:other", n_tokens)[diverge_at:]
        if diverge_at < n_tokens and tokens[diverge_at] == _draw(f"{seed}:{key.hex()}", n_tokens)[diverge_at]:
            tokens[diverge_at] = FIRST_TOKEN_ID + (tokens[diverge_at] - FIRST_TOKEN_ID + 1) % len(VOCABULARY)
    if loop_from is not None and loop_from < n_tokens:
        pair = (
            tokens[loop_from],
            FIRST_TOKEN_ID + (tokens[loop_from] - FIRST_TOKEN_ID + 1) % len(VOCABULARY),
        )
        tokens[loop_from:] = [pair[i % 2] for i in range(n_tokens - loop_from)]
    return tuple(tokens)


def token_text(token: int) -> str:
    """The text of one token id; the end-of-sequence token has none."""
    return "" if token == EOS_TOKEN_ID else VOCABULARY[token - FIRST_TOKEN_ID]


def _draw(seed: str, n_tokens: int) -> list[int]:
    numbers = random.Random(seed)  # noqa: S311
    return numbers.choices(range(FIRST_TOKEN_ID, FIRST_TOKEN_ID + len(VOCABULARY)), k=n_tokens)
