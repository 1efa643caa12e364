"""What is not known of a case, and which measurement would settle it."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.explain.case import Case

UNSEEN = "no cause is sought in"
DEVICE = "type  --hardware Y  if there is a preset of it"


def unknown(case: Case) -> dict[str, str]:
    """By input: what the range stands for and what to type."""
    return dict(_unknown(case))


def _unknown(case: Case) -> Iterator[tuple[str, str]]:
    counts = _counts(case.engine)
    no_share = any(_is_open(one.draft_share) for one in case.observations)
    if no_share:
        yield "draft_share", counts
    if any(_is_open(one.acceptance_rate) for one in case.observations):
        yield "acceptance_rate", f"of each prompt: {'the same counts give it' if no_share else counts}"
    if not case.context_tokens and case.is_modelled:
        yield (
            "context_tokens",
            "taken as 0: type  --context N  with the mean over steps, the prompt and half the reply",
        )
    if case.measured is None:
        yield "verify_ms", _verify_words(case)
    if case.geometry is None:
        yield "model", f"{UNSEEN} memory, experts, latent attention and context: type  --model X"
    if case.hardware is None:
        yield "hardware", f"{UNSEEN} memory, the link between devices, AllReduce and context: {DEVICE}"


def _is_open(bounds: tuple[float, float] | None) -> bool:
    return bounds is None or bounds[0] < bounds[1]


def _counts(engine: str | None) -> str:
    extra = (
        "; for those of each request serve vLLM with  --enable-per-request-metrics "
        "--per-request-spec-decode-metrics detailed"
        if engine == "vllm"
        else ""
    )
    return f"type  breakeven measure --url URL  on the candidate, which keeps the server's counts{extra}"


def _verify_words(case: Case) -> str:
    bound = ", as an upper bound for experts" if case.modelled.geometry.experts else ""
    return (
        "modelled: type  breakeven calibrate URL  on the baseline, without a restart, and give its file as "
        f"--calibration; a step of {case.k + 1} sequences stands for one that verifies {case.k} tokens{bound}"
    )
