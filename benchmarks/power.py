"""How often `--repeats auto` errs, how many repeats it needs, and whether the interval covers: by simulation.

    python benchmarks/power.py [--trials N]

TPOTs are drawn, not measured, in the order in which a trial really asks (trial/plan.py), with noise per
request (lognormal), a machine whose speed wanders (AR(1) over requests) and drifts (linear), and stalls. The
rule, the interval and the outcome are those of the package. Writes benchmarks/results/power.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from breakeven.compare.bootstrap import Array, interval
from breakeven.compare.outcome import outcome
from breakeven.compare.records import Comparison, Drift, Lossless, PromptSpeedup, SideQuality
from breakeven.compare.sequential import StoppingRule
from breakeven.compare.within import pair_noise, within_interval
from breakeven.interval import Interval
from breakeven.trial.plan import TrialPlan, loads
from breakeven.workload.prompts import Prompt, Sampling, Workload

RESULT = Path(__file__).parent / "results" / "power.json"
FLOOR = 0.02
PROMPTS = 8


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviations and sizes on the log scale, so near enough shares of a TPOT."""

    request: float
    machine: float
    """Of the machine's wandering speed."""
    memory: float
    """Correlation of the machine's speed from one request to the next."""
    drift: float
    """Over 12 repeats."""
    stall_share: float
    stall_size: float = 0.3
    """Mean of the exponential that a stalled request adds."""


QUIET = Noise(request=0.01, machine=0.005, memory=0.9, drift=0.0, stall_share=0.002)
SHARED = Noise(request=0.03, machine=0.02, memory=0.9, drift=0.05, stall_share=0.01)
NOISES = {"quiet": QUIET, "shared": SHARED}
ORDERS = {"in turn": 1, "blocks": 8}
"""Concurrency: at 1 the sides alternate by prompt, above it by the whole workload."""


class Simulation:
    """Draws log ratios, shape (prompts, repeats), in the order of a trial with `cap` repeats."""

    def __init__(self, noise: Noise, concurrency: int, prompts: int = PROMPTS, cap: int = 12) -> None:
        self.noise, self.shape = noise, (prompts, cap)
        workload = Workload("simulated", tuple(Prompt(str(i), "any", text="x") for i in range(prompts)))
        plan = TrialPlan(workload, Sampling(), cap=cap, concurrency=concurrency)
        asked = [ask for repeat in range(cap) for load in loads(plan, repeat) for ask in load]
        self.slots = np.zeros((2, prompts, cap), dtype=int)
        for slot, (side, request) in enumerate((ask.side, ask.request) for ask in asked):
            self.slots[int(side == "candidate"), int(request.prompt.id), request.repeat] = slot

    def log_ratios(self, rng: np.random.Generator, effect: float = 0.0, spread: float = 0.0) -> Array:
        """`effect` is the true mean log speedup, `spread` the standard deviation over prompts."""
        noise, shape = self.noise, (2, *self.shape)
        log_tpot = self._machine(rng)[self.slots] + rng.normal(0, noise.request, shape)
        log_tpot += np.where(
            rng.random(shape) < noise.stall_share, rng.exponential(noise.stall_size, shape), 0
        )
        by_prompt = rng.normal(effect, spread, (self.shape[0], 1))
        ratios: Array = log_tpot[0] - log_tpot[1] + by_prompt
        return ratios

    def _machine(self, rng: np.random.Generator) -> Array:
        count, noise = self.slots.size, self.noise
        shocks = rng.normal(0, noise.machine * np.sqrt(1 - noise.memory**2), count)
        wander = np.empty(count)
        wander[0] = rng.normal(0, noise.machine)
        for slot in range(1, count):
            wander[slot] = noise.memory * wander[slot - 1] + shocks[slot]
        return wander + np.linspace(0, noise.drift, count)


def comparison(log_ratios: Array, alpha: float) -> Comparison:
    """What compare() makes of such pairs, without the replies themselves."""
    noise, (n, repeats) = pair_noise(log_ratios), log_ratios.shape
    side = SideQuality(n * repeats, 0, 0, 0, 0)
    prompts = tuple(
        PromptSpeedup(str(i), "any", 1.0, 1.0, within_interval(log_ratios[i : i + 1], noise, alpha), repeats)
        for i in range(n)
    )
    speedup: Interval = interval(log_ratios, alpha)
    return Comparison(
        speedup, 1 - alpha, FLOOR, prompts, {}, repeats, side, side, Lossless(0, 0, None), Drift(None, False)
    )


def run_rule(log_ratios: Array, rule: StoppingRule) -> tuple[str, int]:
    """The outcome of a whole trial, and the repeats it took."""
    for repeats in rule.looks:
        seen = comparison(log_ratios[:, :repeats], rule.alpha_per_look)
        if rule.decide(seen, repeats).stop:
            break
    assert seen.speedup is not None
    return outcome(seen.speedup, FLOOR), repeats


def trials(noise: Noise, concurrency: int, effect: float, spread: float, n: int) -> list[tuple[str, int]]:
    simulation, rule = Simulation(noise, concurrency), StoppingRule()
    rng = np.random.default_rng(20)
    return [run_rule(simulation.log_ratios(rng, effect, spread), rule) for _ in range(n)]


def false_positives(n: int) -> Iterator[dict[str, object]]:
    """A/A: both sides are the same."""
    for order, concurrency in ORDERS.items():
        for name, noise in NOISES.items():
            results = trials(noise, concurrency, 0.0, 0.0, n)
            found = [which for which, _ in results]
            yield {
                "noise": name,
                "order": order,
                "trials": n,
                **{which: found.count(which) / n for which in ("faster", "slower", "same", "undecided")},
                "median_repeats": float(np.median([repeats for _, repeats in results])),
            }


def power(n: int) -> Iterator[dict[str, object]]:
    """A true effect that differs between prompts by a third of itself."""
    for name, noise in NOISES.items():
        for percent in (3, 5, 10):
            effect = float(np.log1p(percent / 100))
            results = trials(noise, 1, effect, effect / 3, n)
            right = [repeats for which, repeats in results if which == "faster"]
            yield {
                "noise": name,
                "effect": percent / 100,
                "trials": n,
                "faster": len(right) / n,
                "wrong": sum(which in ("slower", "same") for which, _ in results) / n,
                "undecided": sum(which == "undecided" for which, _ in results) / n,
                "repeats_median": float(np.median(right)) if right else None,
                "repeats_p90": float(np.quantile(right, 0.9)) if right else None,
            }


def coverage(n: int) -> Iterator[dict[str, object]]:
    """How often the 95 % interval of a fixed number of repeats holds the truth, 3 % spread over prompts."""
    for prompts in (4, 8, 16):
        for repeats in (1, 2, 4):
            simulation = Simulation(SHARED, 1, prompts, repeats)
            rng = np.random.default_rng(30)
            drawn = [interval(simulation.log_ratios(rng, 0.05, 0.03), 0.05) for _ in range(n)]
            truth = float(np.exp(0.05))
            yield {
                "prompts": prompts,
                "repeats": repeats,
                "trials": n,
                "coverage": sum(found.low <= truth <= found.high for found in drawn) / n,
                "mean_half_width": float(np.mean([np.log(found.high / found.low) / 2 for found in drawn])),
            }


def show(title: str, rows: list[dict[str, object]]) -> None:
    print(f"\n{title}")
    print("  ".join(f"{name:>15}" for name in rows[0]))
    for row in rows:
        cells = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values())
        print("  ".join(f"{cell:>15}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000, help="simulated A/A trials per row")
    n = parser.parse_args().trials
    started = time.perf_counter()
    tables = {
        "false_positives": list(false_positives(n)),
        "power": list(power(max(1, n // 4))),
        "coverage": list(coverage(n)),
    }
    for title, rows in tables.items():
        show(title, rows)
    rule = StoppingRule()
    about = {
        "rule": {"looks": rule.looks, "alpha": rule.alpha, "alpha_per_look": rule.alpha_per_look},
        "floor": FLOOR,
        "prompts": PROMPTS,
        "noise": {name: asdict(noise) for name, noise in NOISES.items()},
        "python": platform.python_version(),
        "numpy": np.__version__,
        "elapsed_s": round(time.perf_counter() - started, 1),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({**about, **tables}, indent=2) + "\n")
    print(f"\n{RESULT} written after {about['elapsed_s']} s")


if __name__ == "__main__":
    main()
