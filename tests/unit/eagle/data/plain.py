"""Doubles for tests of the data stage: a template over bytes, chats, and folders of targets."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from breakeven.eagle.data.chats import Chat, Ids, Message
from breakeven.eagle.data.template import TemplateRefused
from breakeven.eagle.data.turns import assistant, user

SPECIAL = ("<system>", "<user>", "<assistant>", "<tool>", "<end>", "<think>", "</think>")
END = 256 + SPECIAL.index("<end>")
VOCABULARY = 300
GLUED = 290
"""The one token that a tokenizer which merges makes of a line break and an exclamation mark."""
PIECES = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")


class PlainTemplate:
    """`<role>\\ncontent<end>\\n`, a token per byte and per special token."""

    def __init__(
        self,
        has_marks: bool = False,
        drops_reasoning: bool = False,
        thinks: bool = False,
        merges: bool = False,
        closes: bool = True,
    ) -> None:
        """`thinks` puts an empty thought before answers without one; `merges` makes one token of `\\n!`."""
        self.has_marks = has_marks
        self._drops, self._thinks, self._merges, self._closes = drops_reasoning, thinks, merges, closes

    def text(self, messages: Sequence[Message], tools: Sequence[Any], prompt: bool) -> str:
        said = "".join(f"<system>\n{json.dumps(tool)}<end>\n" for tool in tools)
        said += "".join(self._turn(one) for one in messages)
        return said + ("<assistant>\n" if prompt else "")

    def ids(self, text: str) -> list[int]:
        found: list[int] = []
        for piece in PIECES.split(text):
            if piece in SPECIAL:
                found.append(256 + SPECIAL.index(piece))
            else:
                found += self._bytes(piece.encode())
        return found

    def marked(self, messages: Sequence[Message], tools: Sequence[Any]) -> tuple[list[int], list[int]]:
        ids = self.ids(self.text(messages, tools, prompt=False))
        assistant_id = 256 + SPECIAL.index("<assistant>")
        marks, inside = [0] * len(ids), False
        for at, token in enumerate(ids):
            marks[at] = int(inside)
            if token == END:
                inside = False
            if token == ord("\n") and at and ids[at - 1] == assistant_id:
                inside = True
        return ids, marks

    def _turn(self, one: Message) -> str:
        if one["role"] == "user" and "refuse" in one["content"]:
            raise TemplateRefused("roles must alternate")
        thought = one.get("reasoning_content", "")
        before = ""
        if one["role"] == "assistant" and not self._drops:
            before = f"<think>{thought}</think>" if thought or self._thinks else ""
        return f"<{one['role']}>\n{before}{one['content']}" + ("<end>\n" if self._closes else "\n")

    def _bytes(self, data: bytes) -> list[int]:
        if not self._merges:
            return list(data)
        return [GLUED if one == 1 else one for one in data.replace(b"\n!", b"\1")]


def spelled(ids: Sequence[int] | Any) -> str:
    """The text of ids, special tokens with it."""
    return b"".join(map(_spelled, map(int, ids))).decode()


def _spelled(token: int) -> bytes:
    if token == GLUED:
        return b"\n!"
    return bytes([token]) if token < 256 else SPECIAL[token - 256].encode()


def chat(
    *texts: str, reasoning: str = "", several: bool = False, ids: tuple[str, str] | None = None, **others: Any
) -> Chat:
    """Turns of user and assistant in turn, the last the reply; `ids` are texts of one byte a token."""
    turns = [assistant(text) if number % 2 else user(text) for number, text in enumerate(texts)]
    reply = assistant(texts[-1], reasoning) if len(texts) % 2 == 0 else None
    asked = tuple(turns[:-1] if reply else turns)
    known = None if ids is None else Ids(of_bytes(ids[0]), of_bytes(ids[1]))
    return Chat(
        others.pop("where", "line 1"), others.pop("category", "c"), asked, reply, several, ids=known, **others
    )


def of_bytes(text: str) -> Any:
    return np.frombuffer(text.encode(), np.uint8).astype(np.int32)


def decode_bytes(ids: Sequence[int]) -> str:
    return bytes(one for one in ids if one < 256).decode("utf-8", "replace")


def write_target(folder: Path, vocabulary: int = VOCABULARY, **config: Any) -> Path:
    """A target of which only the configuration is there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"vocab_size": vocabulary, "eos_token_id": END, **config}))
    return folder


def write_recipe(folder: Path, target: Path, sources: Sequence[object], **settings: Any) -> Path:
    """A recipe in `folder`; `url` goes under [target], everything else under [data]."""
    url = settings.pop("url", None)
    lines = ["[target]", f"model = {json.dumps(str(target))}", *([f"url = {json.dumps(url)}"] if url else [])]
    data = {"sources": [str(one) for one in sources], "draft_vocabulary": 0, **settings}
    lines += ["[data]", *(f"{name} = {json.dumps(value)}" for name, value in data.items())]
    path = folder / "recipe.toml"
    path.write_text("\n".join(lines) + "\n")
    return path
