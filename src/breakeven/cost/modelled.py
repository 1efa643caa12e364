"""Step cost from a model's geometry and a device's data sheet alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from breakeven.cost.attention import GroupedQuery
from breakeven.cost.coverage import REUSE, REUSE_RANGE, busiest_device_experts, distinct_experts
from breakeven.cost.geometry import Geometry
from breakeven.cost.hardware import Hardware, Link
from breakeven.cost.step import PLAIN_STEP, Source, Step
from breakeven.errors import UsageError
from breakeven.interval import Interval

PARTS = ("weights", "experts", "kv", "arithmetic", "all_reduce", "overhead")
"""Of a modelled step, in the order of a waterfall."""
LOW, HIGH = 0.65, 2.4
"""Bounds of the truth as multiples of the model: see the plain steps of benchmarks/published.py."""
PREDICTION_ERROR = 0.064
"""Of a ratio of two steps at least: the worst error of a speedup that benchmarks/published.py predicts with a
measured plain step and a fitted drafter."""
INCREMENT_ERROR = 0.5
"""Relative, of what a step costs beyond a known one. Assumed, for want of a measurement: other kernels reach
other efficiencies, and some arithmetic hides behind reading."""
_DIRECT_LATENCY_S, _PCIE_LATENCY_S = 8e-6, 30e-6
"""Of one AllReduce of a few kilobytes. NVLink: the slowest curve in data/hardware.json; other links between
devices are taken to be like it. PCIe: NCCL takes 26 to 32 µs on a tuned server, 51 µs on one that is not."""
_NOT_MODELLED = (
    "not modelled: data and pipeline parallelism, arithmetic faster than BF16, and whatever an engine does "
    "otherwise once speculation is on (other attention kernels, no CUDA graphs, no overlapped scheduling)"
)
_LINK_EFFICIENCY = 0.5
"""Of the link's rate for messages of megabytes: those curves reach 0.35 (8 devices on PCIe) to 0.65."""


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Shares of a data sheet's peak that an engine reaches, and its cost per step.

    From a published regression of measured steps, Llama-3.1-8B in BF16 on one H100 with vLLM 0.10.1 (arXiv
    2601.11580): 5.886 ms + 1.207 ms per step, 21.0 µs per token in the batch, 39.3 ns per cached token.
    """

    weights: float = 0.80
    """Of the bandwidth, reading weights. The regression's fixed 7.09 ms hold 15.0 GB and all else that is
    flat; so divided, plain steps of dense models from 1.7B to 32B come out within 7 %."""
    kv: float = 1.0
    """Of the bandwidth, reading the cache: 131,072 bytes in 39.3 ns."""
    arithmetic: float = 0.72
    """Of the BF16 operations per second: 15.0 GFLOP in 21.0 µs."""
    overhead_s: float = 1.49e-3
    """Scheduling, launches and sampling: the rest of the fixed 7.09 ms."""


def at_least_as_wide(ratio: Interval) -> Interval:
    """With PREDICTION_ERROR on both sides; but a step of more tokens takes no less time than one of fewer."""
    wide = 1 + PREDICTION_ERROR
    low, high = ratio.estimate / wide, ratio.estimate * wide
    if ratio.estimate >= 1:
        low = max(low, 1.0)
    if ratio.estimate <= 1:
        high = min(high, 1.0)
    return Interval(ratio.estimate, min(ratio.low, low), max(ratio.high, high))


def grown(ratio: float, factor: float) -> float:
    """A ratio of two steps if the increment from the smaller to the larger is `factor` times as large."""
    return 1 + (ratio - 1) * factor if ratio >= 1 else 1 / grown(1 / ratio, factor)


@dataclass(frozen=True)
class Modelled:
    """T = weights + experts + KV + arithmetic + AllReduce + overhead.

    The parts are summed, not overlapped: the regression behind Efficiency is a sum up to batch 128, as a step
    runs kernel after kernel and each part rules others. Where a step has so many tokens that arithmetic takes
    longer than the reading of weights, both happen in the same kernels, and the sum is high by at most the
    smaller of the two.

    Limits: arithmetic is counted at the BF16 peak whatever the weights are, which is right for BF16 and for
    formats of weights alone, and high for FP8 and FP4 arithmetic. Data parallel attention and its all-to-all
    exchange are not modelled. Raises UsageError where tp or ep is impossible, or the data sheet lacks a value
    that is needed.
    """

    geometry: Geometry
    hardware: Hardware
    tp: int = 1
    """Devices over which tensor parallelism spreads every matrix and the KV heads."""
    ep: int = 1
    """Of them, groups among which whole experts are spread; 1 slices every expert over all devices."""
    efficiency: Efficiency = Efficiency()
    reuse: float = REUSE
    """Of experts, among the tokens of one sequence."""
    reuse_range: tuple[float, float] = REUSE_RANGE
    """Least and most of it that is to be expected, as far as `reuse` lies between."""
    source: Source = field(default="modelled", init=False)

    def __post_init__(self) -> None:
        if self.tp < 1 or self.ep < 1 or self.tp % self.ep:
            raise UsageError(f"tp {self.tp} and ep {self.ep}: ep must divide tp, and both be at least 1")
        self.seconds(PLAIN_STEP)

    def seconds(self, step: Step) -> Interval:
        """With the wide error of a model that has seen no measurement: LOW to HIGH times the sum."""
        total = self.total_s(step)
        return Interval(total, LOW * total, HIGH * total)

    def relative(self, step: Step, base: Step) -> Interval:
        """With the smaller step known within LOW to HIGH times the model, and what the larger takes beyond it
        within 1 ± INCREMENT_ERROR, at either end of the range of reuse; PREDICTION_ERROR at least."""
        ratio = self.total_s(step) / self.total_s(base)
        ratios = [model.total_s(step) / model.total_s(base) for model in self.reuse_ends]
        factors = (1 - INCREMENT_ERROR) / HIGH, (1 + INCREMENT_ERROR) / LOW
        ends = [ratio, *(grown(end, factor) for end in ratios for factor in factors)]
        return at_least_as_wide(Interval(ratio, min(ends), max(ends)))

    def total_s(self, step: Step) -> float:
        """The sum of the parts."""
        return sum(self.parts(step).values())

    def parts(self, step: Step) -> dict[str, float]:
        """Seconds of each of PARTS."""
        return {
            "weights": self._read_s(self.geometry.bytes_read_per_step(0), self.efficiency.weights),
            "experts": self._experts_s(step),
            "kv": self._kv_s(step),
            "arithmetic": self._arithmetic_s(step),
            "all_reduce": self._all_reduce_s(step),
            "overhead": self.efficiency.overhead_s,
        }

    def warnings(self, step: Step) -> tuple[str, ...]:
        """What is not modelled, and which inputs are doubtful."""
        said = (_NOT_MODELLED, self._unverified(), self._guessed_link(), self._arithmetic_bound(step))
        return tuple(text for text in said if text)

    @cached_property
    def reuse_ends(self) -> tuple[Modelled, ...]:
        """The same with the most and with the least reuse of experts that is to be expected; itself where it
        has none."""
        if self.geometry.experts is None:
            return (self,)
        least, most = self.reuse_range
        return replace(self, reuse=max(most, self.reuse)), replace(self, reuse=min(least, self.reuse))

    def _unverified(self) -> str | None:
        needed = {"bandwidth_gb_per_s", "bf16_tflops"} | ({"link"} if self.tp > 1 else set())
        names = [name for name in self.hardware.unverified() if name in needed]
        return f"of {self.hardware.name}, no source confirms {', '.join(names)}" if names else None

    def _guessed_link(self) -> str | None:
        link = self.hardware.link
        if self.tp == 1 or link is None or self.tp in link.all_reduce_us:
            return None
        return (
            f"AllReduce among {self.tp} × {self.hardware.name} was not measured: it is taken from the rate "
            f"of {link.kind} and the latency of links like it"
        )

    def _arithmetic_bound(self, step: Step) -> str | None:
        parts = self.parts(step)
        reading_s = parts["weights"] + parts["experts"]
        if parts["arithmetic"] <= reading_s:
            return None
        return (
            f"{step.batch_tokens:g} tokens in a step take longer to compute than the weights to read; both "
            f"are added up, which is too much by at most {reading_s * 1e3:.3g} ms"
        )

    def _read_s(self, n_bytes: float, efficiency: float) -> float:
        """Of bytes spread evenly over all devices, each reading its own."""
        return n_bytes / (self.tp * self.hardware.bandwidth_gb_per_s * 1e9 * efficiency)

    def _experts_s(self, step: Step) -> float:
        """Of the device with most to read, as all wait for it."""
        experts = self.geometry.experts
        if experts is None:
            return 0.0
        distinct = distinct_experts(experts, step.tokens, step.sequences, self.reuse)
        as_if_even = min(self.ep * busiest_device_experts(experts, distinct, self.ep), experts.count)
        routed = self.geometry.bytes_read_per_step(as_if_even) - self.geometry.bytes_read_per_step(0)
        return self._read_s(routed, self.efficiency.weights)

    def _kv_s(self, step: Step) -> float:
        """The cache of each sequence once, however many tokens it verifies."""
        n_bytes = step.sequences * self.geometry.kv_bytes(step.context_tokens)
        return self._read_s(n_bytes * self.tp / self._kv_shards(), self.efficiency.kv)

    def _kv_shards(self) -> int:
        """Devices that share the cache out: a KV head is not cut, and a latent serves all heads."""
        attention = self.geometry.attention
        return min(self.tp, attention.kv_heads) if isinstance(attention, GroupedQuery) else 1

    def _arithmetic_s(self, step: Step) -> float:
        flops = step.batch_tokens * self.geometry.flops_per_token(step.context_tokens)
        peak = self.hardware.bf16_tflops
        if peak is None:
            raise UsageError(
                f"no BF16 rate is known of {self.hardware.name}, so its steps cannot be modelled: measure "
                "them with  breakeven calibrate URL  and give its file as --calibration, or give as "
                "--hardware a device with a rate, such as h100-sxm"
            )
        return flops / (self.tp * peak * 1e12 * self.efficiency.arithmetic)

    def _all_reduce_s(self, step: Step) -> float:
        """All calls of a step, by the measured curve, else by latency and rate."""
        if self.tp == 1:
            return 0.0
        link, n_bytes = self.hardware.link, self.geometry.all_reduce_bytes(step.batch_tokens)
        if link is None:
            raise UsageError(f"no link between devices is known of {self.hardware.name}: give tp 1")
        one = link.all_reduce_s(n_bytes, self.tp)
        if one is None:
            one = self._unmeasured_all_reduce_s(link, n_bytes)
        return self.geometry.all_reduce_calls() * one

    def _unmeasured_all_reduce_s(self, link: Link, n_bytes: float) -> float:
        """Latency + 2 (n − 1)/n · bytes / rate: what a ring sends (Patarasuk and Yuan 2009)."""
        if link.gb_per_s is None:
            raise UsageError(f"the rate of {link.kind} is not known: give tp 1, or a device with one")
        latency = _PCIE_LATENCY_S if link.kind.startswith("PCIe") else _DIRECT_LATENCY_S
        sent = 2 * (self.tp - 1) / self.tp * n_bytes
        return latency + sent / (link.gb_per_s * 1e9 * _LINK_EFFICIENCY)
