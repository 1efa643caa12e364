"""RequestTrace ↔ row: a flat dict of JSON values, the same in the journal (one JSON line) and in parquet.

Text is stored as UTF-8. A lone surrogate has no UTF-8 form and becomes U+FFFD, the replacement character;
everything else comes back exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import orjson

from breakeven.acceptance.counters import SpecCounters
from breakeven.trace.records import Event, Kind, RequestError, RequestTrace

_KINDS = tuple(Kind)
_PLAIN = (
    "id",
    "prompt_id",
    "category",
    "repeat",
    "block",
    "max_tokens",
    "scheduled_ns",
    "connect_ns",
    "sent_ns",
    "end_ns",
    "text",
    "reasoning",
    "tool_calls",
    "finish_reason",
)
_HUGE = 10**300
"""Still a float."""
_DEEPEST = 200
"""Levels of lists and objects that are kept: orjson writes up to 254, and nothing a server says needs ten."""
_SPECULATION = tuple(field.name for field in fields(SpecCounters) if field.name != "emitted_tokens")
"""What every row holds; older ones lack the other."""


def to_row(trace: RequestTrace) -> dict[str, Any]:
    """The row of a trace; `usage` and `server_timings` are JSON text, events are one list per field."""
    row: dict[str, Any] = {name: getattr(trace, name) for name in _PLAIN}
    columns = zip(*trace.events, strict=True) if trace.events else ((), (), (), ())
    for name, column in zip(Event._fields, columns, strict=True):
        row[f"event_{name}"] = list(column)
    row["usage"] = _dump_mapping(trace.usage)
    row["server_timings"] = _dump_mapping(trace.server_timings)
    row["prompt_token_ids"] = trace.prompt_token_ids
    row["output_token_ids"] = trace.output_token_ids
    row["speculation"] = None if trace.speculation is None else asdict(trace.speculation)
    row["error"] = None if trace.error is None else asdict(trace.error)
    row["warnings"] = trace.warnings
    return row


def from_row(row: Mapping[str, Any]) -> RequestTrace:
    """The trace of a row. Raises KeyError, TypeError, ValueError or IndexError for a row that is none."""
    return RequestTrace(
        **{name: row[name] for name in _PLAIN},
        events=tuple(_events(row)),
        usage=_load_mapping(row["usage"]),
        server_timings=_load_mapping(row["server_timings"]),
        prompt_token_ids=_maybe_tuple(row["prompt_token_ids"]),
        output_token_ids=_maybe_tuple(row["output_token_ids"]),
        speculation=_speculation(row["speculation"]),
        error=None if row["error"] is None else RequestError(**row["error"]),
        warnings=tuple(row["warnings"]),
    )


def dump_json(value: Any, option: int = 0) -> bytes:
    """JSON bytes, on one line unless orjson's `option` has it otherwise; lone surrogates become U+FFFD,
    integers beyond 64 bits floats, and what is nested beyond all measure null.
    """
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        return orjson.dumps(_mend(value), option=option)


def _mend(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, int) and value.bit_length() > 63:
        return float(min(max(value, -_HUGE), _HUGE))
    if isinstance(value, Mapping | list | tuple) and depth == _DEEPEST:
        return None
    if isinstance(value, Mapping):
        return {_mend(key): _mend(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mend(item, depth + 1) for item in value]
    return value


def _events(row: Mapping[str, Any]) -> list[Event]:
    columns = [row[f"event_{name}"] for name in Event._fields]
    return [
        Event(read_ns, read_id, _KINDS[kind], n_tokens)
        for read_ns, read_id, kind, n_tokens in zip(*columns, strict=True)
    ]


def _speculation(value: Mapping[str, Any] | None) -> SpecCounters | None:
    if value is None:
        return None
    known = {name: value[name] for name in _SPECULATION}
    positions = _maybe_tuple(known["accepted_per_position"])
    emitted = value.get("emitted_tokens")
    return SpecCounters(**{**known, "accepted_per_position": positions, "emitted_tokens": emitted})


def _maybe_tuple(values: list[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)


def _dump_mapping(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else dump_json(value).decode()


def _load_mapping(text: str | None) -> Mapping[str, Any] | None:
    if text is None:
        return None
    mapping: Mapping[str, Any] = orjson.loads(text)
    return mapping
