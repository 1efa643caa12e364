"""GPU hours: generating the replies, the target's pass for the states, and training."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.cost.hardware import Hardware
from breakeven.cost.step import Step
from breakeven.eagle.plan.asked import Asked
from breakeven.eagle.plan.assumed import STATES_UTILISATION, TRAINING_UTILISATION
from breakeven.eagle.plan.head import HeadSize
from breakeven.eagle.plan.ranges import exactly, product, quotient, total
from breakeven.errors import UsageError
from breakeven.interval import Interval

_SECONDS = 3600
_TERA = 1e12


@dataclass(frozen=True, slots=True)
class Hours:
    """GPU hours, each of the devices that do it."""

    generation: Interval
    """On the server."""
    states_once: Interval
    """One pass over all samples: offline. Online it is made again in every epoch."""
    states_every_epoch: Interval
    training: Interval
    replies_per_s: Interval
    """Output tokens per second of the server while it generates."""

    @property
    def offline(self) -> Interval:
        """All three, the states made once."""
        return total(self.generation, self.states_once, self.training)

    @property
    def online(self) -> Interval:
        """All three, the states made in every epoch."""
        return total(self.generation, self.states_every_epoch, self.training)


def hours_of(asked: Asked, head: HeadSize) -> Hours:
    """Raises UsageError where no BF16 rate is known of the device."""
    data, peak = asked.data, _peak(asked.machine.gpu)
    tokens = product(exactly(data.samples), data.tokens_per_sample)
    states = _arithmetic(
        product(tokens, exactly(asked.geometry.flops_per_token())),
        peak,
        STATES_UTILISATION.value,
    )
    work = product(tokens, data.epochs, exactly(head.flops_per_token(data.steps)))
    rate = _rate(asked)
    return Hours(
        generation=_generation(asked, rate),
        states_once=states,
        states_every_epoch=product(states, data.epochs),
        training=_arithmetic(work, peak, TRAINING_UTILISATION.value),
        replies_per_s=rate,
    )


def _arithmetic(flops: Interval, peak: float, utilisation: Interval) -> Interval:
    """operations / (peak · share of it that is reached)."""
    return quotient(flops, product(exactly(peak * _SECONDS), utilisation))


def _rate(asked: Asked) -> Interval:
    """Requests in flight / a step of all of them, half of a sample in the cache of each."""
    concurrency = asked.machine.generation_concurrency
    step = asked.cost.seconds(Step(1, concurrency, asked.data.tokens_per_sample.estimate / 2))
    return quotient(exactly(concurrency), step)


def _generation(asked: Asked, rate: Interval) -> Interval:
    replies = product(exactly(asked.data.samples), asked.data.reply_tokens_per_sample)
    return product(quotient(replies, rate), exactly(asked.machine.server_gpus / _SECONDS))


def _peak(device: Hardware) -> float:
    if device.bf16_tflops is None:
        raise UsageError(
            f"no BF16 rate is known of {device.name}, so the hours on it cannot be told: type "
            "--train-hardware Y  with a device that has one, such as h200-sxm"
        )
    return device.bf16_tflops * _TERA
