"""The rows of a file of measured throughput, the outputs that a study recorded, and its batches simulated."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from breakeven.compare.degenerate import ends_in_loop
from breakeven.cost.drafting import DraftingCost
from breakeven.cost.step import Source, Step
from breakeven.errors import UsageError
from breakeven.forecast.collect import collect
from breakeven.forecast.collected import Requests, SettingSteps
from breakeven.forecast.simulate import Batching
from breakeven.interval import Interval
from breakeven.replay.sources import open_source

TRACES = Path(__file__).parents[2] / "shared" / "data"
COLUMNS = ("method", "dataset", "num_speculative_tokens", "batch", "measured_speedup")
N_RANGE = {"min_n": 3, "max_n": 7}
"""Of the study's drafter (scripts/bench_latency.py)."""
TOKEN_BUDGET = 16_384
"""Of vLLM's LLM class, which the study used, on an H100 (EngineArgs.get_batch_defaults)."""
MAX_TOKENS = 8_192
"""That the study asked for; an output as long was cut off, and is in none of its rows."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Regression:
    """The study's fit of measured steps: flat, for each token of the batch, and for each cached one."""

    flat_s: float = 5.886e-3 + 1.207e-3
    """The step's own, and its overhead."""
    token_s: float = 21.0e-6
    cached_s: float = 39.3e-9
    source: Source = field(default="measured", init=False)

    def seconds(self, step: Step) -> Interval:
        return exactly(sum(self.parts(step).values()))

    def relative(self, step: Step, base: Step) -> Interval:
        return exactly(self.seconds(step).estimate / self.seconds(base).estimate)

    def parts(self, step: Step) -> Mapping[str, float]:
        cached = step.sequences * step.context_tokens
        return {
            "flat": self.flat_s,
            "tokens": self.token_s * step.batch_tokens,
            "kv": self.cached_s * cached,
        }

    def warnings(self, step: Step) -> tuple[str, ...]:
        return ()


COST = Regression()


@dataclass(frozen=True, slots=True)
class Row:
    """One measured speedup."""

    dataset: str
    k: int
    batch: int
    measured: float


@dataclass(frozen=True, slots=True)
class Trace:
    """Recorded outputs, and the steps that the study's drafter takes on them."""

    requests: Requests
    steps: SettingSteps
    loops: int = 0
    """Outputs that end in a loop by the rule of `breakeven compare`."""

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Whether an output ended by itself; shape (requests,)."""
        return self.requests.output_tokens < MAX_TOKENS

    def taken(self, which: NDArray[np.int64]) -> Trace:
        """The requests of these indices, in their order; one that comes twice is there twice."""
        begins = np.concatenate([[0], np.cumsum(self.steps.counts)])
        steps = np.concatenate([np.arange(begins[r], begins[r + 1]) for r in which])
        return Trace(
            replace(
                self.requests,
                prompt_tokens=self.requests.prompt_tokens[which],
                output_tokens=self.requests.output_tokens[which],
                category=self.requests.category[which],
            ),
            replace(
                self.steps,
                counts=self.steps.counts[which],
                drafted=self.steps.drafted[steps],
                accepted=self.steps.accepted[steps],
            ),
        )


@dataclass(frozen=True, slots=True)
class Batches:
    """A row's batches: for each request one of so many copies of it. Arrays of shape (requests,)."""

    row: Row
    tokens: Floats
    """Of all copies' outputs together."""
    ended: NDArray[np.bool_]
    plain_s: Floats
    free_s: Floats
    """With speculation, if drafting costs nothing."""
    drafted_steps: Floats
    """Steps in which some copy drafts: time is linear in what they cost."""

    def speedup(self, drafted_step_s: float, cut_off: bool = False) -> float:
        """Mean throughput with / without, over outputs that ended, or over those that were cut off too."""
        counted = self.ended | cut_off
        seconds = self.free_s + drafted_step_s * self.drafted_steps
        return float((self.tokens / seconds)[counted].mean() / (self.tokens / self.plain_s)[counted].mean())


def read(path: Path) -> list[Row]:
    """The rows of the file. Raises UsageError for one that cannot be used."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            records = list(csv.DictReader(file, restval=""))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read ({error}): name a CSV file") from error
    if not records or any(name not in records[0] for name in COLUMNS):
        raise UsageError(f"{path} needs rows with the columns {', '.join(COLUMNS)}")
    return [_row(record) for record in records]


def _row(record: Mapping[str, str]) -> Row:
    if record["method"] != "ngram":
        raise UsageError(f"method {record['method']}: only ngram is predicted here, leave the row out")
    try:
        k, batch = int(record["num_speculative_tokens"]), int(record["batch"])
        row = Row(record["dataset"], k, batch, float(record["measured_speedup"]))
    except ValueError as error:
        raise UsageError(f"a row of {record['dataset']} holds no number: {error}") from error
    if not (row.k >= 1 and row.batch >= 1 and 0 < row.measured < float("inf")):
        raise UsageError(f"a row of {row.dataset}: window, batch and speedup must be above 0")
    return row


def trace_of(dataset: str, k: int) -> Trace:
    """Raises UsageError where the outputs of the data set are not there."""
    path = TRACES / f"specdecode_bench_{dataset}.jsonl"
    if not path.is_file():
        raise UsageError(
            f"the recorded outputs {path.name} are not in a folder shared/data beside the repository: "
            "put them there"
        )
    source = open_source(path)
    loops = sum(ends_in_loop(request.output.tolist()) for request in source)
    requests, (steps,) = collect(source, [("vllm-ngram", {"k": k, **N_RANGE})], "prefill")
    return Trace(requests, steps, loops)


def batches(row: Row, trace: Trace) -> Batches:
    """Simulate each request's batch."""
    found = np.array([_served(trace.taken(np.full(row.batch, r)), row) for r in range(len(trace.ended))])
    tokens = (trace.requests.output_tokens * row.batch).astype(np.float64)
    return Batches(row, tokens, trace.ended, *found.T)


def _served(trace: Trace, row: Row) -> tuple[float, float, float]:
    """Seconds without speculation, with it, and the steps in which some request drafts."""
    served = batching(row, trace)
    free = served.seconds(trace.steps, drafting(0.0))
    return served.plain_s, free, served.seconds(trace.steps, drafting(1.0)) - free


def batching(row: Row, trace: Trace) -> Batching:
    """These requests at the row's concurrency."""
    return Batching(trace.requests, COST, row.batch, row.k, COST.token_s, TOKEN_BUDGET)


def drafting(drafted_step_s: float) -> DraftingCost:
    return DraftingCost(exactly(0.0), exactly(drafted_step_s), exactly(0.0), "fitted")


def exactly(value: float) -> Interval:
    return Interval(value, value, value)
