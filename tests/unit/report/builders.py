"""A trial as it comes out of two endpoints: traces with paced, bundled tokens, and the result over them."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean, median

from breakeven.acceptance.counters import SpecCounters
from breakeven.compare.records import (
    Comparison,
    Divergence,
    Drift,
    Interval,
    Lossless,
    PromptSpeedup,
    SideQuality,
    Verdict,
)
from breakeven.trace.journal import RunWriter
from breakeven.trace.records import Event, Kind, RequestTrace
from breakeven.trace.run import Run, Schedule, ServerInfo, load_run, new_meta
from breakeven.trial.result import Side, TrialResult
from breakeven.workload.prompts import Prompt, Sampling, Workload

HOSTILE = (
    "</script><img src=x onerror=alert(1)><b>[bold red]x[/bold red][/]"
    "\x1b[31mred\x1b]0;title\x07\x00\ud800\u202egnp.exe مرحبا <!-- ]]> &amp; '\" {{7*7}}"
)

PROMPTS = (
    ("coding", "coding", 1.46, 0.0),
    ("math", "math", 1.02, 0.4),
    ("json", "structured", 1.21, 0.0),
    ("explain", "explanatory", 0.97, 0.0),
    ("proof", "reasoning", 1.06, 0.8),
    ("edit-code", "copy", 2.35, 0.0),
    ("rewrite", "copy", 1.71, 0.0),
    ("extract-json", "copy", 1.94, 0.0),
)
BASE_TPOT_S = 0.0213


def trace(
    prompt_id: str,
    category: str,
    tpot_s: float,
    repeat: int = 0,
    block: int = 0,
    bundle: float = 1.0,
    reasoning_share: float = 0.0,
    tokens: int = 96,
    text: str = "The quick brown fox. " * 20,
    seed: int = 0,
) -> RequestTrace:
    """A reply of `tokens` tokens at `tpot_s` a token, in reads of `bundle` tokens on average."""
    rng = random.Random(ascii((prompt_id, repeat, seed)))
    at_ns, sent_ns, read_id, done = 1_000_000_000 + repeat * 10**10, 1_000_000_000 + repeat * 10**10, 0, 0
    at_ns += 60_000_000
    events = []
    while done < tokens:
        n = (
            1
            if done == 0
            else min(tokens - done, 1 + (rng.random() < 0.45) * round(rng.random() * 2 * (bundle - 1) / 0.45))
        )
        at_ns += 0 if done == 0 else int(tpot_s * n * rng.gauss(1, 0.05) * 1e9)
        kind = Kind.REASONING if done < reasoning_share * tokens else Kind.CONTENT
        events.append(Event(at_ns, read_id, kind, n))
        read_id, done = read_id + 1, done + n
    return RequestTrace(
        id=f"{prompt_id}#{repeat}", prompt_id=prompt_id, category=category, repeat=repeat, block=block,
        max_tokens=tokens, scheduled_ns=None, connect_ns=None, sent_ns=sent_ns, end_ns=at_ns + 200_000,
        events=tuple(events), text=text, reasoning="", tool_calls="", finish_reason="length",
        usage={"prompt_tokens": 40, "completion_tokens": tokens,
               "completion_tokens_details": {"reasoning_tokens": round(reasoning_share * tokens)}},
    )  # fmt: skip


def traces(repeats: int = 8, prompts: tuple[tuple[str, str, float, float], ...] = PROMPTS):
    """(baseline, candidate) traces, a block per repeat."""
    rng = random.Random(7)
    sides: tuple[list[RequestTrace], list[RequestTrace]] = ([], [])
    for repeat in range(repeats):
        for prompt_id, category, speedup, reasoning in prompts:
            for side, ratio in ((0, 1.0), (1, speedup)):
                tpot_s = BASE_TPOT_S / ratio * rng.gauss(1, 0.015) * (1 + 0.002 * repeat)
                text = "def f(x):\n    return x + 1\n" * 12
                if side and prompt_id == "explain" and repeat % 4 == 1:
                    text = text[:120] + "Rather, the answer is different here." * 6
                sides[side].append(
                    trace(prompt_id, category, tpot_s, repeat, repeat,
                          bundle=max(ratio * 1.15, 1.0) if side else 1.0, reasoning_share=reasoning,
                          text=text, seed=side)
                )  # fmt: skip
    return sides


def _tpot_s(one: RequestTrace) -> float:
    first = one.events[0]
    n = sum(event.n_tokens or 0 for event in one.events)
    return (one.events[-1].read_ns - first.read_ns) / 1e9 / (n - (first.n_tokens or 0))


def counters(prompt_id: str, tokens: int) -> SpecCounters:
    """As llama.cpp gives them: no count of drafts."""
    drafted = sum(map(ord, prompt_id)) * 3
    return SpecCounters(
        steps=tokens, drafted_tokens=drafted, accepted_tokens=drafted // 3, source="llama.cpp timings"
    )


def result(
    run_dir: Path = Path("runs/trial"),
    sides: tuple[list[RequestTrace], list[RequestTrace]] | None = None,
    outcome: str = "faster",
) -> TrialResult:
    """The trial over `sides` (by default `traces()`), with plain intervals of ± 3 %."""
    baseline, candidate = sides or traces()
    prompts = []
    for prompt_id in dict.fromkeys(one.prompt_id for one in baseline):
        values = [
            [_tpot_s(one) for one in side if one.prompt_id == prompt_id] for side in (baseline, candidate)
        ]
        ratio = geometric_mean([a / b for a, b in zip(*values, strict=True)])
        category = next(one.category for one in baseline if one.prompt_id == prompt_id)
        prompts.append(
            PromptSpeedup(prompt_id, category, median(values[0]), median(values[1]),
                          Interval(ratio, ratio * 0.97, ratio * 1.035), len(values[0]))
        )  # fmt: skip
    overall = geometric_mean([prompt.speedup.estimate for prompt in prompts])
    by_prompt = {prompt.id: counters(prompt.id, 800) for prompt in prompts}
    quality = SideQuality(len(baseline), 0, 0, 0, {})
    comparison = Comparison(
        speedup=Interval(overall, overall * 0.86, overall * 1.18),
        confidence=0.95,
        floor=0.02,
        prompts=tuple(prompts),
        by_category={prompt.category: prompt.speedup for prompt in prompts},
        repeats=len(baseline) // max(len(prompts), 1),
        baseline=quality,
        candidate=SideQuality(len(candidate), 0, 1, 2, {}),
        lossless=Lossless(62, 64, Divergence(prompts[-1].id, 1, "character", 120)),
        drift=Drift(Interval(0.986, 0.981, 0.992), significant=True),
        warnings=("fewer than 10 prompts: the interval over prompts is rough",),
    )
    total = counters("total", 6000)
    return TrialResult(
        model="SmolLM2-135M-Instruct Q4_K_M",
        workload="brief, 8 prompts",
        baseline=Side("baseline", "no speculation, 1 thread", "http://127.0.0.1:41233/v1",
                      run_dir / "baseline", 1.84, None, {}),
        candidate=Side("candidate", "ngram-simple n=3 m=3, 1 thread", "http://127.0.0.1:41234/v1",
                       run_dir / "candidate", 1.91, total, by_prompt),
        comparison=comparison,
        verdict=Verdict(outcome, "Faster: decode speed +39.5 % (95.0 % interval +20.0 % to +64.6 %).",
                        "breakeven diagnose runs/trial"),
        stopped_after=8,
        stop_reason="the verdict was decided",
        confounders=("prompt-cache reuse differs between the sides: 0 of 64 against 12 of 64 requests",),
        run_dir=run_dir,
        started="2026-11-29T12:37:00Z",
        elapsed_s=283.4,
    )  # fmt: skip


def run_on_disk(
    folder: Path, some: list[RequestTrace], self_check: dict[str, object] | None, **meta: str
) -> Run:
    """A finished run of those traces."""
    prompts = tuple(Prompt(name, "c", text="x") for name in dict.fromkeys(one.prompt_id for one in some))
    started = new_meta(
        kind="measure",
        url=meta.get("url", "http://127.0.0.1:41233/v1"),
        api="chat",
        model=meta.get("model", "smol"),
        server=ServerInfo(engine="llama.cpp", flags={"port": meta.get("port", "1")}),
        schedule=Schedule("closed", 1),
        sampling=Sampling(96),
        workload=Workload("brief", prompts),
        repeats=8,
        warmup_requests=1,
        event_loop="uvloop",
    )
    writer = RunWriter.create(folder, started, prompts)
    for one in some:
        writer.append(one)
    writer.finish(replace(started, status="complete", elapsed_s=10.0, self_check=self_check))
    return load_run(folder)
