"""What a recorded run says of the samples that its traffic would make."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from breakeven.errors import UsageError
from breakeven.latency.tokens import count, total
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import Run


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mean tokens of a request."""

    prompt: float
    reply: float
    requests: int
    """That say both."""


def lengths_of(run: Run) -> Lengths:
    """Over the requests without an error that say both. Raises UsageError where none does."""
    known = [pair for trace in run.traces() if (pair := _lengths(trace)) is not None]
    if not known:
        raise UsageError(
            f"no request of {run.path} says how many tokens it had: leave it out, and type "
            "--tokens-per-sample N  instead"
        )
    return Lengths(fmean(prompt for prompt, _ in known), fmean(reply for _, reply in known), len(known))


def _lengths(trace: RequestTrace) -> tuple[int, int] | None:
    reply = total(trace).tokens
    if trace.error is not None or not reply:
        return None
    stated = count((trace.usage or {}).get("prompt_tokens"))
    prompt = len(trace.prompt_token_ids) if trace.prompt_token_ids is not None else stated
    return None if prompt is None else (prompt, reply)
