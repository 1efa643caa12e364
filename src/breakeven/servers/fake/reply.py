"""Reply: a script and a request body, resolved into what will be said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from breakeven.servers.fake.script import Script
from breakeven.servers.fake.text import EOS_TOKEN_ID, prompt_key, prompt_length, reply_tokens, token_text
from breakeven.trace.records import Kind

_FIRST_TAG_TOKEN_ID = 10


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request will be answered, without its timing."""

    script: Script
    chat: bool
    model: str
    key: bytes
    """Names the text: replies of one key and seed are the same."""
    n_tokens: int
    """Streamed tokens, a closing end-of-sequence token included."""
    full_tokens: int
    """What n_tokens would be without max_tokens."""
    prompt_tokens: int
    final_usage: bool
    chunk_usage: bool
    token_ids: bool

    @property
    def cut(self) -> bool:
        return self.n_tokens < self.full_tokens

    @property
    def has_eos(self) -> bool:
        return self.script.eos and not self.cut

    @property
    def text_tokens(self) -> int:
        return self.n_tokens - self.has_eos

    @property
    def finish_reason(self) -> str:
        natural = "tool_calls" if self.script.tool_tokens else "stop"
        return self.script.finish_reason or ("length" if self.cut else natural)

    @property
    def reasoning_key(self) -> str:
        return self.script.reasoning_key or self.script.dialect.reasoning_key

    def kind(self, token: int) -> Kind:
        """Kind of token number `token`, from 0. A plain completion has content alone."""
        if not self.chat:
            return Kind.CONTENT
        if token < self.script.reasoning_tokens:
            return Kind.REASONING
        return Kind.TOOL if token >= self.first_tool_token else Kind.CONTENT

    @property
    def first_tool_token(self) -> int:
        start = self.full_tokens - self.script.eos - self.script.tool_tokens
        return max(start, self.script.reasoning_tokens)

    @property
    def kind_bounds(self) -> tuple[int, ...]:
        """Tokens at which another kind begins, if the reply is that long."""
        bounds = (self.script.reasoning_tokens, self.first_tool_token) if self.chat else ()
        return tuple(bound for bound in bounds if 0 < bound < self.text_tokens)

    def tokens(self) -> tuple[list[int], list[str]]:
        """Token ids and the text that comes with each. [n_tokens], [n_tokens]"""
        script = self.script
        ids = [*reply_tokens(script.seed, self.key, self.text_tokens, script.diverge_at, script.loop_from)]
        texts = [token_text(token) for token in ids]
        if self.reasoning_key == "inline" and script.reasoning_tokens:
            self._write_tags(ids, texts)
        if script.hold_every:
            _hold_back(texts, script.hold_every)
        if self.has_eos:
            ids.append(EOS_TOKEN_ID)
            texts.append("")
        return ids, texts

    def _write_tags(self, ids: list[int], texts: list[str]) -> None:
        pieces = self.script.think_pieces
        closing = max(self.script.reasoning_tokens - pieces, pieces)
        for start, tag in ((0, "<think>"), (closing, "</think>")):
            for i, piece in enumerate(_pieces(tag, pieces)):
                if start + i < len(texts):
                    ids[start + i] = _FIRST_TAG_TOKEN_ID + i
                    texts[start + i] = piece

    def usage(self, n_tokens: int) -> dict[str, Any]:
        """Truthful usage after n_tokens streamed tokens."""
        script = self.script
        completion = n_tokens + script.hidden_reasoning_tokens
        usage: dict[str, Any] = {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + completion,
            "completion_tokens": completion,
        }
        if script.dialect.name == "llamacpp":
            usage["prompt_tokens_details"] = {"cached_tokens": 0}
        elif script.reasoning_tokens or script.hidden_reasoning_tokens:
            reasoning = min(n_tokens, script.reasoning_tokens) + script.hidden_reasoning_tokens
            usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
        return usage

    def reported_usage(self) -> dict[str, Any]:
        """The final usage with the script's lies in it."""
        usage = self.usage(self.n_tokens)
        for name, value in self.script.usage_lies:
            if name == "reasoning_tokens":
                usage["completion_tokens_details"] = {name: value}
            else:
                usage[name] = value
        return usage


def resolve(script: Script, body: Mapping[str, Any], *, chat: bool, index: int, model: str) -> Reply:
    """The reply to `body`. Sampled requests (temperature above 0) without a seed differ by their `index`."""
    options = body.get("stream_options") or {}
    wanted = script.n_tokens
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    if limit and body.get("ignore_eos"):
        wanted = limit + 1
    return Reply(
        script=script,
        chat=chat,
        model=model,
        key=_text_key(body, index),
        n_tokens=min(wanted, limit or wanted),
        full_tokens=wanted,
        prompt_tokens=prompt_length(dict(body)) if script.prompt_tokens is None else script.prompt_tokens,
        final_usage=_final_usage(script, options),
        chunk_usage=script.usage == "every_chunk" or _continuous(script, options),
        token_ids=script.dialect.has_token_ids and bool(body.get("return_token_ids")),
    )


def _final_usage(script: Script, options: Mapping[str, Any]) -> bool:
    return script.usage in ("always", "every_chunk") or (
        script.usage == "asked" and bool(options.get("include_usage"))
    )


def _continuous(script: Script, options: Mapping[str, Any]) -> bool:
    asked = bool(options.get("include_usage") and options.get("continuous_usage_stats"))
    return asked and script.usage == "asked" and script.dialect.name == "vllm"


def _text_key(body: Mapping[str, Any], index: int) -> bytes:
    key = prompt_key(dict(body))
    if body.get("temperature"):
        key += str(body.get("seed", f"request {index}")).encode()
    return key


def _pieces(tag: str, n: int) -> list[str]:
    size = -(-len(tag) // n)
    return [tag[i * size : (i + 1) * size] for i in range(n)]


def _hold_back(texts: list[str], every: int) -> None:
    for i in range(every - 1, len(texts) - 1, every):
        texts[i + 1] = texts[i] + texts[i + 1]
        texts[i] = ""
