"""RunMeta: run.json, what was asked of whom, how, and from where."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import orjson

from breakeven.acceptance.counters import SpecCounters, possible
from breakeven.acceptance.load import Load
from breakeven.errors import RunFormatError
from breakeven.secrets import without_secrets
from breakeven.trace.disk import FORMAT_VERSION
from breakeven.trace.prompts import prompts_digest
from breakeven.trace.provenance import ClientProvenance, collect_client, without_credentials
from breakeven.trace.rows import dump_json
from breakeven.trace.typed import check_types, fits
from breakeven.workload.prompts import Sampling, Workload

Status = Literal["running", "complete", "interrupted", "void"]


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The measured side, as far as it says. None is unknown. Secrets among the flags are never kept."""

    engine: str | None = None
    version: str | None = None
    flags: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.flags is not None:
            object.__setattr__(self, "flags", without_secrets(self.flags))


@dataclass(frozen=True, slots=True)
class Schedule:
    """How requests were sent: `closed` at a concurrency, or `open` at a rate."""

    mode: Literal["closed", "open"]
    concurrency: int | None = None
    rate_per_s: float | None = None
    poisson: bool = False
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkloadInfo:
    """Which prompts were asked; they themselves are in prompts.jsonl."""

    name: str
    prompts: int
    sha256: str
    """Of prompts.jsonl."""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunMeta:
    """run.json. It has no place for a key: the URL is kept without credentials and query."""

    run_id: str
    created: str
    """ISO 8601, UTC."""
    breakeven_version: str
    kind: Literal["measure", "trial-side"]
    url: str
    api: Literal["chat", "completions"]
    model: str | None
    server: ServerInfo
    client: ClientProvenance
    schedule: Schedule
    sampling: Sampling
    workload: WorkloadInfo
    repeats: int
    warmup_requests: int
    status: Status = "running"
    elapsed_s: float | None = None
    """Wall time of the measured part; None until the end."""
    self_check: Mapping[str, Any] | None = None
    """None until the end."""
    counters: SpecCounters | None = None
    """What the server's /metrics page counted while this asked, if it has one; others' traffic is in it."""
    load: Load | None = None
    """What else that page counted in the same time, and its gauges at the end."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    format_version: int = FORMAT_VERSION
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields that this version does not know, written back as they were."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", without_credentials(self.url))


def new_meta(
    *,
    kind: Literal["measure", "trial-side"],
    url: str,
    api: Literal["chat", "completions"],
    model: str | None,
    server: ServerInfo,
    schedule: Schedule,
    sampling: Sampling,
    workload: Workload,
    repeats: int,
    warmup_requests: int,
    event_loop: str,
) -> RunMeta:
    """The meta of a run that starts now, on this machine."""
    return RunMeta(
        run_id=uuid.uuid4().hex,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        breakeven_version=version("breakeven"),
        kind=kind,
        url=url,
        api=api,
        model=model,
        server=server,
        client=collect_client(event_loop),
        schedule=schedule,
        sampling=sampling,
        workload=workload_info(workload),
        repeats=repeats,
        warmup_requests=warmup_requests,
        warnings=workload.warnings,
    )


def workload_info(workload: Workload) -> WorkloadInfo:
    """The name, number and checksum of a workload's prompts."""
    return WorkloadInfo(workload.name, len(workload.prompts), prompts_digest(workload.prompts))


def dump_meta(meta: RunMeta) -> bytes:
    """run.json, indented; unknown fields beside the known ones."""
    return dump_json(meta_as_dict(meta), orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def load_meta(data: bytes, path: Path) -> RunMeta:
    """The meta in run.json's bytes. Raises RunFormatError, which names `path`."""
    try:
        record = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise RunFormatError(
            f"{path} is damaged (line {error.lineno}: {error.msg}): measure again"
        ) from error
    if not isinstance(record, dict) or not isinstance(record.get("format_version"), int):
        raise RunFormatError(
            f"{path} was not written by breakeven: name a folder made by  breakeven measure --out"
        )
    if record["format_version"] > FORMAT_VERSION:
        raise RunFormatError(
            f"{path} has format {record['format_version']}, and this version reads up to {FORMAT_VERSION}: "
            "type  pip install -U breakeven"
        )
    try:
        return _meta(record)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise RunFormatError(
            f"{path} is damaged or was not written by breakeven ({error}): measure again"
        ) from error


def _meta(record: dict[str, Any]) -> RunMeta:
    sampling = {f.name: record["sampling"][f.name] for f in fields(Sampling) if f.name in record["sampling"]}
    nested = {
        "server": _record(ServerInfo, record["server"]),
        "client": _record(ClientProvenance, record["client"]),
        "schedule": _record(Schedule, record["schedule"]),
        "workload": _record(WorkloadInfo, record["workload"]),
        "sampling": check_types(Sampling(**sampling)),
        "counters": _plain(SpecCounters, record.get("counters")),
        "load": _plain(Load, record.get("load")),
    }
    meta: RunMeta = _record(RunMeta, {**record, **nested})
    if meta.self_check is not None:
        _check_self_check(meta.self_check)
    return meta


def _check_self_check(check: Mapping[str, Any]) -> None:
    """Of its fields, those that a verdict or a report reads. Raises TypeError or KeyError."""
    if not (
        type(check["ok"]) is bool
        and fits(_freeze(check["reasons"]), tuple[str, ...])
        and fits(check.get("event_loop_lag_ms") or {}, Mapping[str, float | None])
    ):
        raise TypeError("self_check is none")


def _plain(kind: type[Any], value: Mapping[str, Any] | None) -> Any:
    """A record without `extra`: unknown fields are dropped. Raises TypeError."""
    if value is None:
        return None
    known = {f.name: _freeze(value[f.name]) for f in fields(kind) if f.name in value}
    record = check_types(kind(**known))
    _check_counts(record)
    return record


def _check_counts(record: Any) -> None:
    """Raises ValueError for a number below 0, and for counts that contradict themselves."""
    for f in fields(record):
        value = getattr(record, f.name)
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(number, int | float) and number < 0 for number in numbers):
            raise ValueError(f"{f.name} is below 0")
    if isinstance(record, SpecCounters) and possible(record) is None:
        raise ValueError("its counts contradict themselves: more tokens were accepted than drafted")


def _record(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """A record from JSON values; lists become tuples, unknown fields go to `extra`. Raises TypeError."""
    names = {f.name for f in fields(kind)} - {"extra"}
    known = {name: _freeze(value) for name, value in values.items() if name in names}
    extra = {name: value for name, value in values.items() if name not in names}
    return check_types(kind(**known, extra=extra))


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def meta_as_dict(meta: RunMeta) -> dict[str, Any]:
    """What run.json holds: nested dicts of JSON values."""
    record = asdict(meta)
    for part in (record, *(record[name] for name in ("server", "client", "schedule", "workload"))):
        part.update(part.pop("extra"))
    return record
