"""The requests of a run → Chats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from breakeven.eagle.data.chats import Chat, Ids
from breakeven.eagle.data.of_rows import MEDIA, NO_REPLY
from breakeven.eagle.data.turns import assistant, messages_of, user
from breakeven.replay.sources.ids import ids_of
from breakeven.trace.disk import JOURNAL, PROMPTS, REQUESTS
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import Run
from breakeven.trace.tokens import TOKENS, RunTokens, load_tokens
from breakeven.workload.prompts import Prompt

FAILED = "failed request"
TOOLS = "tool calls without token ids"
NOT_IN_PROMPTS = "a request of a prompt that the run does not keep"


def files_of(run: Path) -> list[Path]:
    """The files of a run folder that say what was asked and answered."""
    return [run / name for name in (PROMPTS, JOURNAL, REQUESTS, TOKENS) if (run / name).is_file()]


def asked_of(prompt: Prompt, where: str, raw: bool = False) -> Chat:
    """A prompt without its reply; `raw` is the text of a completion, without a template."""
    if prompt.messages is not None:
        return Chat(where, prompt.category, messages_of(prompt.messages, where))
    text = prompt.text or ""
    return Chat(where, prompt.category, text if raw else (user(text),))


def chats_of(run: Run, name: str, left_out: Counter[str]) -> Iterator[Chat]:
    """A chat for each request that was answered, in the order in which they ended.

    Token ids are those that the server told, or that its tokenizer made where they are as many as it counted;
    other chats have the text alone. Raises RunFormatError for a damaged run.
    """
    raw = run.meta.api == "completions"
    asked = {prompt.id: asked_of(prompt, f"{name}, {prompt.id}", raw) for prompt in run.prompts()}
    tokens = load_tokens(run.path)
    for trace in run.traces():
        found = _chat(trace, asked.get(trace.prompt_id), tokens, f"{name}, request {trace.id}")
        if isinstance(found, Chat):
            yield found
        else:
            left_out[found] += 1


def _chat(trace: RequestTrace, asked: Chat | None, tokens: RunTokens | None, where: str) -> Chat | str:
    if trace.error is not None:
        return FAILED
    if asked is None:
        return NOT_IN_PROMPTS
    if asked.has_media:
        return MEDIA
    ids = _ids(trace, tokens, where)
    if ids is None and trace.tool_calls:
        return TOOLS
    if ids is None and not (trace.text or trace.reasoning):
        return NO_REPLY
    return Chat(
        where=where,
        category=trace.category,
        asked=asked.asked,
        reply=assistant(trace.text, trace.reasoning),
        ids=ids,
        ended=trace.finish_reason != "length",
        counted=(_counted(trace, "prompt_tokens"), _counted(trace, "completion_tokens")),
    )


def _ids(trace: RequestTrace, tokens: RunTokens | None, where: str) -> Ids | None:
    """Raises UsageError for numbers that are no ids."""
    if trace.prompt_token_ids and trace.output_token_ids:
        prompt = ids_of(list(trace.prompt_token_ids), where, "prompt_token_ids")
        return Ids(prompt, ids_of(list(trace.output_token_ids), where, "output_token_ids"))
    made = None if tokens is None else tokens.get(trace.id)
    if made is None or made.counts_match is False or not (len(made.prompt) and len(made.output)):
        return None
    return Ids(made.prompt, made.output)


def _counted(trace: RequestTrace, name: str) -> int | None:
    value: Any = (trace.usage or {}).get(name)
    return value if type(value) is int else None
