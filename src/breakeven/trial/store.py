"""trial.json: what a trial was, beside the run folders of its sides; all else is made from those again.

Format history (`format_version`):
    1  0.1.0  the first
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import orjson

from breakeven.acceptance.combine import complete, total
from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.meter import FOREIGN
from breakeven.compare.comparison import compare_traces
from breakeven.compare.confounders import confounders
from breakeven.compare.degenerate import is_degenerate
from breakeven.compare.divergence import UNANSWERED
from breakeven.compare.records import Comparison, Verdict
from breakeven.errors import RunFormatError, UsageError
from breakeven.trace.files import storing, write_bytes_atomically
from breakeven.trace.records import RequestTrace
from breakeven.trace.rows import dump_json
from breakeven.trace.run import Run, load_run
from breakeven.trace.typed import check_types
from breakeven.trial.left_out import kept, left_out_note, left_out_of, nothing_kept
from breakeven.trial.plan import SIDES
from breakeven.trial.result import RUNNING, Side, TrialResult
from breakeven.verdict import SelfCheck, judge

FILE = "trial.json"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class SideRecord:
    """What the run folder of a side does not know."""

    description: str
    reload_s: float | None = None
    warnings: tuple[str, ...] = ()
    reload_absent: str = RUNNING
    """Why reload_s is None, of the side's server."""


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """trial.json. It is written when the trial begins, and again when it ends."""

    model: str
    workload: str
    started: str
    floor: float
    alpha: float
    """1 − the confidence of each interval; the stopping rule shares it out over its looks."""
    sides: Mapping[str, SideRecord]
    stop_reason: str = "interrupted"
    left_out: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Repeats that are not compared, and why."""
    elapsed_s: float | None = None
    finished: bool = False
    failed: str | None = None
    """Why the candidate was taken out before its end: there is no verdict then."""
    format_version: int = FORMAT_VERSION


def is_trial(folder: Path) -> bool:
    return (folder / FILE).is_file()


def save_trial(folder: Path, record: TrialRecord) -> None:
    """Raises StorageError."""
    data = dump_json(asdict(record), orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
    with storing(folder):
        write_bytes_atomically(folder / FILE, data)


def load_record(folder: Path) -> TrialRecord:
    """Raises RunFormatError for a file that is damaged, foreign or too new."""
    path = folder / FILE
    try:
        values = orjson.loads(path.read_bytes())
        if values["format_version"] > FORMAT_VERSION:
            raise RunFormatError(
                f"{path} has format {values['format_version']}, and this version reads up to "
                f"{FORMAT_VERSION}: type  pip install -U breakeven"
            )
        sides = {name: _side_record(**values["sides"][name]) for name in SIDES}
        left_out = {int(repeat): tuple(reasons) for repeat, reasons in values["left_out"].items()}
        return check_types(TrialRecord(**{**values, "sides": sides, "left_out": left_out}))
    except OSError as error:
        raise RunFormatError(
            f"{folder} is no trial ({error.strerror}): name one made by  breakeven trial"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunFormatError(
            f"{path} is damaged or was not written by breakeven ({error}): run the trial again"
        ) from error


def _side_record(warnings: Iterable[str], **fields: Any) -> SideRecord:
    return check_types(SideRecord(**fields, warnings=tuple(warnings)))


def load_trial(folder: Path) -> TrialResult:
    """A trial on disk, finished or not, compared anew. Raises RunFormatError."""
    record = load_record(folder)
    runs = {name: load_run(folder / name) for name in SIDES}
    return _assemble(folder, record, runs)


def compare_runs(baseline: Path, candidate: Path, floor: float, confidence: float) -> TrialResult:
    """Two runs of the same prompts as if they were a trial's sides.

    Raises UsageError if their prompts differ, RunFormatError for what is no run.
    """
    runs = dict(zip(SIDES, (load_run(baseline), load_run(candidate)), strict=True))
    first, second = (runs[name].meta for name in SIDES)
    if first.workload.sha256 != second.workload.sha256:
        raise UsageError(
            f"{baseline} and {candidate} asked different prompts ({first.workload.name}, "
            f"{second.workload.name}): measure both with the same --prompts"
        )
    record = TrialRecord(
        model=first.model or "",
        workload=first.workload.name,
        started=first.created,
        floor=floor,
        alpha=1 - confidence,
        sides={name: SideRecord(_described(runs[name])) for name in SIDES},
        stop_reason="two runs compared",
        finished=True,
    )
    return _assemble(candidate, record, runs)


def _described(run: Run) -> str:
    server = run.meta.server
    engine = f"{server.engine} {server.version or ''} at ".replace("  ", " ") if server.engine else ""
    return f"{engine}{run.meta.url}, {run.path}"


def _assemble(folder: Path, record: TrialRecord, runs: Mapping[str, Run]) -> TrialResult:
    whole = {name: list(run.traces()) for name, run in runs.items()}
    traces = {name: kept(of_side, record.left_out) for name, of_side in whole.items()}
    compared = compare_traces(
        traces["baseline"],
        traces["candidate"],
        temperature=runs["baseline"].meta.sampling.temperature,
        floor=record.floor,
        alpha=record.alpha,
    )
    nothing = nothing_kept(whole.values(), record.left_out)
    comparison = _uncompared(compared, nothing)
    checks = [(name, *_self_check(run)) for name, run in runs.items()]
    baseline, candidate = (_side(name, record, runs[name], traces[name]) for name in SIDES)
    return TrialResult(
        model=record.model,
        workload=record.workload,
        baseline=baseline,
        candidate=candidate,
        comparison=comparison,
        verdict=_verdict(record, comparison, checks, nothing),
        stopped_after=comparison.repeats,
        stop_reason=record.stop_reason,
        confounders=(
            *_warnings(runs),
            *(warning for name in SIDES for warning in record.sides[name].warnings),
            *_unlike(runs),
            *left_out_note(
                record.left_out,
                {name: len(left_out_of(run.meta)) for name, run in runs.items()},
                {reason for _, ok, reasons in checks if not ok for reason in reasons},
            ),
            *confounders(traces["baseline"], traces["candidate"]),
        ),
        run_dir=folder,
        started=record.started,
        elapsed_s=record.elapsed_s,
        left_out=len(record.left_out),
    )


def _uncompared(comparison: Comparison, nothing: str | None) -> Comparison:
    """Says so where no reply was compared as all are left out."""
    if nothing is None or comparison.lossless.reason != UNANSWERED:
        return comparison
    return replace(comparison, lossless=replace(comparison.lossless, reason=nothing))


def _verdict(
    record: TrialRecord, comparison: Comparison, checks: Sequence[SelfCheck], nothing: str | None
) -> Verdict:
    if record.failed:
        why = record.failed.rstrip(".")
        return Verdict("refused", f"No verdict, as the candidate failed: {why}.")
    if nothing is not None and all(ok for _, ok, _ in checks):
        return Verdict("refused", f"No verdict: {nothing}.")
    return judge(comparison, checks)


def _self_check(run: Run) -> tuple[bool, tuple[str, ...]]:
    check = run.meta.self_check or {"ok": True, "reasons": ()}
    return bool(check["ok"]), tuple(check["reasons"])


def _side(name: str, record: TrialRecord, run: Run, traces: list[RequestTrace]) -> Side:
    real = [trace for trace in traces if trace.error is None and not is_degenerate(trace)]
    by_prompt: dict[str, list[SpecCounters]] = {}
    for trace in real:
        if trace.speculation is not None:
            by_prompt.setdefault(trace.prompt_id, []).append(trace.speculation)
    sums = {prompt: summed for prompt, parts in by_prompt.items() if (summed := total(parts)) is not None}
    is_shared = any(why.startswith(FOREIGN) for why in run.meta.warnings)
    return Side(
        name=name,
        description=record.sides[name].description,
        url=run.meta.url,
        run_dir=run.path,
        reload_s=record.sides[name].reload_s,
        reload_absent=record.sides[name].reload_absent,
        acceptance=complete(total(list(sums.values())), None if is_shared else run.meta.counters),
        acceptance_by_prompt=sums,
    )


def _warnings(runs: Mapping[str, Run]) -> list[str]:
    """Of both runs. One that only one side has names it, such as traffic of others."""
    warned = {name: runs[name].meta.warnings for name in SIDES}
    shared = [why for why in warned["baseline"] if why in warned["candidate"]]
    own = [f"{name}: {why}" for name, all_of in warned.items() for why in all_of if why not in shared]
    return [*shared, *own]


def _unlike(runs: Mapping[str, Run]) -> list[str]:
    """What differs between the sides' runs beside their speculation."""
    first, second = (runs[name].meta for name in SIDES)
    pairs = {
        "models": (first.model, second.model),
        "engines": (first.server.engine, second.server.engine),
        "engine versions": (first.server.version, second.server.version),
        **_fields(first.sampling, second.sampling),
        **_fields(first.schedule, second.schedule),
        "client machines": (first.client.cpu, second.client.cpu),
    }
    return [f"{what} differ: {a} and {b}" for what, (a, b) in pairs.items() if a != b]


def _fields(first: Any, second: Any) -> dict[str, tuple[Any, Any]]:
    """The fields of two records of one class, by name."""
    names = [each.name for each in fields(first)]
    return {f"`{name}`": (getattr(first, name), getattr(second, name)) for name in names}
