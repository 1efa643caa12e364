"""Token ids of a run on llama.cpp: its streams carry none, so its tokenizer is asked once the run is over.

What a model generated need not be what its tokenizer makes of the text; where the numbers of tokens differ
from those that the server counted, the ids are marked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from breakeven.client.body import AskFor, request_body
from breakeven.client.endpoint import Endpoint
from breakeven.client.fetch import QUICK_TIMEOUTS, get_text, post_json
from breakeven.client.transport import Pool
from breakeven.errors import BreakevenError, EndpointError, ProtocolError
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import Run
from breakeven.trace.tokens import Header, RequestTokens, ids_of, write_tokens
from breakeven.workload.prompts import Prompt, Request, Sampling

LIMIT_S, LIMIT_PER_TEXT_S, MOST_S = 5.0, 0.05, 60.0
"""Longest time that it may take: at first, more for each text that differs, and at most."""
MADE_BY = "server tokenizer"
ANCHOR = "\n"
"""Put before a text where the tokenizer would put a space before it: nothing merges with it there."""

Ids = NDArray[np.int32]


async def keep_tokens(pool: Pool, endpoint: Endpoint, run: Run, limit_s: float | None = None) -> None:
    """Write the ids beside the requests of a run on llama.cpp that has none. Whatever happens, the run stays.

    What the server refused, or what time did not allow, is said in the file. The time is `limit_s`, else
    what `limit_of` gives.
    """
    if run.meta.server.engine != "llama.cpp":
        return
    with suppress(Exception):
        if texts := _texts_of(run):
            limit_s = limit_of(texts) if limit_s is None else limit_s
            await _write(ServerTokeniser(pool, endpoint, run.meta.sampling), run, limit_s)


def limit_of(texts: int) -> float:
    """Seconds that so many texts may take together."""
    return min(LIMIT_S + LIMIT_PER_TEXT_S * texts, MOST_S)


def _texts_of(run: Run) -> int:
    """How many texts there are to send, each counted once."""
    prompts: set[str] = set()
    replies: set[int] = set()
    for trace in _without_ids(run):
        prompts.add(trace.prompt_id)
        replies.update(hash(text) for text in (trace.reasoning, trace.text) if text)
    return len(prompts) + len(replies)


def _without_ids(run: Run) -> Iterator[RequestTrace]:
    return (trace for trace in run.traces() if trace.error is None and trace.output_token_ids is None)


async def _write(tokeniser: ServerTokeniser, run: Run, limit_s: float) -> None:
    prompts = {prompt.id: prompt for prompt in run.prompts()}
    made: list[RequestTokens] = []
    incomplete = None
    try:
        async with asyncio.timeout(limit_s):
            for trace in _without_ids(run):
                if trace.prompt_id in prompts:
                    made.append(await tokeniser.tokens_of(trace, prompts[trace.prompt_id]))
    except TimeoutError:
        incomplete = f"the server's tokenizer took longer than {limit_s:g} s"
    except BreakevenError as error:
        incomplete = str(error)
    write_tokens(run.path, Header(MADE_BY, incomplete), made)


@dataclass(slots=True)
class ServerTokeniser:
    """llama.cpp's /apply-template and /tokenize; each text is sent once."""

    pool: Pool
    endpoint: Endpoint
    sampling: Sampling
    _prompts: dict[str, Ids] = field(default_factory=dict)
    _replies: dict[str, Ids] = field(default_factory=dict)
    _anchor: Ids | None = None
    _end: Ids | None = None

    async def tokens_of(self, trace: RequestTrace, prompt: Prompt) -> RequestTokens:
        """Raises EndpointError."""
        asked = await self.prompt(prompt)
        reasoning, text = await self.reply(trace.reasoning), await self.reply(trace.text)
        output = np.concatenate([reasoning, text])
        counted = _counted(trace, "completion_tokens")
        if trace.finish_reason == "stop" and counted == len(output) + 1:
            output = np.concatenate([output, await self.end()])
        return RequestTokens(
            trace.id, asked, output, len(reasoning), _counts_match(trace, len(asked), len(output))
        )

    async def prompt(self, prompt: Prompt) -> Ids:
        """A prompt as the server takes it, special tokens and chat template included."""
        if prompt.id not in self._prompts:
            text = prompt.text or ""
            if self.endpoint.api == "chat":
                text = await self._templated(prompt)
            self._prompts[prompt.id] = await self._tokenise(text, add_special=True)
        return self._prompts[prompt.id]

    async def reply(self, text: str) -> Ids:
        """A text that follows other tokens, so that no space is put before it."""
        if text and text not in self._replies:
            anchor = await self._anchor_ids()
            ids = await self._tokenise(ANCHOR * bool(len(anchor)) + text)
            self._replies[text] = ids[len(anchor) :]
        return self._replies.get(text, np.zeros(0, np.int32))

    async def end(self) -> Ids:
        """The end-of-sequence token; nothing if it is not told."""
        if self._end is None:
            ids = await self._tokenise(await self._end_text())
            self._end = ids if len(ids) == 1 else ids[:0]
        return self._end

    async def _end_text(self) -> str:
        try:
            props = orjson.loads(await get_text(self.pool, self.endpoint, "/props", QUICK_TIMEOUTS))
        except (EndpointError, orjson.JSONDecodeError):
            return ""
        text = props.get("eos_token") if isinstance(props, dict) else None
        return text if isinstance(text, str) else ""

    async def _anchor_ids(self) -> Ids:
        """The ids of ANCHOR if a space is put before a text, which makes them several; else none."""
        if self._anchor is None:
            ids = await self._tokenise(ANCHOR)
            self._anchor = ids if len(ids) > 1 else ids[:0]
        return self._anchor

    async def _templated(self, prompt: Prompt) -> str:
        body = request_body(self.endpoint, Request(prompt), self.sampling, AskFor(usage=False))
        answer = await post_json(self.pool, self.endpoint, "/apply-template", body, QUICK_TIMEOUTS)
        if not isinstance(answer.get("prompt"), str):
            raise ProtocolError("/apply-template gave no prompt")
        return str(answer["prompt"])

    async def _tokenise(self, text: str, add_special: bool = False) -> Ids:
        body = orjson.dumps({"content": text, "add_special": add_special, "parse_special": True})
        answer = await post_json(self.pool, self.endpoint, "/tokenize", body, QUICK_TIMEOUTS)
        try:
            return ids_of(answer.get("tokens"))
        except ValueError as error:
            raise ProtocolError(f"/tokenize gave no ids: `tokens` {error}") from error


def _counted(trace: RequestTrace, name: str) -> int | None:
    value: Any = (trace.usage or {}).get(name)
    return value if type(value) is int else None


def _counts_match(trace: RequestTrace, n_prompt: int, n_output: int) -> bool | None:
    asked, answered = _counted(trace, "prompt_tokens"), _counted(trace, "completion_tokens")
    if answered is None:
        return None
    return answered == n_output and asked in (None, n_prompt)
