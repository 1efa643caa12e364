"""Runs on disk whose requests were served with known times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from breakeven.trace.journal import RunWriter
from breakeven.trace.meta import Schedule, ServerInfo
from breakeven.trace.records import Event, Kind, RequestTrace
from breakeven.trace.run import Run, load_run
from tests.unit.trace import builders

ALONE = Schedule("closed", concurrency=1)


def served(
    name: str,
    prompt_tokens: int | None,
    ttft_s: float,
    step_s: float = 0.01,
    tokens: int = 24,
    at_s: float = 0.0,
    **changes: Any,
) -> RequestTrace:
    """One reply, a token a chunk; `name` is PROMPT#REPEAT."""
    first_ns = round((at_s + ttft_s) * 1e9)
    events = tuple(Event(first_ns + round(i * step_s * 1e9), i, Kind.CONTENT, 1) for i in range(tokens))
    usage = {"completion_tokens": tokens}
    if prompt_tokens is not None:
        usage["prompt_tokens"] = prompt_tokens
    trace = replace(
        builders.trace(0),
        id=name,
        prompt_id=name.partition("#")[0],
        events=events,
        sent_ns=round(at_s * 1e9),
        end_ns=events[-1].read_ns,
        usage=usage,
    )
    return replace(trace, **changes)


def a_run(folder: Path, traces: Sequence[RequestTrace], **changes: Any) -> Run:
    """Finished; at concurrency 1 on vLLM unless changed. `status` and `counters` are of its end."""
    at_end = {name: changes.pop(name) for name in ("status", "counters") if name in changes}
    changes = {"server": ServerInfo("vllm", "0.32.0"), "schedule": ALONE, **changes}
    writer = RunWriter.create(folder, builders.meta(**changes), builders.PROMPTS)
    for trace in traces:
        writer.append(trace)
    writer.finish(replace(writer.meta, **{"status": "complete", **at_end}))
    return load_run(folder)
