"""Service: a server that somebody needs, and all that it takes to change it and put it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from breakeven.client.endpoint import Endpoint
from breakeven.client.openai import DEFAULT_TIMEOUTS, AskFor
from breakeven.client.timeouts import Timeouts
from breakeven.engines.dialect import Dialect
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError
from breakeven.servers.lifecycle import Found, Lifecycle, State
from breakeven.servers.operations import Host
from breakeven.servers.undo_record import Verification

ELSEWHERE = ("docker", "compose", "kubernetes", "attached")
"""Kinds whose files are not those of this machine."""
ALREADY = (
    "it speculates already ({on}): the trial compares with that, not with no speculation, and nothing is "
    "forecast, as a forecast is against none"
)


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
    version: str | None = None
    """Of its engine, where it was asked before it is measured; None: not known yet."""

    @property
    def ends_with_us(self) -> bool:
        """Whether nothing of it is left once breakeven has ended, so that nothing is to be recovered."""
        return self.lifecycle.kind == "process"

    @property
    def ask_for(self) -> AskFor:
        """Both sides are asked alike; where the engine gives token ids with them, as a replay needs them."""
        return AskFor(token_ids=self.dialect.name == "vllm")

    def verification(self) -> Verification | None:
        """How a recovery knows that the baseline answers."""
        if self.ends_with_us:
            return None
        return Verification(
            self.endpoint.base_url,
            self.endpoint.model,
            self.endpoint.api,
            self.api_key_env,
            _absolute(self.api_key_file),
            self.endpoint.verify_tls,
            _absolute(self.endpoint.ca_file),
        )

    @property
    def speculation(self) -> SpeculationConfig | None:
        """What it speculates with as it runs, the variables of its command line filled in; None: with nothing
        that it says. Raises UsageError for flags that cannot be read."""
        return self.dialect.speculation(self.found.as_run or self.found.argv)

    def not_running(self, state: State) -> str | None:
        """Why there is no baseline to be measured in this state; None where there is one, or is to be."""
        if self.ends_with_us or state.condition == "running":
            return None
        detail = f" ({state.detail})" if state.detail else ""
        return (
            f"{self.found.target} is {state.condition}{detail}: start it first, as a trial compares with the "
            "service as it runs"
        )

    def candidate_argv(self, candidate: SpeculationConfig, version: str | None) -> tuple[str, ...]:
        """Raises UsageError where this engine, or its version, cannot be started like that, or not here."""
        version = version or self.version
        elsewhere = self.dialect.elsewhere(self.found.argv, self.found.environment)
        if elsewhere is not None:
            raise UsageError(elsewhere)
        on = self.speculation
        if on is not None and self.dialect.without(self.found.argv) == self.found.argv:
            raise UsageError(
                f"{self.found.target} speculates already ({on.describe()}) by a variable in its command "
                "line, which cannot be taken out: write the flags themselves there, restart it, and try again"
            )
        self._refuse_files(candidate, version)
        return self.dialect.with_speculation(self.found.argv, candidate, version)

    def _refuse_files(self, candidate: SpeculationConfig, version: str | None) -> None:
        """Raises UsageError where it would take a file that cannot be put where the server reads it."""
        files = self.dialect.files(self.found.argv, candidate, version)
        if files and self.lifecycle.kind in ELSEWHERE:
            raise UsageError(
                f"{self.dialect.title} takes speculation from a file, which cannot be put where "
                f"{self.found.target} reads it: write one from what  breakeven engine {self.dialect.name} "
                f"{_typed(candidate)}  prints, start a second server with it, and type  breakeven trial "
                "--baseline-url URL --candidate-url URL"
            )

    def warnings(
        self, candidates: Sequence[SpeculationConfig], version: str | None = None
    ) -> tuple[str, ...]:
        """All that a human should know before a restart, each once."""
        found = [*self.found.warnings]
        if (on := self.speculation) is not None:
            found.append(ALREADY.format(on=on.describe()))
        for candidate in candidates:
            found += self.dialect.warnings(candidate, self.found.argv, version or self.version)
        return tuple(dict.fromkeys(found))


def _absolute(path: str | Path | None) -> str | None:
    """A recovery may be typed in another folder."""
    return None if path is None else str(Path(path).absolute())


def _typed(candidate: SpeculationConfig) -> str:
    """As options of a command."""
    given = {"k": candidate.k, "min-n": candidate.min_n, "max-n": candidate.max_n, "draft": candidate.draft}
    words = [f"--{name} {value}" for name, value in given.items() if value is not None]
    own = [f"--set {name}={value}" for name, value in candidate.options.items()]
    return " ".join([f"--method {candidate.method}", *words, *own])
