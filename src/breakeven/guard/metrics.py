"""GuardMetrics: the guard's counters for Prometheus, at an address of their own.

A drafter runs in vLLM's engine or worker process. vLLM's /metrics page is made by another, the API server's,
from that one's registry; what others count it gathers only where several API servers run, through files that
PROMETHEUS_MULTIPROC_DIR names. So the guard serves its own page, from the process that counts. Nothing is
counted twice for it: at each scrape the numbers are read where the policy keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from breakeven.errors import UsageError
from breakeven.guard.vllm_steps import GuardedSteps

PREFIX = "breakeven_guard_"
COUNTED = {
    "drafted": "draft tokens given to be verified",
    "accepted": "of them, those that were accepted",
    "suppressed": "candidate tokens that were not given to be verified",
    "shadow_scored": "candidate tokens held against the tokens that came, verified or not",
    "shadow_accepted": "of them, those that would have been accepted",
}
"""Counters of the policy, in tokens."""
TOLD = ("plain", "drafted", "prefill")
"""Steps by kind: without drafts, with them, and with prompts in them, of which no cost is learned."""


class GuardMetrics(Collector):
    """Reads at each scrape, from a thread of its own."""

    def __init__(self, steps: GuardedSteps, is_on: Callable[[], bool]) -> None:
        """`is_on` says whether drafts may be made: false once it failed, or while it is killed."""
        self._steps, self._is_on = steps, is_on

    def collect(self) -> Iterable[Metric]:
        counters, told = self._steps.policy.counters, self._steps.cost.told
        for name, text in COUNTED.items():
            yield CounterMetricFamily(f"{PREFIX}{name}_tokens", text, value=getattr(counters, name))
        decisions = CounterMetricFamily(
            f"{PREFIX}decisions", "decisions, one for each request and step", labels=("reason",)
        )
        for reason, count in counters.reasons.items():
            decisions.add_metric((reason.name.lower(),), count)
        yield decisions
        steps = CounterMetricFamily(f"{PREFIX}steps", "steps seen", labels=("kind",))
        for name in TOLD:
            steps.add_metric((name,), getattr(told, name))
        yield steps
        yield GaugeMetricFamily(
            f"{PREFIX}ledger_steps", "time saved so far, in plain steps; below 0: lost", value=counters.ledger
        )
        yield GaugeMetricFamily(f"{PREFIX}on", "1 while it may draft, else 0", value=float(self._is_on()))
        yield self._cost()

    def _cost(self) -> Metric:
        family = GaugeMetricFamily(
            f"{PREFIX}step_seconds",
            "what a step of so many tokens is believed to take with the sequences of now; absent if unknown",
            labels=("sequences", "tokens"),
        )
        learned = self._steps.learned
        if learned is not None:
            for tokens in range(learned.sequences, len(learned.seconds)):
                family.add_metric((str(learned.sequences), str(tokens)), float(learned.seconds[tokens]))
        return family


def serve_metrics(metrics: GuardMetrics, host: str, port: int) -> Callable[[], None]:
    """Serves them for as long as the process lives, or until what is returned is called.

    Raises UsageError for an address that cannot be used.
    """
    registry = CollectorRegistry()
    registry.register(metrics)
    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, ValueError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(
            f"no metrics can be served at {host[:80]}:{port} ({why}): set another metrics_port or "
            "metrics_host"
        ) from error

    def close() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return close
