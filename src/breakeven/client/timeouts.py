"""Timeouts: three separate waits, and nothing else that limits a read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """All in seconds. A reply that keeps coming may take for ever."""

    connect_s: float = 10.0
    """Name look-up, TCP, proxy and TLS together."""
    first_token_s: float = 600.0
    """From the request until the first chunk that carries a token; a role-only chunk does not end it."""
    idle_s: float = 120.0
    """Between two reads, after the first token."""
