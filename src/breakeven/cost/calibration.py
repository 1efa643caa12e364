"""Calibration: the points measured of one server, and calibration.json, which keeps them.

Format history (`version` in the file; every older format still loads):
    1  0.1.0  the first; points have `visits` since concurrencies are measured twice
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import orjson

from breakeven.client.reasons import gathered
from breakeven.cost.curve import LEAST_POINTS, Curve, CurvePoint
from breakeven.cost.visits import change_between, visit_warnings
from breakeven.errors import UsageError
from breakeven.trace.files import storing, write_bytes_atomically
from breakeven.trace.meta import ServerInfo
from breakeven.trace.rows import dump_json
from breakeven.trace.typed import check_types

FILE = "calibration.json"
VERSION = 1
_MOST_MS = 1e9
"""Eleven days: what is counted from times up to it stays finite."""
_MOST_POINTS = 1000
_MOST_BYTES = 50_000_000
MOE_BOUND = (
    "for a mixture of experts the curve is an upper bound of the cost of verification: different sequences "
    "share fewer experts than neighbouring tokens of one text"
)
MAYBE_MOE = f"whether the model is a mixture of experts is not known: {MOE_BOUND}"
MEASURE_AGAIN = "type  breakeven calibrate URL"


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured of which server. `server` and `model` tell whether a run is of the same one."""

    created: str
    """ISO 8601, UTC."""
    breakeven_version: str
    url: str
    """Without credentials and query."""
    api: Literal["chat", "completions"]
    model: str | None
    server: ServerInfo
    workload: str
    max_tokens: int
    moe: bool | None
    points: tuple[CurvePoint, ...] = ()
    """By concurrency, each once."""
    complete: bool = False
    """Whether it came to its end: all concurrencies asked had their turn, or the server's slots ran out."""
    notes: tuple[str, ...] = ()
    """What went wrong while measuring, each a sentence."""
    version: int = VERSION

    def curve(self) -> Curve:
        """The fitted curve. Raises UsageError where there are too few points."""
        return Curve(self.points, self.moe)

    def fitted(self) -> Curve | None:
        """The fitted curve, or None where the points do not allow one."""
        try:
            return self.curve()
        except UsageError:
            return None

    def warnings(self) -> tuple[str, ...]:
        """All that qualifies the figures: the measuring, each point, the machine, the fit, and experts."""
        doubts = gathered((str(point.concurrency), point.reasons) for point in self.points)
        told = [one.told(f"at concurrency {', '.join(one.places)}") for one in doubts]
        curve = self.fitted()
        bound = {True: (MOE_BOUND,), None: (MAYBE_MOE,), False: ()}[self.moe]
        said = (*self.notes, *told, *visit_warnings(self.points))
        return (*said, *(curve.warnings() if curve else ()), *bound)


def save_calibration(calibration: Calibration, path: Path) -> None:
    """Replaces the file as a whole. Raises StorageError."""
    data = dump_json(calibration_to_json(calibration), orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    with storing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(path, data)


def load_calibration(path: Path) -> Calibration:
    """A calibration.json, or the folder that holds one. Raises UsageError for anything else.

    The fit in the file is for readers; it is made again from the points.
    """
    file = path / FILE if path.is_dir() else path
    if file.exists() and (not file.is_file() or file.stat().st_size > _MOST_BYTES):
        raise UsageError(f"{file} is no calibration: {MEASURE_AGAIN}")
    try:
        value = orjson.loads(file.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {file} ({error.strerror}): {MEASURE_AGAIN}") from error
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{file} is no JSON (line {error.lineno}): {MEASURE_AGAIN}") from error
    if not isinstance(value, Mapping) or type(value.get("version")) is not int or "points" not in value:
        raise UsageError(f"{file} is no calibration: {MEASURE_AGAIN}")
    if value["version"] < 1:
        raise UsageError(f"{file} has format {value['version']}, which there never was: {MEASURE_AGAIN}")
    if value["version"] > VERSION:
        raise UsageError(
            f"{file} has format {value['version']}, and this version reads up to {VERSION}: "
            "type  pip install -U breakeven"
        )
    try:
        return _calibration(value)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{file} is damaged ({error}): {MEASURE_AGAIN}") from error


def calibration_to_json(calibration: Calibration) -> dict[str, Any]:
    """What load_calibration reads, and the fit. Times in ms; `absent` has a reason beside each null."""
    curve, between = calibration.fitted(), change_between(calibration.points)
    values = {
        "version": calibration.version,
        "created": calibration.created,
        "breakeven_version": calibration.breakeven_version,
        "url": calibration.url,
        "api": calibration.api,
        "model": calibration.model,
        "server": _server_to_json(calibration.server),
        "workload": calibration.workload,
        "max_tokens": calibration.max_tokens,
        "moe": calibration.moe,
        "complete": calibration.complete,
        "points": [_point_to_json(point) for point in calibration.points],
        "between_visits": None if between is None else asdict(between),
        "fit": None if curve is None else _fit_to_json(curve),
        "notes": list(calibration.notes),
        "warnings": list(calibration.warnings()),
    }
    return {**values, "absent": {key: _WHY[key] for key in _WHY if values[key] is None}}


_WHY = {
    "model": "the server serves one without a name",
    "moe": "not said: type --moe or --dense",
    "between_visits": "no concurrency was measured twice",
    "fit": f"a curve needs {LEAST_POINTS} points, the first at concurrency 1",
}
_UNSAID = "the server does not say"
_NO_PROMPT_COUNT = "the server does not count prompt tokens"


def _server_to_json(server: ServerInfo) -> dict[str, Any]:
    values = asdict(server)
    extra = values.pop("extra")
    return {**values, **extra, "absent": {key: _UNSAID for key, value in values.items() if value is None}}


def _point_to_json(point: CurvePoint) -> dict[str, Any]:
    visits = [_times_to_json(visit) for visit in point.visits]
    return {"concurrency": point.concurrency, **_times_to_json(point), "visits": visits}


def _times_to_json(point: CurvePoint) -> dict[str, Any]:
    absent = {"context_tokens": _NO_PROMPT_COUNT} if point.context_tokens is None else {}
    return {
        "step_ms": _ms(point.step_s),
        "n": point.n,
        "low": _ms(point.low_s),
        "high": _ms(point.high_s),
        "requests": point.requests,
        "errors": point.errors,
        "context_tokens": point.context_tokens,
        "reasons": list(point.reasons),
        "absent": absent,
    }


def _ms(seconds: float) -> float:
    """To the nanosecond, as points are: so a file gives the same point again."""
    return round(seconds * 1e3, 6)


def _seconds(ms: Any) -> float:
    """Raises TypeError for what is no number, and ValueError for one out of range."""
    if isinstance(ms, bool) or not isinstance(ms, int | float):
        raise TypeError(f"{str(ms)[:60]!r} is no time in ms")
    if not ms <= _MOST_MS:
        raise ValueError(f"a time of {ms:g} ms")
    return round(ms / 1e3, 9)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{str(value)[:60]!r} is no list of sentences")
    return tuple(value)


def _fit_to_json(curve: Curve) -> dict[str, Any]:
    line = curve.line
    return {
        "model": "monotone piecewise linear",
        "monotone": not curve.falls(),
        "knots": [
            {"tokens": k.tokens, "step_ms": _ms(k.step_s), "low": _ms(k.low_s), "high": _ms(k.high_s)}
            for k in curve.knots
        ],
        "line": {
            "a_ms": line.a_s * 1e3,
            "b_ms_per_token": line.b_s * 1e3,
            "residual": line.residual,
            "worst": line.worst,
            "worst_at": line.worst_at,
        },
    }


def _calibration(value: Mapping[str, Any]) -> Calibration:
    if len(value["points"]) > _MOST_POINTS:
        raise ValueError(f"{len(value['points'])} points")
    points = tuple(_point(one) for one in value["points"])
    for a, b in pairwise(points):
        if b.concurrency <= a.concurrency:
            raise ValueError(f"concurrency {b.concurrency} after {a.concurrency}")
    return check_types(
        Calibration(
            created=value["created"],
            breakeven_version=value["breakeven_version"],
            url=value["url"],
            api=value["api"],
            model=value["model"],
            server=_server(value["server"]),
            workload=value["workload"],
            max_tokens=value["max_tokens"],
            moe=value["moe"],
            points=points,
            complete=value["complete"],
            notes=_texts(value["notes"]),
            version=value["version"],
        )
    )


def _server(value: Mapping[str, Any]) -> ServerInfo:
    known = {name: value[name] for name in ("engine", "version", "flags")}
    extra = {name: item for name, item in value.items() if name not in (*known, "absent")}
    return check_types(ServerInfo(**known, extra=extra))


def _point(value: Mapping[str, Any]) -> CurvePoint:
    """Files of before concurrencies were visited twice have no `visits`."""
    concurrency = value["concurrency"]
    visits = tuple(_times({**visit, "concurrency": concurrency}) for visit in value.get("visits", ()))
    return replace(_times(value), visits=visits)


def _times(value: Mapping[str, Any]) -> CurvePoint:
    point = check_types(
        CurvePoint(
            concurrency=value["concurrency"],
            step_s=_seconds(value["step_ms"]),
            low_s=_seconds(value["low"]),
            high_s=_seconds(value["high"]),
            n=value["n"],
            requests=value["requests"],
            errors=value["errors"],
            context_tokens=value["context_tokens"],
            reasons=_texts(value["reasons"]),
        )
    )
    if not 0 < point.low_s <= point.step_s <= point.high_s:
        raise ValueError(f"the point at concurrency {point.concurrency} has times out of order")
    if min(point.n, point.requests, point.errors, point.context_tokens or 0) < 0:
        raise ValueError(f"the point at concurrency {point.concurrency} counts less than nothing")
    return point
