"""What a vLLM says of itself at its start: its version, its limits, and whether a calibration is of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakeven.cost.curve import Curve
from breakeven.errors import UsageError
from breakeven.guard.vllm_steps import Limits

if TYPE_CHECKING:
    from breakeven.cost.calibration import Calibration

FIRST, LAST = (0, 30), (0, 33)
"""Versions whose custom_class drafters are called as GuardedNgram is."""
_NUMBERS = re.compile(r"(\d+)\.(\d+)")


def check_version(version: str, any_version: bool) -> None:
    """Raises UsageError for a vLLM that is not known, unless any will do."""
    found = _NUMBERS.match(version)
    if any_version or (found and FIRST <= (int(found[1]), int(found[2])) <= LAST):
        return
    raise UsageError(
        f"breakeven's guard is for vLLM {FIRST[0]}.{FIRST[1]} to {LAST[0]}.{LAST[1]}, and this is {version}: "
        "install one of them, or set any_version to true in BREAKEVEN_GUARD_CONFIG (the text stays the "
        "model's; where a call fails the guard turns itself off)"
    )


def check_batches(vllm_config: Any) -> None:
    """Raises UsageError where vLLM has several batches in turn: each call would be of other requests."""
    stages = int(vllm_config.parallel_config.pipeline_parallel_size)
    if stages > 1:
        raise UsageError(
            f"breakeven's guard follows one batch, and with pipeline_parallel_size {stages} vLLM has as many "
            "in turn: leave out --speculative-config, or --pipeline-parallel-size"
        )


def limits_of(vllm_config: Any) -> Limits:
    """Of a VllmConfig."""
    scheduler = vllm_config.scheduler_config
    return Limits(
        int(vllm_config.speculative_config.num_speculative_tokens),
        int(vllm_config.model_config.max_model_len),
        int(scheduler.max_num_scheduled_tokens or scheduler.max_num_batched_tokens),
    )


def engine_of(vllm_config: Any) -> int:
    """Which of the engines of data parallelism this is, from 0 on; data_parallel_rank is 0 in each of them
    unless the model has experts."""
    return int(vllm_config.parallel_config.data_parallel_index)


def curve_of(path: Path, vllm_config: Any, version: str) -> Curve:
    """The curve of a calibration of this server. Raises UsageError where it is another's, or none."""
    from breakeven.cost.calibration import load_calibration

    calibration = load_calibration(path)
    check_same(calibration, vllm_config, version)
    return calibration.curve()


def check_same(calibration: Calibration, vllm_config: Any, version: str) -> None:
    """Raises UsageError that names the first field in which the calibrated server is another."""
    model, server = vllm_config.model_config, calibration.server
    names = _texts(model.served_model_name) | {str(model.model)}
    compared = (
        ("engine", server.engine, {"vllm"}),
        ("version", server.version, {version}),
        ("model", calibration.model, names),
        ("max_model_len", (server.flags or {}).get("max_model_len"), {int(model.max_model_len)}),
    )
    for field, measured, here in compared:
        if measured is not None and measured not in here:
            raise UsageError(
                f"the calibration is of another server: {field} {measured} there, "
                f"{' or '.join(sorted(map(str, here)))} here: type  breakeven calibrate URL  for this one, "
                "or leave calibration out of BREAKEVEN_GUARD_CONFIG, and its costs are learned"
            )


def _texts(value: Any) -> set[str]:
    """vLLM has one name, or a list of them."""
    return {str(one) for one in value} if isinstance(value, list | tuple) else {str(value)}
