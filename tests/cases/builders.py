"""RequestTraces with a speed, a text and an ending of one's choice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from breakeven.trace.records import Event, Kind, RequestError, RequestTrace

WORDS = """
the cache keeps each block until a request that shares its prefix comes along and then hands it over
without a copy because both hold the same keys and values for every layer of the model
""".split()  # noqa: SIM905


def prose(seed: object, words: int = 40) -> str:
    """Text that ends in no loop, the same for the same seed."""
    return " ".join(random.Random(str(seed)).choices(WORDS, k=words))


def reply(
    prompt_id: str = "p0",
    repeat: int = 0,
    *,
    tpot_s: float = 0.02,
    tokens: int = 32,
    ttft_s: float = 0.05,
    category: str = "general",
    block: int | None = None,
    text: str | None = None,
    reasoning: str = "",
    finish_reason: str = "stop",
    ids: tuple[int, ...] | None = None,
    prompt_tokens: int = 100,
    cached_tokens: int | None = None,
    max_tokens: int = 256,
    bundles: bool = False,
    error: str | None = None,
) -> RequestTrace:
    """One chunk per token at an even pace; reasoning only, if there is reasoning and no text.

    With `bundles` a chunk carries four tokens, and does not say so.
    """
    kind = Kind.REASONING if reasoning and not text else Kind.CONTENT
    sent_ns = 1_000_000_000
    times = [sent_ns + round((ttft_s + i * tpot_s) * 1e9) for i in range(0, tokens, 4 if bundles else 1)]
    events = tuple(Event(at, i, kind, None if bundles else 1) for i, at in enumerate(times))
    usage: dict[str, Any] = {"prompt_tokens": prompt_tokens, "completion_tokens": tokens}
    if cached_tokens is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached_tokens}
    return RequestTrace(
        id=f"{prompt_id}#{repeat}",
        prompt_id=prompt_id,
        category=category,
        repeat=repeat,
        block=repeat if block is None else block,
        max_tokens=max_tokens,
        scheduled_ns=None,
        connect_ns=None,
        sent_ns=sent_ns,
        end_ns=times[-1] if times else sent_ns,
        events=events,
        text=("" if reasoning else prose(prompt_id)) if text is None else text,
        reasoning=reasoning,
        tool_calls="",
        finish_reason=None if error else finish_reason,
        usage=None if error else usage,
        output_token_ids=ids,
        error=RequestError("StreamError", error) if error else None,
    )


def run(
    speeds: Iterable[float] | float = 50.0,
    *,
    repeats: int = 3,
    noise: float = 0.005,
    seed: int = 0,
    prompts: int | None = None,
    speed_of: Callable[[int, int], float] | None = None,
    **fields: Any,
) -> list[RequestTrace]:
    """A run of all prompts, repeat by repeat.

    `speeds` are tokens per second by prompt, or one for 8 prompts (or `prompts`); `speed_of(prompt, repeat)`
    is a factor on top; `noise` is the log standard deviation of a request.
    """
    by_prompt = [speeds] * (prompts or 8) if isinstance(speeds, int | float) else list(speeds)
    rng = random.Random(seed)
    return [
        reply(
            f"p{i}",
            repeat,
            tpot_s=rng.lognormvariate(0, noise) / (speed * (speed_of(i, repeat) if speed_of else 1.0)),
            **fields,
        )
        for repeat in range(repeats)
        for i, speed in enumerate(by_prompt)
    ]
