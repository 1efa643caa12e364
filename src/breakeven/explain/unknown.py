"""What is not known of a case, and which measurement would settle it."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.explain.case import Case


def unknown(case: Case) -> dict[str, str]:
    """By input: what the range stands for and what to type."""
    return dict(_unknown(case))


def _unknown(case: Case) -> Iterator[tuple[str, str]]:
    counts = _counts(case.engine)
    no_share = any(_is_open(one.draft_share) for one in case.observations)
    if no_share:
        yield "draft_share", f"which share of steps drafted: {counts}"
    if any(_is_open(one.acceptance_rate) for one in case.observations):
        yield "acceptance_rate", f"of each prompt: {'the same counts give it' if no_share else counts}"
    if not case.context_tokens:
        yield (
            "context_tokens",
            "how many tokens the cache held, taken as 0: type  --context N  with the mean over steps, "
            "which is the prompt and half the reply",
        )
    yield "verify_ms", _verify_words(case)


def _is_open(bounds: tuple[float, float] | None) -> bool:
    return bounds is None or bounds[0] < bounds[1]


def _counts(engine: str | None) -> str:
    extra = (
        " (of vLLM, vllm:spec_decode_num_drafts_total of /metrics; for counts of each request, serve a vLLM "
        "that has them with  --enable-per-request-metrics --per-request-spec-decode-metrics detailed)"
        if engine == "vllm"
        else ""
    )
    return f"type  breakeven measure --url URL  on the candidate, which keeps what the server counts{extra}"


def _verify_words(case: Case) -> str:
    bound = ", as an upper bound for experts" if case.geometry.experts else ""
    return (
        f"what verifying costs is modelled: type  breakeven calibrate URL  on the baseline, whose step with "
        f"{case.k + 1} sequences stands for one that verifies {case.k} drafted tokens{bound}; no restart"
    )
