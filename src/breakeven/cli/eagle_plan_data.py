"""Options of `breakeven eagle plan` to its data and its machine, and what was taken for lack of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli.cost_options import BOTH_WAYS
from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.eagle.plan.asked import Data, Machine
    from breakeven.eagle.plan.assumed import Assumed
    from breakeven.eagle.plan.recorded import Lengths
    from breakeven.interval import Interval

UNITS = {"": 1, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15, "GIB": 2**30, "TIB": 2**40}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([A-Za-z]{0,3})")


class Size(click.ParamType):  # type: ignore[type-arg]
    """Bytes: 20TB, 500 GB, 2TiB. Raises UsageError for anything else."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = _SIZE.fullmatch(value.strip())
        factor = None if found is None else UNITS.get(found[2].upper())
        if found is None or factor is None or float(found[1]) * factor < 1:
            raise UsageError(f"{value[:40]!r} is no size: type --disk 500GB or --disk 20TB")
        return round(float(found[1]) * factor)


def asked_data(values: Mapping[str, Any], lengths: Lengths | None) -> tuple[Data, list[Assumed]]:
    """As asked or recorded; of the rest what assumed.py has."""
    from breakeven.eagle.plan.asked import Data
    from breakeven.eagle.plan.assumed import EPOCHS, SAMPLES
    from breakeven.eagle.plan.ranges import exactly

    tokens, replies, assumed = _tokens(values, lengths)
    if values["samples"] is None:
        assumed.append(SAMPLES)
    if values["epochs"] is None:
        assumed.append(EPOCHS)
    data = Data(
        samples=values["samples"] or round(SAMPLES.value.estimate),
        tokens_per_sample=tokens,
        reply_tokens_per_sample=exactly(0.0) if values["keep_replies"] else replies,
        epochs=EPOCHS.value if values["epochs"] is None else exactly(values["epochs"]),
        steps=values["steps"],
        draft_vocabulary=values["draft_vocabulary"],
    )
    return data, assumed


def _tokens(values: Mapping[str, Any], lengths: Lengths | None) -> tuple[Interval, Interval, list[Assumed]]:
    """Of a sample, and those of its reply."""
    from breakeven.eagle.plan.assumed import REPLY_SHARE, TOKENS_PER_SAMPLE
    from breakeven.eagle.plan.ranges import exactly, product

    given, assumed = values["tokens_per_sample"], []
    if given is not None:
        tokens = exactly(given)
    elif lengths is not None:
        tokens = exactly(lengths.prompt + lengths.reply)
    else:
        tokens, assumed = TOKENS_PER_SAMPLE.value, [TOKENS_PER_SAMPLE]
    if lengths is not None:
        share = exactly(lengths.reply / (lengths.prompt + lengths.reply))
        return tokens, product(tokens, share), assumed
    unless_kept = [] if values["keep_replies"] else [REPLY_SHARE]
    return tokens, product(tokens, REPLY_SHARE.value), [*assumed, *unless_kept]


def machine_of(values: Mapping[str, Any], measured: int | None) -> tuple[Machine, list[Assumed]]:
    """`measured` is the highest concurrency of a calibration. Raises UsageError where no device is named."""
    from breakeven.cost.hardware import hardware
    from breakeven.eagle.plan.asked import Machine
    from breakeven.eagle.plan.assumed import Assumed
    from breakeven.eagle.plan.ranges import exactly

    name = values["train_hardware"] or values["hardware"]
    if name is None:
        raise UsageError(_NO_DEVICE if values["calibration"] is not None else BOTH_WAYS)
    server = values["server_gpus"] or values["tp"] or 1
    unsaid = values["calibration"] is not None and values["server_gpus"] is None
    said = Assumed("GPUs of the calibrated server", exactly(server), "", "not said: --server-gpus N")
    wanted = values["generation_concurrency"]
    in_flight = wanted if measured is None else min(wanted, measured)
    machine = Machine(server, in_flight, hardware(name), values["gpus"] or server)
    return machine, [said] if unsaid else []


_NO_DEVICE = (
    "--calibration says nothing of the device to train on: type  --train-hardware Y  and  --gpus N  too, "
    "such as  --train-hardware h200-sxm --gpus 8"
)
