"""Container: what `docker container inspect` says, as far as it matters here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from breakeven.secrets import masked_environment
from breakeven.servers.lifecycle import Condition, State
from breakeven.servers.moments import seconds_since

CANDIDATE_OF = "breakeven.candidate-of"
"""Label of a container that is ours; its value is the id of the user's."""
SHORT_ID = 12
"""Characters of an id that Docker shows, and gives as a hostname."""
STOP_GRACE_S = 10.0
"""Docker's own, from SIGTERM to SIGKILL, where the container has none."""
NOTED_BYTES = 256 * 2**20
"""Written inside a container, outside its volumes: as much is a download rather than a cache of kernels."""


@dataclass(frozen=True, slots=True)
class Container:
    """One container, as its daemon sees it."""

    inspected: Mapping[str, Any]
    """All of it; secrets are in it, so it is never shown or kept."""

    @property
    def id(self) -> str:
        return str(self.inspected["Id"])

    @property
    def name(self) -> str:
        return str(self.inspected["Name"]).removeprefix("/")

    @property
    def image_id(self) -> str:
        """Of the image that it was made from, whatever its name stands for by now."""
        return str(self.inspected["Image"])

    @property
    def config(self) -> Mapping[str, Any]:
        return dict(self.inspected["Config"])

    @property
    def host_config(self) -> Mapping[str, Any]:
        return dict(self.inspected["HostConfig"])

    @property
    def labels(self) -> Mapping[str, str]:
        return self.config.get("Labels") or {}

    @property
    def entrypoint(self) -> tuple[str, ...]:
        return tuple(self.config.get("Entrypoint") or ())

    @property
    def words(self) -> tuple[str, ...]:
        """Entrypoint and command, as the image and whoever made the container set them."""
        return (*self.entrypoint, *(self.config.get("Cmd") or ()))

    @property
    def running(self) -> bool:
        state = self.inspected["State"]
        return bool(state["Running"]) and not state["Paused"] and not state["Restarting"]

    @property
    def stop_grace_s(self) -> float:
        """Seconds that `docker stop` leaves it to end by itself; infinity: for ever."""
        given = self.config.get("StopTimeout")
        if given is None:
            return STOP_GRACE_S
        return float(given) if given >= 0 else math.inf

    @property
    def networks(self) -> Mapping[str, Mapping[str, Any]]:
        """Those that a user defined, by name."""
        networks = (self.inspected.get("NetworkSettings") or {}).get("Networks") or {}
        return {name: end for name, end in networks.items() if name not in ("bridge", "host", "none")}

    @property
    def restart_policy(self) -> str:
        """`no`, `always`, `unless-stopped` or `on-failure`."""
        return str((self.host_config.get("RestartPolicy") or {}).get("Name") or "no")

    @property
    def written_bytes(self) -> int:
        """Outside its volumes; 0 where it was not asked for."""
        return int(self.inspected.get("SizeRw") or 0)

    def environment(self) -> dict[str, str]:
        """Its variables, the values of secrets hidden."""
        pairs = (pair.partition("=") for pair in self.config.get("Env") or ())
        return masked_environment({name: value for name, _, value in pairs})

    def state(self, is_new: bool) -> State:
        """How it is; one that `is_new`, made for the trial, has failed if Docker had to start it again."""
        state = self.inspected["State"]
        status, code = state["Status"], state["ExitCode"]
        restarts = int(self.inspected.get("RestartCount") or 0)
        again = f"; Docker started it again {restarts} times" if restarts else ""
        ended = f"{'OOMKilled, ' if state.get('OOMKilled') else ''}exit code {code}{again}"
        if state["Restarting"] or (restarts and is_new):
            return State("failed", ended, seconds_since(state["StartedAt"]))
        if status == "running":
            health = (state.get("Health") or {}).get("Status")
            detail = f"health: {health}" if health else ""
            since_s = seconds_since(state["StartedAt"])
            return State("starting" if health == "starting" else "running", detail, since_s)
        if status in ("exited", "dead"):
            failed = code != 0 or status == "dead"
            detail = f"{ended}{'; ' + state['Error'] if state.get('Error') else ''}"
            return State("failed" if failed else "stopped", detail, seconds_since(state["FinishedAt"]))
        if status == "created" and state.get("Error"):
            return State("failed", str(state["Error"]))
        return State("stopped", status)

    def returning(self) -> State:
        """How it is while it comes back as it was found: what Docker starts again has not failed. It
        is named, as another container had its place."""
        now = self.state(is_new=False)
        again = bool(self.inspected["State"]["Restarting"])
        condition: Condition = "starting" if again else now.condition
        detail = f"container {self.name}, {self.id[:SHORT_ID]}{f': {now.detail}' if now.detail else ''}"
        return State(condition, detail, now.since_s)
