"""Chunks of a streamed reply, read one by one into flat lists: the path that every token takes.

Any JSON type may stand in any place; what has the wrong one is as if it were absent.
"""

from __future__ import annotations

from typing import Any

import orjson

from breakeven.acceptance.per_request import CARRIERS
from breakeven.client.delta import reasoning_of, text_of, tools_of
from breakeven.client.errorbody import error_in, loads, message_of
from breakeven.client.sse import Item, NamedEvent
from breakeven.errors import ProtocolError, StreamError
from breakeven.trace.records import Kind

ENDED_BY_ITSELF = frozenset(
    {"stop", "tool_calls", "function_call", "eos", "eos_token", "end_turn", "stop_sequence", "EOS", "STOP"}
)
FAILED = frozenset({"error", "abort", "aborted", "cancelled", "canceled"})
IGNORED_STREAM = (
    "the server ignored `stream: true` and sent a whole reply: no token can be timed; check the URL and proxy"
)
_MAX_COUNT = 2**31


class ChunkReader:
    """Takes SSE items. Raises StreamError when the stream carries an error, ProtocolError for what is not
    JSON.

    The lists run in parallel, one entry per event; they hold no object that a garbage collector must visit.
    """

    def __init__(self) -> None:
        self.read_ns: list[int] = []
        self.read_ids: list[int] = []
        self.kinds: list[Kind] = []
        self.id_counts: list[int | None] = []
        """Token ids in the chunk; None if it had no list of them."""
        self.cumulative: list[int | None] = []
        """usage.completion_tokens as the chunk gave it."""
        self.contents: list[str] = []
        """The content of each event, empty for other kinds."""
        self.reasoning: list[str] = []
        self.tools: list[str] = []
        self.output_ids: list[int] = []
        self.prompt_ids: tuple[int, ...] | None = None
        self.finish_reason: str | None = None
        self.usage: dict[str, Any] | None = None
        self.timed_chunk: dict[str, Any] | None = None
        """The last chunk with what the server says of the request itself (CARRIERS)."""
        self.warnings: set[str] = set()
        self.done = False
        """[DONE] has come."""
        self.chunks = 0
        self._highest = 0

    @property
    def known_tokens(self) -> int:
        """Tokens so far, as far as ids or usage tell; 0 where neither does."""
        return max(len(self.output_ids), self._highest)

    def take(self, item: Item, read_ns: int, read_id: int) -> None:
        data = item if type(item) is bytes else _unnamed(item)
        try:
            chunk = orjson.loads(data)
        except orjson.JSONDecodeError:
            chunk = self._not_plain_json(data)
        if type(chunk) is dict:
            self._chunk(chunk, read_ns, read_id)

    def _not_plain_json(self, data: bytes) -> Any:
        data = data.strip()
        if data == b"[DONE]":
            self.done = True
            return None
        if not data:
            return None
        value = loads(data)
        if value is None:
            raise ProtocolError(
                f"the stream holds what is not JSON: {data[:200].decode('utf-8', 'replace')!r}"
            )
        self.warnings.add("the server sent text that is not valid UTF-8 or JSON; it was repaired")
        return value

    def _chunk(self, chunk: dict[str, Any], read_ns: int, read_id: int) -> None:
        self.chunks += 1
        usage = chunk.get("usage")
        if "error" in chunk or chunk.get("object") == "error":
            _raise_error(chunk)
        if "timings" in chunk or "metrics" in chunk or "sglext" in chunk or "meta_info" in chunk:
            self._keep_timings(chunk)
        choices = chunk.get("choices")
        choice = None
        if type(choices) is list and choices:
            choice = self._choice(choices)
            if choice is not None and usage is None:
                usage = choice.get("usage")
        total = self._usage(usage) if type(usage) is dict else None
        if self.prompt_ids is None:
            self._keep_prompt_ids(chunk, choice)
        if choice is not None:
            self._event(choice, total, read_ns, read_id)
        if total is not None and total > self._highest:
            self._highest = total

    def _choice(self, choices: list[Any]) -> dict[str, Any] | None:
        """The reply with index 0; further ones are not measured."""
        mine = None
        for choice in choices:
            if type(choice) is not dict:
                continue
            if choice.get("index") in (0, None):
                mine = mine or choice
            else:
                self.warnings.add("the server sent several replies (n > 1): only the first is measured")
        return mine

    def _event(self, choice: dict[str, Any], total: int | None, read_ns: int, read_id: int) -> None:
        content = reasoning = tool = ""
        delta = choice.get("delta")
        if type(delta) is dict:
            value = delta.get("content")
            content = value if type(value) is str else text_of(value)
            if len(delta) > 1 or not content or type(value) is not str:
                reasoning = reasoning_of(delta)
                tool = tools_of(delta)
                content = content or text_of(delta.get("refusal"))
        elif type(choice.get("message")) is dict:
            raise ProtocolError(IGNORED_STREAM)
        else:
            content = text_of(choice.get("text"))
        finish = choice.get("finish_reason")
        if type(finish) is str and finish:
            self.finish_reason = finish
        else:
            finish = None
        ids = choice.get("token_ids")
        n_ids = self._keep_ids(ids) if type(ids) is list else None
        kind = self._kind(content, reasoning, tool, n_ids, total, finish)
        if kind is not None:
            self._keep(kind, n_ids, total, read_ns, read_id)
            self.contents.append(content)
            if reasoning:
                self.reasoning.append(reasoning)
            if tool:
                self.tools.append(tool)
        if finish in FAILED:
            raise StreamError(
                f"the server ended the reply with finish_reason {finish!r}: {content or 'see its log'}"
            )

    def _keep(self, kind: Kind, n_ids: int | None, total: int | None, read_ns: int, read_id: int) -> None:
        self.read_ns.append(read_ns)
        self.read_ids.append(read_id)
        self.kinds.append(kind)
        self.id_counts.append(n_ids)
        self.cumulative.append(total)

    def _kind(
        self,
        content: str,
        reasoning: str,
        tool: str,
        n_ids: int | None,
        total: int | None,
        finish: str | None,
    ) -> Kind | None:
        """A chunk with several kinds of text counts as the one nearest to the answer."""
        if content:
            return Kind.CONTENT
        if tool:
            return Kind.TOOL
        if reasoning:
            return Kind.REASONING
        if finish in ENDED_BY_ITSELF:
            return Kind.END
        if n_ids or (total is not None and total > self._highest):
            return Kind.SILENT
        return None

    def _usage(self, usage: dict[str, Any]) -> int | None:
        self.usage = usage
        total = usage.get("completion_tokens")
        return total if type(total) is int and 0 <= total < _MAX_COUNT else None

    def _keep_ids(self, ids: list[Any]) -> int | None:
        known = [token for token in ids if type(token) is int and 0 <= token < _MAX_COUNT]
        if len(known) != len(ids):
            return None
        self.output_ids += known
        return len(known)

    def _keep_prompt_ids(self, chunk: dict[str, Any], choice: dict[str, Any] | None) -> None:
        ids = chunk.get("prompt_token_ids")
        if ids is None and choice is not None:
            ids = choice.get("prompt_token_ids")
        if type(ids) is list and all(type(token) is int and 0 <= token < _MAX_COUNT for token in ids):
            self.prompt_ids = tuple(ids)

    def _keep_timings(self, chunk: dict[str, Any]) -> None:
        if any(type(chunk.get(name)) is dict for name in CARRIERS):
            self.timed_chunk = chunk


def _unnamed(event: Item) -> bytes:
    """An event named error is one, whatever its data say; other names say nothing that the data do not."""
    if not isinstance(event, NamedEvent):
        return event
    if event.name == b"error":
        value = loads(event.data)
        said = message_of(value) if value is not None else event.data[:600].decode("utf-8", "replace")
        raise StreamError(f"the stream carried an error: {said or 'no message'}")
    return event.data


def _raise_error(chunk: dict[str, Any]) -> None:
    message = error_in(chunk)
    if message is not None:
        raise StreamError(f"the stream carried an error: {message}")
