"""Exporter: what is watched, as Prometheus gauges at an address of its own. What is not known is absent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from breakeven.errors import UsageError
from breakeven.watch.state import DEFINITIONS, INTERVAL, PER_POSITION, ServerState, value

PREFIX = "breakeven_"
LABELS = ("url", "model")
MOST_NAME = 200


@dataclass(frozen=True, slots=True)
class Gauge:
    """One family."""

    name: str
    """Without PREFIX, with its unit."""
    help: str
    of: Callable[[ServerState], float | None]


def _estimate(name: str) -> Callable[[ServerState], float | None]:
    def of(state: ServerState) -> float | None:
        found = value(state, name)
        return None if found is None else found.estimate

    return of


def _low(state: ServerState) -> float | None:
    found = value(state, "speculation_speedup")
    return None if found is None else found.low


def _high(state: ServerState) -> float | None:
    found = value(state, "speculation_speedup")
    return None if found is None else found.high


_WITH_UNIT = {
    "kv_cache_usage": "kv_cache_usage_ratio",
    "mean_acceptance_length": "mean_acceptance_length_tokens",
}
"""Names that say no unit by themselves."""

GAUGES = (
    Gauge("up", "1 where the last reading gave a page, else 0", lambda state: float(state.now is not None)),
    *(
        Gauge(_WITH_UNIT.get(name, name), text, _estimate(name))
        for name, text in DEFINITIONS.items()
        if name != PER_POSITION
    ),
    Gauge("speculation_speedup_low", f"low end of breakeven_speculation_speedup: {INTERVAL}", _low),
    Gauge("speculation_speedup_high", f"high end of breakeven_speculation_speedup: {INTERVAL}", _high),
    Gauge(
        "window_seconds",
        "seconds between the first and the last reading that counts are of",
        lambda state: None if state.now is None else state.now.seconds,
    ),
    Gauge(
        "counter_resets", "how often counters fell since the watch began", lambda state: float(state.resets)
    ),
    Gauge(
        "last_reading_timestamp_seconds",
        "when the last page was read, seconds since 1970",
        lambda state: state.read_at,
    ),
)


class Gauges(Collector):
    """Asks for the states at each scrape, from a thread of its own."""

    def __init__(self, states: Callable[[], Sequence[ServerState]]) -> None:
        self._states = states

    def collect(self) -> Iterable[Metric]:
        states = self._states()
        for gauge in GAUGES:
            family = GaugeMetricFamily(PREFIX + gauge.name, gauge.help, labels=LABELS)
            for state in states:
                known = gauge.of(state)
                if known is not None:
                    family.add_metric(_labels(state), known)
            yield family
        yield _per_position(states)


def _per_position(states: Sequence[ServerState]) -> Metric:
    text = f"{DEFINITIONS[PER_POSITION]}; position 0 is the first, as engines count"
    family = GaugeMetricFamily(PREFIX + PER_POSITION, text, labels=(*LABELS, "position"))
    for state in states:
        for position, share in enumerate((state.now.per_position if state.now else None) or ()):
            family.add_metric((*_labels(state), str(position)), share)
    return family


def _labels(state: ServerState) -> tuple[str, str]:
    """A model's name is what its server says it is: what no label should hold is replaced."""
    name = (state.model or "")[:MOST_NAME]
    return state.url, "".join(character if character.isprintable() else "\ufffd" for character in name)


@contextmanager
def exporting(states: Callable[[], Sequence[ServerState]], host: str, port: int) -> Iterator[str]:
    """Serves the gauges as long as the context lasts: the URL. Port 0 takes a free one.

    Raises UsageError for an address that cannot be used.
    """
    registry = CollectorRegistry()
    registry.register(Gauges(states))
    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, ValueError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(
            f"nothing can be served at {host[:80]}:{port} ({why}): type another "
            "--prometheus-port or --prometheus-host"
        ) from error
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
