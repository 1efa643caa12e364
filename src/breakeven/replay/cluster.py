"""A replay's workers on a Ray cluster: batches go out, counts come back, in order."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from breakeven.errors import EndpointError, MissingExtra
from breakeven.replay.workers import AHEAD, A, B, in_order

PROBE_S = 5.0
JOIN_S = 30.0
JOIN = "import ray, sys; ray.init(sys.argv[1])"
"""Joined by another process first: where no cluster is, Ray tries for minutes, then ends the process."""
QUIET: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.DEVNULL,
    "stderr": subprocess.DEVNULL,
}


class Cluster:
    """A Ray cluster, joined for the time of one `map`.

    `address` is what ray.init takes: ray://head:10001, head:6379, auto, or local for one on this machine.
    The workers need breakeven[replay] installed, and the module of a drafter of one's own.
    """

    def __init__(self, address: str) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingExtra("ray", "ray") from error
        self.address = address
        self._ray: Any = ray

    def map(self, work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """Raises EndpointError where the cluster cannot be joined or a worker is lost for good."""
        ray = self._ray
        with self._joined():
            try:
                remote = ray.remote(_apply)
                at_once = max(1, int(ray.cluster_resources().get("CPU", 1))) * AHEAD
                yield from in_order(lambda item: remote.remote(work, item).future(), items, at_once)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            except ray.exceptions.RayError as error:
                raise EndpointError(f"the Ray cluster at {self.address} failed: {error}") from error

    @contextmanager
    def _joined(self) -> Iterator[None]:
        try:
            self._probe()
            with _keeping_sigterm():
                self._ray.init(self.address, logging_level=logging.ERROR, log_to_driver=False)
        except (OSError, RuntimeError, ValueError) as error:
            raise EndpointError(f"no Ray cluster at {self.address} ({error}): type --ray local") from error
        try:
            yield
        finally:
            self._ray.shutdown()

    def _probe(self) -> None:
        """Raises OSError or RuntimeError where a host and port are named and no Ray answers there."""
        parts = urlsplit(self.address if "//" in self.address else f"//{self.address}")
        if not (parts.hostname and parts.port):
            return
        socket.create_connection((parts.hostname, parts.port), PROBE_S).close()
        try:
            subprocess.run([sys.executable, "-c", JOIN, self.address], timeout=JOIN_S, check=True, **QUIET)
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"what listens there is no Ray: no answer in {JOIN_S:g} s") from error
        except subprocess.CalledProcessError as error:
            raise RuntimeError("what listens there is no Ray, or another version") from error


@contextmanager
def _keeping_sigterm() -> Iterator[None]:
    """Ray puts in a handler that ends the process without saving anything."""
    ours = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)


def _apply(work: Callable[[A], B], item: A) -> B:
    return work(item)
