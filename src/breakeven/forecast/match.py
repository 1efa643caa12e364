"""Match: whether a run and a calibration are of the same server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from breakeven.cost.calibration import Calibration
from breakeven.errors import UsageError
from breakeven.trace.meta import RunMeta

NO_MATTER = frozenset(
    {
        *("host", "port", "url", "uds", "api_key", "alias", "served_model_name", "ui"),
        *("parallel", "np", "n_parallel", "max_num_seqs", "max_running_requests", "max_model_len"),
        *("ctx_size", "n_ctx", "context_length", "metrics", "enable_metrics", "endpoint_metrics"),
    }
)
"""Flags that leave a step's time alone: where the server listens, how many sequences it has room for and of
which length (`max_model_len` is a slot's share of the context for llama.cpp, so it goes with the slots)."""
NO_MATTER_WITHIN = ("log", "verbos", "spec_", "specul", "draft")
"""Nor does a flag with one of these in its name. A calibration is of a baseline, which a run that speculated
may still belong to: its own speculation is not what is forecast."""
_FILE = ".gguf"


def check_same_server(meta: RunMeta, calibration: Calibration) -> tuple[str, ...]:
    """What one of the two does not say, and so was not compared, in a sentence; empty where all was.

    Raises UsageError, which names the field and both values, where engine, version, model or a flag that
    changes what a step takes differ. The addresses may: a server is often restarted elsewhere.
    """
    mine, theirs = meta.server, calibration.server
    fields: dict[str, tuple[Any, Any]] = {
        "engine": (mine.engine, theirs.engine),
        "version": (mine.version, theirs.version),
        "model": (meta.model, calibration.model),
        **_flags(mine.flags or {}, theirs.flags or {}),
    }
    unsaid = []
    for name, (of_run, of_calibration) in fields.items():
        if of_run is None or of_calibration is None:
            unsaid.append(name)
        elif not _same(name, of_run, of_calibration):
            raise _other_server(name, of_run, of_calibration)
    if not unsaid:
        return ()
    return (
        f"whether the calibration is of the run's server was not compared in {', '.join(unsaid)}: one of the "
        "two does not say",
    )


def _flags(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Of both sides, by name, those that matter."""
    both = [{_plain(name): value for name, value in flags.items()} for flags in (mine, theirs)]
    names = dict.fromkeys((*both[0], *both[1]))
    return {f"flag {name}": (both[0].get(name), both[1].get(name)) for name in names if _matters(name)}


def _plain(flag: str) -> str:
    """`--max-num-seqs` as `max_num_seqs`."""
    return flag.lstrip("-").replace("-", "_").lower()


def _matters(flag: str) -> bool:
    return flag not in NO_MATTER and not any(word in flag for word in NO_MATTER_WITHIN)


def _same(name: str, of_run: Any, of_calibration: Any) -> bool:
    if name != "model":
        return bool(of_run == of_calibration)
    return of_run == of_calibration or _is_same_model(PurePath(of_run), PurePath(of_calibration))


def _is_same_model(one: PurePath, other: PurePath) -> bool:
    """Whether both may name the same weights: a GGUF file's folder does not tell, nor its suffix, nor does an
    organisation that only one of the two names."""
    names = {path.stem if path.suffix.lower() == _FILE else path.name for path in (one, other)}
    organisations = {path.parent for path in (one, other) if path.suffix.lower() != _FILE}
    return len(names) == 1 and len(organisations - {PurePath()}) <= 1


def _other_server(name: str, of_run: Any, of_calibration: Any) -> UsageError:
    return UsageError(
        f"the calibration is of another server than the run: {name} is {of_calibration!r} there and "
        f"{of_run!r} here; type  breakeven calibrate URL  for the run's own server, or in place of "
        "--calibration  --model X --hardware Y"
    )
