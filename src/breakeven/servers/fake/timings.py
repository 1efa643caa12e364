"""What engines say of a request themselves: llama.cpp `timings`, vLLM `metrics`."""

from __future__ import annotations

from typing import Any

from breakeven.servers.fake.reply import Reply
from breakeven.servers.fake.timeline import Timeline


def server_timings(reply: Reply, timeline: Timeline) -> dict[str, Any]:
    """`{"timings": …}`, `{"metrics": …}`, or nothing, as the script wants it. Times are the timeline's."""
    dialect = reply.script.dialect
    wanted = dialect.has_timings if reply.script.timings is None else reply.script.timings
    if not wanted:
        return {}
    if dialect.name == "llamacpp":
        return {"timings": _llamacpp_timings(reply, timeline) | dict(reply.script.timings_lies)}
    return {"metrics": _vllm_metrics(reply, timeline) | dict(reply.script.timings_lies)}


def _llamacpp_timings(reply: Reply, timeline: Timeline) -> dict[str, Any]:
    prompt_ms = timeline.due_s[0] * 1e3
    predicted_ms = (timeline.due_s[-1] - timeline.due_s[0]) * 1e3
    timings = {
        "cache_n": 0,
        **_phase("prompt", reply.prompt_tokens, prompt_ms),
        **_phase("predicted", reply.n_tokens, predicted_ms),
    }
    if timeline.counters.drafted_tokens:
        timings["draft_n"] = timeline.counters.drafted_tokens
        timings["draft_n_accepted"] = timeline.counters.accepted_tokens
    return timings


def _phase(name: str, n_tokens: int, elapsed_ms: float) -> dict[str, float | int | None]:
    return {
        f"{name}_n": n_tokens,
        f"{name}_ms": elapsed_ms,
        f"{name}_per_token_ms": elapsed_ms / n_tokens,
        f"{name}_per_second": 1e3 * n_tokens / elapsed_ms if elapsed_ms else None,
    }


def _vllm_metrics(reply: Reply, timeline: Timeline) -> dict[str, Any]:
    decode_ms = (timeline.due_s[-1] - timeline.due_s[0]) * 1e3
    metrics: dict[str, Any] = {
        "time_to_first_token_ms": timeline.due_s[0] * 1e3,
        "generation_time_ms": decode_ms,
        "queue_time_ms": 0.0,
        "mean_itl_ms": decode_ms / max(1, reply.n_tokens - 1),
        "tokens_per_second": 1e3 * reply.n_tokens / (timeline.due_s[-1] * 1e3 or 1.0),
    }
    if reply.script.speculation is not None:
        metrics["speculative_decoding"] = _vllm_speculation(timeline, reply.script.speculation.k)
    return metrics


def _vllm_speculation(timeline: Timeline, k: int) -> dict[str, Any]:
    steps = [(d, a) for d, a in zip(timeline.drafted, timeline.accepted, strict=True) if d]
    accepted = [a for _, a in steps]
    counters = timeline.counters
    return {
        "mean_acceptance_length": counters.mean_acceptance_length or 1.0,
        "draft_acceptance_rate": counters.acceptance_rate or 0.0,
        "acceptance_histogram": [accepted.count(length) for length in range(k + 1)],
        "num_spec_steps": counters.drafts,
        "num_accepted_draft_tokens": counters.accepted_tokens,
        "num_draft_tokens": counters.drafted_tokens,
        "num_spec_tokens": k,
        "per_step_accepted": accepted,
        "per_step_drafted": [d for d, _ in steps],
    }
