"""Causes in vLLM itself: what it gives up, or does by another path, once it speculates.

Each is a Finding or None, as those of causes.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from breakeven.cost.attention import Latent
from breakeven.explain.case import Case
from breakeven.explain.records import Explained, Finding

ASYNC_METHODS = ("eagle", "eagle3", "mtp", "ngram_gpu")
"""With which vLLM keeps async scheduling by default: vllm#31998, vllm#29184."""


def async_scheduling(case: Case, explained: Sequence[Explained]) -> Finding | None:
    """vLLM overlaps the scheduling of one step with the run of another, but not with every drafter.

    It is the default since 0.14.
    """
    if not _is_slow_vllm(case, explained) or case.method in ASYNC_METHODS:
        return None
    version = _version(case)
    by_default = version is None or version >= (0, 14)
    return replace(no_async_scheduling(case.method), confidence="high" if by_default else "low")


def no_async_scheduling(method: str) -> Finding:
    """That vLLM gives it up for a method."""
    return Finding(
        "async_scheduling",
        "Async scheduling is off in the candidate only",
        f"vLLM schedules asynchronously by default and switches that off for {method}: CPU work of "
        "every step, drafted or not, is no longer hidden behind the GPU (vllm#31998)",
        "high",
        "grep -i 'async scheduling' <candidate-log>",
        "Look for `will be disabled`; a baseline with --no-async-scheduling tells what that costs.",
    )


def cuda_graphs(case: Case, explained: Sequence[Explained]) -> Finding | None:
    """A backend without graphs for several tokens per sequence takes full graphs from every step."""
    return FEWER_GRAPHS if _is_slow_vllm(case, explained) else None


FEWER_GRAPHS = Finding(
    "cuda_graphs",
    "CUDA graphs fall from FULL to PIECEWISE",
    "Where the attention backend cannot capture verify blocks of several tokens, vLLM gives up full "
    "graphs: the CPU launches each layer's attention at every step (vllm#44492, vllm#52218)",
    "medium",
    "grep -i cudagraph <baseline-log> <candidate-log>",
    "Look for FULL in the baseline and PIECEWISE in the candidate; PIECEWISE in both rules it out, as "
    "with Triton MLA before vllm#42885.",
)


def mla_prefill(case: Case, explained: Sequence[Explained]) -> Finding | None:
    """A backend of latent attention that decodes one token per sequence verifies blocks as prefills."""
    if not case.is_modelled or not _is_slow_vllm(case, explained):
        return None
    attention = case.modelled.geometry.attention
    if not isinstance(attention, Latent):
        return None
    at_context = _expansion_s(case, attention, case.context_tokens)
    known = (
        f": about {at_context * 1e3:.1f} ms at {case.context_tokens:,.0f} tokens of context"
        if case.context_tokens
        else f": about {_expansion_s(case, attention, 1000) * 1e3:.2f} ms for every 1,000 tokens of context"
    )
    return Finding(
        "mla_prefill",
        "Verify blocks take the MLA prefill path",
        "Triton MLA decodes one token per sequence; a block of several takes the prefill path, which "
        f"expands the whole cache of the sequence anew (vllm#52218){known} in arithmetic alone",
        "medium",
        "grep -iE 'mla|attention backend' <candidate-log>",
        "Look for Triton MLA, and whether the slowdown grows with context.",
        (0.0, at_context) if case.context_tokens else None,
    )


def _is_slow_vllm(case: Case, explained: Sequence[Explained]) -> bool:
    """Whether it is vLLM, and some steps took longer, by the middle of what is possible, than explained."""
    return case.engine == "vllm" and any(sum(one.unexplained_s) > 0 for one in explained)


def _version(case: Case) -> tuple[int, int] | None:
    parts = (case.engine_version or "").removeprefix("v").split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    return int(parts[0]), int(parts[1])


def _expansion_s(case: Case, attention: Latent, context: float) -> float:
    """Arithmetic that makes keys and values of all heads out of a cached latent, in every layer.

    2 · context · kv_rank · heads · (nope_dim + v_dim) operations, as the weights of kv_b_proj.
    """
    flops = 2 * context * attention.kv_rank * attention.heads * (attention.nope_dim + attention.v_dim)
    model = case.modelled
    peak = (model.hardware.bf16_tflops or 0) * 1e12 * model.efficiency.arithmetic
    return case.sequences * model.geometry.layers * flops / (case.tp * peak)
