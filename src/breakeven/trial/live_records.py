"""What a trial of one live service is made of: the plan, the service, and who is told how it goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from breakeven.client.endpoint import Endpoint
from breakeven.client.openai import DEFAULT_TIMEOUTS
from breakeven.client.timeouts import Timeouts
from breakeven.engines.dialect import Dialect
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError
from breakeven.servers.lifecycle import Found, Lifecycle
from breakeven.servers.operations import Host
from breakeven.servers.readiness import Progress
from breakeven.servers.undo_record import Verification
from breakeven.servers.watch import Bounds
from breakeven.trace.records import RequestTrace
from breakeven.trial.live_order import Order
from breakeven.trial.plan import TrialPlan

START_LIMIT_S = 7200.0


@dataclass(frozen=True, slots=True)
class LivePlan:
    """What is asked of a service, with what turned on, in which order."""

    trial: TrialPlan
    candidates: tuple[SpeculationConfig, ...]
    """In the order in which they are tried."""
    order: Order = "ABA"
    start_limit_s: float = START_LIMIT_S
    """In which a restarted server has to be ready."""
    keep_if: Literal["faster"] | None = None
    """The verdict with which the change stays; None: it never does."""
    bounds: Bounds = field(default_factory=Bounds)
    """What a candidate may do wrong before it is taken out."""
    fresh_prompts: bool = False
    """Ask a candidate each prompt once only, also where its drafter is not known to learn across requests."""


@dataclass(frozen=True, slots=True)
class Service:
    """A server that somebody needs, and all that it takes to change it and put it back."""

    lifecycle: Lifecycle
    dialect: Dialect
    host: Host
    found: Found
    endpoint: Endpoint
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the lifecycle was made with, for the journal: `sudo`, `container` and `context`."""
    api_key_env: str | None = None
    """Where the endpoint's key is from, for the journal, which never has the key itself."""
    api_key_file: str | None = None
    timeouts: Timeouts = DEFAULT_TIMEOUTS

    @property
    def ends_with_us(self) -> bool:
        """Whether nothing of it is left once breakeven has ended, so that nothing is to be recovered."""
        return self.lifecycle.kind == "process"

    def verification(self) -> Verification | None:
        """How a recovery knows that the baseline answers."""
        if self.ends_with_us:
            return None
        return Verification(
            self.endpoint.base_url,
            self.endpoint.model,
            self.endpoint.api,
            self.api_key_env,
            self.api_key_file,
            self.endpoint.verify_tls,
            None if self.endpoint.ca_file is None else str(self.endpoint.ca_file),
        )

    def candidate_argv(self, candidate: SpeculationConfig, version: str | None) -> tuple[str, ...]:
        """Raises UsageError where this engine, or its version, cannot be started like that."""
        elsewhere = self.dialect.elsewhere(self.found.argv, self.found.environment)
        if elsewhere is not None:
            raise UsageError(elsewhere)
        return self.dialect.with_speculation(self.found.argv, candidate, version)


class Watch:
    """Told how a trial goes; says nothing by itself. A command line overrides what it shows."""

    def begins(self, part: str, number: int, of: int, requests: int) -> None:
        """Part `number` (from 1) of so many, such as `candidate`, in which at most so many are asked."""

    def starting(self, progress: Progress) -> None:
        """How far a restart is."""

    def answered(self, side: str, trace: RequestTrace) -> None:
        """A request of a side came to its end."""

    def said(self, line: str) -> None:
        """What is being done, or has to be known, in one line."""
