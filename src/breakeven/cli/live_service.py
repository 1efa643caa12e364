"""The service that a live trial is on: found, looked at, and refused where it cannot be done."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
    from breakeven.trace.meta import ServerInfo
    from breakeven.trial.live import Service

INSIDE = ("docker", "compose", "kubernetes")
"""Kinds whose ports and files are those of a container."""
TLS = ("--ssl-certfile", "--ssl-cert-file", "--ssl-keyfile", "--ssl-key-file")
UNPRIVILEGED = {
    "systemd-user": "a service of your own systemd, which is not the one of root",
    "process": "started by breakeven itself",
    "attached": "restarted by somebody else",
}
"""Kinds that nothing is done to as root, and what they are instead."""
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
    found = await _looked_at(lifecycle, values["server"])
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
    service = replace(service, version=await _version(service, candidates))
    for candidate in candidates:
        _refuse(service, candidate, bool(values["keep_if"]))
    return service


async def _version(service: Service, candidates: Sequence[SpeculationConfig]) -> str | None:
    """Of the engine, where a candidate has a name that is not known here: a newer one may have it. None where
    it does not say, or does not run yet."""
    if service.ends_with_us or all(map(service.dialect.knows, candidates)):
        return None
    return (await _server_at(service.endpoint)).version


async def _looked_at(lifecycle: Lifecycle, target: str) -> Found:
    """Raises UsageError for what cannot be changed; where that is the change of a trial that runs, of it."""
    from breakeven.servers.occupied import refuse_occupied
    from breakeven.servers.targets import full_name

    try:
        return await lifecycle.inspect()
    except UsageError:
        refuse_occupied(full_name(target))
        raise


def _place(kind: str, found: Found) -> dict[str, str | None]:
    """Which container of which cluster, so that a recovery reaches the same one."""
    if kind != "kubernetes":
        return {}
    return {name: found.evidence[name] or None for name in ("container", "context")}


def _lifecycle(values: Mapping[str, Any], command: Sequence[str], host: Host, log_path: Path) -> Lifecycle:
    from breakeven.servers.targets import TargetOptions, lifecycle_of

    target: str = values["server"]
    kind, _, place = target.partition(":")
    if values["sudo"] and kind in UNPRIVILEGED:
        raise UsageError(f"{target} is {UNPRIVILEGED[kind]}: leave out --sudo")
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
    from breakeven.servers.process import SUCH_AS

    if found.argv:
        return _with_folder(dialect_of(found.argv, _reader(kind, host, found)), found.target)
    engine = (await _server_at(options.endpoint(values, values["server"].partition(":")[2]))).engine
    if engine is None:
        raise UsageError(
            f"{found.target} does not say which engine it is: type its command line behind --, {SUCH_AS}"
        )
    return dialect(engine, _reader(kind, host, found))


def _with_folder(dialect: Dialect, target: str) -> Dialect:
    """Where an engine's files are to lie: as long as the change itself, and by a path that does not depend on
    the folder that the server runs in."""
    from breakeven.engines.trtllm import Trtllm

    if isinstance(dialect, Trtllm):
        own = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
        places = {"systemd": "/run/breakeven", "systemd-user": f"{own}/breakeven"}
        dialect.folder = places.get(target.partition(":")[0], str(Path.cwd()))
    return dialect


async def _server_at(endpoint: Endpoint) -> ServerInfo:
    from breakeven.client.identity import identify
    from breakeven.client.transport import Pool

    async with Pool() as pool:
        return await identify(pool, endpoint)


def _reader(kind: str, host: Host, found: Found) -> Reader:
    """Of configuration files that its command line names, where they can be reached; relative paths are those
    of its own folder."""

    def read(path: str) -> str | None:
        data = None if kind in (*INSIDE, "attached") else host.read(found.path(path))
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


def _refuse(service: Service, candidate: SpeculationConfig, is_kept: bool) -> None:
    """Raises UsageError for a candidate that this service cannot be started with."""
    argv = service.candidate_argv(candidate, None)
    if candidate == service.speculation or argv == service.found.argv:
        raise UsageError(
            f"{service.found.target} runs with {candidate.describe()} already: type another candidate"
        )
    if is_kept and service.dialect.files(service.found.argv, candidate, service.version):
        raise UsageError(
            f"{service.dialect.title} takes speculation from a file of ours that a reboot takes away: leave "
            "out --keep-if, and write it into the file of your own once you know that it pays"
        )
