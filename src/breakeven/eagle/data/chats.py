"""Chat: what was asked and what was answered, as a source has it, before any template or tokenizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from breakeven.trace.rows import dump_json

Message = Mapping[str, Any]
"""`role`, and of `content`, `reasoning_content`, `tool_calls`, `tool_call_id` and `name` what there is."""
ASSISTANT = "assistant"
ID_BYTES = 12
"""96 bits: among a billion prompts two share an id with a chance of one in 10^11."""


@dataclass(frozen=True, slots=True)
class Ids:
    """Token ids as the server had them."""

    prompt: NDArray[np.int32]
    output: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Chat:
    """One prompt, and its reply where the source has one."""

    where: str
    """File and line, or run and request."""
    category: str
    asked: tuple[Message, ...] | str | None
    """Messages; the text of a raw completion; None where the source has token ids alone."""
    reply: Message | None = None
    several: bool = False
    """The assistant's turns within `asked` are replies to be learned too, not a client's context."""
    tools: tuple[Any, ...] = ()
    """Definitions of functions, as the chat template takes them."""
    ids: Ids | None = None
    ended: bool = True
    """The reply came to its own end; else max_tokens cut it."""
    counted: tuple[int | None, int | None] = (None, None)
    """Tokens of prompt and reply, as the server's usage had them."""

    @property
    def id(self) -> str:
        """Made from what was asked: equal prompts have equal ids."""
        if self.asked is None:
            return digest(b"ids", b"" if self.ids is None else self.ids.prompt.tobytes())
        return id_of(self.asked, self.tools)

    @property
    def opening(self) -> str:
        """Made from the first user's message and what stands before it: every turn of a conversation has the
        same, so that no beginning of one is in both splits."""
        if not isinstance(self.asked, tuple):
            return self.id
        users = (number for number, one in enumerate(self.asked, 1) if one["role"] == "user")
        return id_of(self.asked[: next(users, len(self.asked))], self.tools)

    @property
    def messages(self) -> tuple[Message, ...] | None:
        """All turns, the reply last; None where a template has nothing to say."""
        if self.reply is None or not isinstance(self.asked, tuple):
            return None
        return (*self.asked, self.reply)

    @property
    def has_media(self) -> bool:
        """Whether a part of some message is no text, which a head that reads tokens cannot see."""
        turns = self.messages or (self.asked if isinstance(self.asked, tuple) else ())
        contents = [one["content"] for one in turns]
        parts = [part for content in contents if isinstance(content, list) for part in content]
        return any(part.get("type", "text") != "text" for part in parts)

    def prompts(self) -> Iterator[tuple[Message, ...] | str]:
        """All that is to be answered, in the order of the turns."""
        if self.several and isinstance(self.asked, tuple):
            for number, one in enumerate(self.asked):
                if one["role"] == ASSISTANT and number:
                    yield self.asked[:number]
        if self.asked is not None:
            yield self.asked


def id_of(asked: tuple[Message, ...] | str, tools: tuple[Any, ...] = ()) -> str:
    """Hexadecimal digest of a prompt; the order of a message's fields does not change it."""
    return digest(b"asked", dump_json([asked, *tools], orjson.OPT_SORT_KEYS))


def digest(*parts: bytes) -> str:
    """Hexadecimal, of ID_BYTES bytes."""
    return blake2b(b"\0".join(parts), digest_size=ID_BYTES).hexdigest()
