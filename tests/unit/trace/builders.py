"""Traces and metas for tests of the run folder."""

from breakeven.trace.meta import RunMeta, Schedule, ServerInfo, new_meta
from breakeven.trace.records import Event, Kind, RequestError, RequestTrace
from breakeven.workload.prompts import Prompt, Sampling, Workload

PROMPTS = (
    Prompt("p", "prose", messages=({"role": "user", "content": "Grüße 🦜"},)),
    Prompt("q", "code", text="def f(", max_tokens=8),
)


def meta(**changes) -> RunMeta:
    arguments = {
        "kind": "measure",
        "url": "http://127.0.0.1:8000/v1",
        "api": "chat",
        "model": "m",
        "server": ServerInfo("llama.cpp", "b1", {"n_ctx": 2048}),
        "schedule": Schedule("closed", concurrency=2),
        "sampling": Sampling(extra={"cache_prompt": False}),
        "workload": Workload("two", PROMPTS),
        "repeats": 3,
        "warmup_requests": 1,
        "event_loop": "asyncio",
    }
    return new_meta(**{**arguments, **changes})


def trace(
    number: int, error: RequestError | None = None, n_events: int = 4, text: str = "text"
) -> RequestTrace:
    events = tuple(Event(1000 * number + i, i, Kind.CONTENT, None) for i in range(n_events))
    return RequestTrace(
        id=f"p#{number}",
        prompt_id="p",
        category="prose",
        repeat=number,
        block=number,
        max_tokens=16,
        scheduled_ns=None,
        connect_ns=None,
        sent_ns=1000 * number,
        end_ns=1000 * number + n_events,
        events=() if error else events,
        text=text,
        reasoning="",
        tool_calls="",
        finish_reason=None if error else "stop",
        usage={"completion_tokens": n_events},
        error=error,
    )
