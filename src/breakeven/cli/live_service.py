"""The service that a live trial is on: found, looked at, and refused where it cannot be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakeven.cli import options
from breakeven.errors import UsageError

if TYPE_CHECKING:
    from breakeven.client.endpoint import Endpoint
    from breakeven.engines.dialect import Dialect, Reader
    from breakeven.engines.speculation import SpeculationConfig
    from breakeven.servers.lifecycle import Found, Lifecycle
    from breakeven.servers.operations import Host
    from breakeven.trial.live import Service

INSIDE = ("docker", "compose", "kubernetes")
"""Kinds whose ports and files are those of a container."""
TLS = ("--ssl-certfile", "--ssl-cert-file", "--ssl-keyfile", "--ssl-key-file")
SYSTEMD = {"systemd": False, "systemd-user": True}
"""By whether the unit is a user's."""


def host_of(sudo: bool) -> Host:
    """This machine; tests have one in memory instead."""
    from breakeven.servers.host import LocalHost
    from breakeven.servers.sudo_host import SudoHost

    return SudoHost() if sudo else LocalHost()


async def find_service(
    values: Mapping[str, Any], command: Sequence[str], candidates: Sequence[SpeculationConfig], log_path: Path
) -> Service:
    """Look at it, touch nothing; `log_path` is for the output of a process.

    Raises UsageError for what cannot be done, with what to type instead.
    """
    from breakeven.trial.live import Service

    host = host_of(values["sudo"])
    lifecycle = _lifecycle(values, command, host, log_path)
    found = await lifecycle.inspect()
    dialect = await _dialect(values, lifecycle.kind, found, host)
    service = Service(
        lifecycle,
        dialect,
        host,
        found,
        _endpoint(values, lifecycle.kind, found, dialect),
        {"sudo": values["sudo"], **_place(lifecycle.kind, found)},
        values["api_key_env"],
        values["api_key_file"] and str(values["api_key_file"]),
        options.timeouts(values),
    )
    for candidate in candidates:
        _refuse(service, candidate)
    return service


def _place(kind: str, found: Found) -> dict[str, str | None]:
    """Which container of which cluster, so that a recovery reaches the same one."""
    if kind != "kubernetes":
        return {}
    return {name: found.evidence[name] or None for name in ("container", "context")}


def _lifecycle(values: Mapping[str, Any], command: Sequence[str], host: Host, log_path: Path) -> Lifecycle:
    from breakeven.servers.targets import TargetOptions, lifecycle_of

    target: str = values["server"]
    kind, _, place = target.partition(":")
    if values["as_new_unit"]:
        from breakeven.servers.systemd.second_unit import SecondUnit

        if kind not in SYSTEMD:
            raise UsageError(f"--as-new-unit is of systemd: leave it out with {target}")
        return SecondUnit(host, place, values["as_new_unit"], SYSTEMD[kind])
    if command and kind not in ("process", "attached"):
        raise UsageError(f"{target} knows its own command line: leave out  -- {command[0]} …")
    if values["url"] and kind == "attached":
        raise UsageError(f"{target} is a URL already: leave out --url")
    endpoint = options.endpoint(values, place) if kind == "attached" and place else None
    return lifecycle_of(
        target,
        host,
        TargetOptions(
            command=tuple(command), log_path=log_path, container=values["container"], endpoint=endpoint
        ),
    )


async def _dialect(values: Mapping[str, Any], kind: str, found: Found, host: Host) -> Dialect:
    from breakeven.engines.dialects import dialect, dialect_of

    if found.argv:
        return dialect_of(found.argv, _reader(kind, host))
    engine = await _engine_at(options.endpoint(values, values["server"].partition(":")[2]))
    if engine is None:
        raise UsageError(f"{found.target} does not say which engine it is: type its command line behind --")
    return dialect(engine, _reader(kind, host))


async def _engine_at(endpoint: Endpoint) -> str | None:
    from breakeven.client.identity import identify
    from breakeven.client.transport import Pool

    async with Pool() as pool:
        return (await identify(pool, endpoint)).engine


def _reader(kind: str, host: Host) -> Reader:
    """Of configuration files that its command line names, where they can be reached."""

    def read(path: str) -> str | None:
        data = None if kind in (*INSIDE, "attached") else host.read(path)
        return None if data is None else data.decode("utf-8", "replace")

    return read


def _endpoint(values: Mapping[str, Any], kind: str, found: Found, dialect: Dialect) -> Endpoint:
    if kind == "attached":
        return options.endpoint(values, values["server"].partition(":")[2])
    return options.endpoint(values, values["url"] or _url(kind, found, dialect))


def _url(kind: str, found: Found, dialect: Dialect) -> str:
    """As its command line says. Raises UsageError where that does not tell from outside."""
    if kind in INSIDE:
        raise UsageError(
            f"which port of this machine reaches {found.target}? type  --url http://127.0.0.1:PORT"
        )
    if any(word.partition("=")[0].replace("_", "-") in TLS for word in found.argv):
        raise UsageError(
            f"{found.target} has a certificate: type its address, such as  --url https://NAME:PORT"
        )
    try:
        address = dialect.address(found.as_run or found.argv, found.environment)
    except UsageError as error:
        raise UsageError(f"{error}; or type where it answers:  --url http://127.0.0.1:PORT") from None
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host).strip("[]")  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{address.port}"


def _refuse(service: Service, candidate: SpeculationConfig) -> None:
    """Raises UsageError for a candidate that this service cannot be started with."""
    argv = service.candidate_argv(candidate, None)
    on = service.dialect.speculation(service.found.argv)
    if candidate == on or argv == service.found.argv:
        raise UsageError(
            f"{service.found.target} runs with {candidate.describe()} already: type another candidate"
        )
    if service.dialect.files(service.found.argv, candidate) and service.lifecycle.kind in (
        *INSIDE,
        "attached",
    ):
        raise UsageError(
            f"{service.dialect.title} takes speculation from a file, which cannot be put where "
            f"{service.found.target} reads it: mount one yourself, and compare two URLs"
        )


def warnings_of(service: Service, candidates: Sequence[SpeculationConfig], version: str | None) -> list[str]:
    """All that a human should know before a restart, each once."""
    found = [*service.found.warnings]
    on = service.dialect.speculation(service.found.argv)
    if on is not None:
        found.append(
            f"it speculates already ({on.describe()}): the trial compares with that, not with no speculation"
        )
    for candidate in candidates:
        found += service.dialect.warnings(candidate, service.found.argv, version)
    return list(dict.fromkeys(found))
