"""What could have slowed a candidate down: one function per cause, each a Finding or None.

A cause looks at the case and at what its observations leave unexplained. Confidence is how likely it is that
the cause is at work, and that it costs time here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from breakeven.cost.drafting import drafting_cost, is_lookup
from breakeven.cost.step import Step
from breakeven.explain.case import Case
from breakeven.explain.explained import ANY, is_within_error
from breakeven.explain.records import Explained, Finding, ranked
from breakeven.explain.vllm_causes import async_scheduling, cuda_graphs, mla_prefill
from breakeven.explain.waterfall import ALL_REDUCE
from breakeven.units import ratio, share, size

PROMPT_LOOKUPS = ("ngram", "ngram_gpu")
"""Methods of vLLM with prompt_lookup_max."""
FAR_APART = 1.1
"""Plain steps of one server and model at one concurrency, slowest / fastest, that need a reason."""
MOST_CONTEXT = 1_000_000
"""Tokens that a request has: a difference that takes more is not of context."""
SLOWER_THAN_CURVE = 1.2
"""A profiled AllReduce against the measured curve."""

Cause = Callable[[Case, Sequence[Explained]], Finding | None]


def findings(case: Case, explained: Sequence[Explained]) -> tuple[Finding, ...]:
    """All that apply, ranked."""
    return ranked(finding for cause in CAUSES if (finding := cause(case, explained)) is not None)


def weights_do_not_fit(case: Case, explained: Sequence[Explained]) -> Finding | None:
    """Weights larger than the memory of all devices: some are streamed from elsewhere at each step."""
    have, need = memory_bytes(case), weight_bytes(case)
    if have is None or need is None or need <= have:
        return None
    return Finding(
        "weights_do_not_fit",
        "The weights do not fit into device memory",
        f"{size(need)} of weights, {size(round(have))} of memory on {case.device}: the remainder would cross "
        "the host link at each step, which nothing here models",
        "high",
        "grep -i offload <candidate-log>",
        "Look for weights that are offloaded; if none are, --tp or --hardware is not what was measured.",
    )


def verification_too_dear(case: Case, explained: Sequence[Explained]) -> Finding | None:
    """Verifying may cost more than acceptance gives, at some acceptance rate that is possible."""
    losing = [one for one in explained if one.outcome in ("slower", "either") and one.observed_speedup < 1]
    if not losing:
        return None
    slower = all(one.outcome == "slower" for one in losing)
    sure = slower and (case.measured is not None or not any(map(is_within_error, losing)))
    names = ", ".join(one.observation.name for one in losing)
    worst = max(losing, key=lambda one: one.verify_s.high / one.observation.baseline_tpot_s)
    plain, drafted = worst.observation.baseline_tpot_s, case.draft_tokens(worst.observation)
    low, high = worst.verify_s.low / plain, worst.verify_s.high / plain
    return Finding(
        "verification_too_dear",
        "Verifying costs more than the accepted tokens save" + ("" if slower else ", perhaps"),
        f"{names}: verifying {drafted:g} tokens costs {low:.2f} to {high:.2f} plain steps, so a drafted step "
        f"pays {_paying_rates(low / drafted, high / drafted)}",
        "high" if sure else "medium",
        *_what_pays(case),
        (worst.verify_s.low, worst.verify_s.high),
    )


def faster_than_free(case: Case, explained: Sequence[Explained]) -> Finding | None:
    """Faster than if verifying took no time at all: no cost of a step explains that."""
    beyond = [one for one in explained if one.observed_speedup > _most_speedup(case, one)]
    if not beyond:
        return None
    said = ", ".join(
        f"{one.observation.name} {ratio(one.observed_speedup)} of {ratio(_most_speedup(case, one))}"
        for one in beyond
    )
    return Finding(
        "faster_than_free",
        "The two speeds differ by more than speculation",
        f"Even if verifying took no time, accepted tokens could not make it so much faster: {said} at most. "
        "The window, the acceptance or the draft share are not the candidate's, or its plain steps are "
        "faster than the baseline's",
        "high",
        "breakeven compare <baseline-run> <candidate-run>",
        "See what it names as different between the two, and whether the machine was as idle for both.",
    )


def _most_speedup(case: Case, one: Explained) -> float:
    """1 + f·n·a, with the greatest draft share and acceptance that are possible: verifying is free."""
    seen = one.observation
    (_, rate), (_, drafting) = seen.acceptance_rate or ANY, seen.draft_share or ANY
    return 1 + drafting * case.draft_tokens(seen) * rate


def drafter_time(case: Case, explained: Sequence[Explained]) -> Finding | None:
    """The drafter itself, and the handling of its drafts: not in what the waterfall adds."""
    if not any(sum(one.unexplained_s) > 0 for one in explained):
        return None
    cost = drafting_cost(case.engine, case.method)
    low, high = (
        getattr(cost.step_s, end) + getattr(cost.drafted_step_s, end) + case.k * getattr(cost.token_s, end)
        for end in ("low", "high")
    )
    return Finding(
        "drafter_time",
        "The drafter's own time",
        f"{low * 1e3:.1f} to {high * 1e3:.1f} ms of a step that drafts {case.k} tokens, "
        f"{cost.step_s.high * 1e3:.1f} ms at most of one that drafts none ({cost.source})",
        "low" if is_lookup(case.method) else "medium",
        "breakeven measure --url <url>",
        "Measure the candidate with a window of 1: what goes with the window is the drafter's or the "
        "verification's.",
        (low, high),
    )


def lookup_only_longest(case: Case, explained: Sequence[Explained]) -> Finding | None:
    """vLLM takes an unset prompt_lookup_min from prompt_lookup_max."""
    longest = case.settings.get("prompt_lookup_max")
    is_set = case.settings.get("prompt_lookup_min") is not None
    if case.method not in PROMPT_LOOKUPS or not longest or is_set or longest == 1:
        return None
    return only_longest(case.k, longest, True)


def only_longest(k: int, longest: int, min_left_out: bool) -> Finding:
    """That matches of one length are looked up, of two tokens or more; by a setting that was left out, or for
    a reason that is not known."""
    how = (
        f"Setting prompt_lookup_max {longest} without prompt_lookup_min makes both {longest}"
        if min_left_out
        else f"Only matches of exactly {longest} tokens are looked up"
    )
    return Finding(
        "lookup_only_longest",
        f"Only matches of exactly {longest} tokens are looked up",
        f"{how}. It explains a low draft share, and so a small gain; it costs no time by itself",
        "medium",
        f"breakeven replay <baseline-run> --drafter vllm-ngram --k {k} --min-n {min(2, longest - 1)} "
        f"--max-n {longest}",
        "See whether more steps draft, and enough of it is accepted.",
    )


def steps_unlike(case: Case, explained: Sequence[Explained]) -> Finding | None:
    """Plain steps of one server differ by context alone; speeds that differ more hold something else."""
    by_speed = sorted(explained, key=lambda one: one.observation.baseline_tpot_s)
    fast, slow = by_speed[0].observation, by_speed[-1].observation
    apart_s = slow.baseline_tpot_s - fast.baseline_tpot_s
    if slow.baseline_tpot_s / fast.baseline_tpot_s < FAR_APART:
        return None
    return Finding(
        "steps_unlike",
        "The speeds hold more than decode steps",
        f"A plain step is the same work for every prompt but for its context; {slow.name} took "
        f"{apart_s * 1e3:.1f} ms longer than {fast.name} without speculation{_context_for(case, apart_s)}. "
        "Prefill within the time, tokens counted otherwise, or a busy machine would do it",
        "medium",
        "breakeven measure --url <url> --prompts <prompts>",
        "See whether plain steps are alike when tokens are those of usage and prefill is left out.",
    )


def slow_all_reduce(case: Case, explained: Sequence[Explained]) -> Finding | None:
    """Of the baseline: no cause of the slowdown, but time to win with or without speculation."""
    if not case.is_modelled or case.tp == 1:
        return None
    link, geometry = case.modelled.hardware.link, case.modelled.geometry
    if link is None or case.tp not in link.all_reduce_us:
        return None
    calls, best = geometry.all_reduce_calls(), case.modelled.parts(case.plain_step)[ALL_REDUCE]
    profiled = case.profiled_s.get(ALL_REDUCE)
    each = f"{calls} calls a step at {best / calls * 1e6:.0f} µs on the measured curve: {best * 1e3:.1f} ms"
    if profiled is None:
        said, excess = f"{each}. What they take on this server was not profiled", None
    elif profiled < SLOWER_THAN_CURVE * best:
        return None
    else:
        said = f"{each}; profiled {profiled * 1e3:.1f} ms, {profiled / calls * 1e6:.0f} µs a call"
        excess = (0.0, profiled - best)
    return Finding(
        "slow_all_reduce",
        "A hint for the baseline: AllReduce",
        f"{said}. A slow one makes every step longer, with speculation and without",
        "low",
        f"all_reduce_perf -b {geometry.all_reduce_bytes(1):.0f} -e 131072 -f 2 -g {case.tp}",
        f"See, by nccl-tests, whether it takes {best / calls * 1e6:.0f} µs at this size, and what "
        "NCCL_P2P_LEVEL, NCCL_PROTO and NCCL_ALGO change.",
        excess,
    )


CAUSES: tuple[Cause, ...] = (
    weights_do_not_fit,
    verification_too_dear,
    faster_than_free,
    async_scheduling,
    cuda_graphs,
    mla_prefill,
    drafter_time,
    lookup_only_longest,
    steps_unlike,
    slow_all_reduce,
)


def memory_bytes(case: Case) -> float | None:
    """Of all devices; None where the data sheet does not say, or the device is not known."""
    each = None if case.hardware is None else case.hardware.memory_gib
    return None if each is None else case.tp * each * 2**30


def weight_bytes(case: Case) -> int | None:
    """None where the model is not known."""
    return None if case.geometry is None else case.geometry.weight_bytes()


def _context_for(case: Case, seconds: float) -> str:
    """How much context would take so long to read, where a request may have that."""
    if not case.is_modelled:
        return ""
    per_token_s = case.modelled.parts(Step(1, case.sequences, 1000))["kv"] / 1000
    if seconds > MOST_CONTEXT * per_token_s:
        return ", which context cannot explain"
    return f", which takes {seconds / per_token_s:,.0f} tokens of context"


def _what_pays(case: Case) -> tuple[str, str]:
    """Command and check that tell which window would do better, or what a trained head must reach."""
    if is_lookup(case.method):
        return "breakeven replay <baseline-run> --sweep", "See which window or n-gram is accepted more often."
    check = "See which window needs no more acceptance than the head has."
    if case.measured is not None:
        return "breakeven forecast <baseline-run> --calibration <calibration>", check
    name, device = case.model, case.modelled.hardware.name
    return f"breakeven forecast --model {name} --hardware {device} --tp {case.tp}", check


def _paying_rates(low: float, high: float) -> str:
    """From which acceptance rate, at least and at most."""
    if low > 1:
        return "at no acceptance rate"
    if high > 1:
        return f"at best from an acceptance rate of {share(low)}, at worst at none"
    return f"from an acceptance rate of {share(low)} to {share(high)}"
