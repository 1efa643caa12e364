"""Rows of a file of published speedups: which can be predicted, which are doubtful, which cannot, and why."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from breakeven.cost.anchored import Anchored
from breakeven.cost.coverage import REUSE
from breakeven.cost.drafting import FLAT_S
from breakeven.cost.hardware import hardware, hardware_names
from breakeven.cost.modelled import Modelled
from breakeven.cost.presets import preset, preset_names
from breakeven.cost.step import Step
from breakeven.errors import UsageError
from breakeven.interval import Interval

COLUMNS = (
    *("id", "source", "model", "hardware", "tp", "engine", "method", "k", "batch"),
    *("accept_rate", "tau", "baseline", "unit", "speedup"),
)
SAME_AS = {
    "kimi-k2.6": "kimi-k2.5",
    "deepseek-r1": "deepseek-v3",
    "rtx-pro-6000": "rtx-pro-6000-ws",
    "8xh100": "h100-sxm",
    "8xH200 class": "h200-sxm",
}
"""Presets that have the geometry or the device of a name in the file."""
DOUBTS = {
    "vllm#16937": "acceptance length of another build (vllm#20780)",
    "rtx6kpro kimi-k26": "baseline of another table of the page",
    "rtx6kpro mtp": "acceptance of another table of the page",
    "sglang#3582": "baseline derived from the speedup; acceptance published as a range; a tree",
}
"""By source, from the notes of its rows."""
NOT_EVERY_STEP = ("ngram", "suffix", "pld", "lookahead")
"""Drafters that leave steps undrafted: their accept rate alone gives no acceptance length."""
MOST_DIGITS = 6
"""Of a count: no window, concurrency or number of devices has more."""

Group = tuple[str, str]
"""Engine and method."""


@dataclass(frozen=True, slots=True)
class Row:
    """A published speedup that can be predicted."""

    id: str
    source: str
    group: Group
    k: int
    tau: float
    step_s: float
    """Measured, of the plain step."""
    verify_s: float
    """Of the step that verifies k drafted tokens, without the drafter."""
    speedup: float
    doubt: str

    @property
    def drafted_step_s(self) -> float:
        """As the published speedup implies it."""
        return self.tau * self.step_s / self.speedup

    def predicted(self, per_token_s: float) -> float:
        """Speedup, if the drafter takes so long per drafted token."""
        return self.tau * self.step_s / (self.verify_s + FLAT_S.estimate + self.k * per_token_s)


@dataclass(frozen=True, slots=True)
class Unused:
    """A row that cannot be predicted, and why."""

    id: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlainStep:
    """A baseline's step, and what the model alone says of it."""

    source: str
    model: str
    hardware: str
    batch: int
    measured_s: float
    modelled: Interval
    one_dense: bool
    """Whether it is a dense model on one device."""

    @property
    def ratio(self) -> float:
        """Measured / modelled."""
        return self.measured_s / self.modelled.estimate


def read(path: Path) -> list[Mapping[str, str]]:
    """The records of the file. Raises UsageError unless it has the columns."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, restval="")
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise UsageError(f"{path} has no column {', '.join(missing)}: it needs {', '.join(COLUMNS)}")
            return list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read ({error}): name a CSV file") from error


def row_or_reason(record: Mapping[str, str], reuse: float = REUSE) -> Row | Unused:
    """The row as it can be predicted, or why it cannot."""
    try:
        return _row(record, reuse)
    except UsageError as error:
        return Unused(record["id"], record["source"], str(error))


def _row(record: Mapping[str, str], reuse: float) -> Row:
    if "topk" in record["method"]:
        raise UsageError("a tree: tokens verified are not the window")
    k = _whole(record, "k", "no window")
    batch = _whole(record, "batch", "concurrency not stated")
    tau = _acceptance_length(record, k)
    step_s = _step_s(record, batch)
    verify = Anchored(_modelled(record, reuse), step_s, Step(sequences=batch)).seconds(Step(k + 1, batch))
    doubt = DOUBTS.get(record["source"], "")
    if not doubt and batch > 1 and record["unit"] == "tok/s":
        doubt = "throughput of a workload, prefill and stragglers in it: no plain step can be read from it"
    group = (record["engine"], record["method"])
    speedup = _positive(record, "speedup", "no speedup")
    return Row(record["id"], record["source"], group, k, tau, step_s, verify.estimate, speedup, doubt)


def _acceptance_length(record: Mapping[str, str], k: int) -> float:
    """τ, or 1 + k · accept rate for a drafter that drafts k tokens on every step."""
    if record["tau"]:
        return _positive(record, "tau", "acceptance length not a number")
    if not record["accept_rate"]:
        raise UsageError("no acceptance length")
    if record["method"].lower().startswith(NOT_EVERY_STEP):
        raise UsageError("no acceptance length, and no share of drafted steps beside the accept rate")
    return 1 + k * _positive(record, "accept_rate", "accept rate not a number")


def _step_s(record: Mapping[str, str], batch: int) -> float:
    baseline = _positive(record, "baseline", "no baseline")
    if record["unit"] == "ms TPOT":
        return baseline * 1e-3
    if record["unit"] == "tok/s":
        return batch / baseline
    raise UsageError("no baseline in ms or tok/s, so no anchor")


def _modelled(record: Mapping[str, str], reuse: float) -> Modelled:
    geometry = preset(_known(record, "model", preset_names()))
    device = hardware(_known(record, "hardware", hardware_names()))
    return Modelled(geometry, device, _whole(record, "tp", "number of devices not stated"), reuse=reuse)


def _known(record: Mapping[str, str], column: str, names: Iterable[str]) -> str:
    name = SAME_AS.get(record[column], record[column])
    if name not in names:
        raise UsageError(f"no preset for the {column}: {record[column]}")
    return name


def _whole(record: Mapping[str, str], column: str, reason: str) -> int:
    digits = record[column]
    if not digits.isdecimal() or len(digits) > MOST_DIGITS or int(digits) < 1:
        raise UsageError(reason)
    return int(digits)


def _positive(record: Mapping[str, str], column: str, reason: str) -> float:
    try:
        value = float(record[column])
    except ValueError as error:
        raise UsageError(reason) from error
    if not 0 < value < float("inf"):
        raise UsageError(reason)
    return value


def plain_step(record: Mapping[str, str]) -> PlainStep | None:
    """The row's baseline beside the model's, or None where either is missing."""
    try:
        batch = _whole(record, "batch", "concurrency not stated")
        modelled, measured_s = _modelled(record, REUSE), _step_s(record, batch)
    except UsageError:
        return None
    one_dense = modelled.geometry.experts is None and modelled.tp == 1
    name = (record["source"], record["model"], record["hardware"], batch)
    return PlainStep(*name, measured_s, modelled.seconds(Step(sequences=batch)), one_dense)
