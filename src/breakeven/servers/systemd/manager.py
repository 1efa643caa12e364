"""Manager: a system's or a user's systemd, asked through systemctl and journalctl."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from breakeven.errors import ServerError
from breakeven.servers.operation_kinds import command_failed, run_checked
from breakeven.servers.operations import Host
from breakeven.servers.systemd.words import split

RELOAD_TIMEOUT_S = 180.0
"""All units are read again, and all generators run."""
_NO_BUS = ("Failed to connect to bus", "not been booted with systemd", "Host is down")
_NO_RIGHT = ("Interactive authentication required", "Access denied", "Permission denied", "not privileged")


@dataclass(frozen=True, slots=True)
class Manager:
    """Which of the two, and how it is spoken to."""

    host: Host
    user: bool = False

    @property
    def systemctl(self) -> tuple[str, ...]:
        return ("systemctl", "--user") if self.user else ("systemctl",)

    @property
    def reload(self) -> tuple[str, ...]:
        return (*self.systemctl, "daemon-reload")

    async def show(self, unit: str, names: Iterable[str]) -> dict[str, str]:
        """Properties of a unit; lines of a repeated one are joined by newlines. Raises ServerError."""
        return parse_show(await self._said("show", f"--property={','.join(names)}", "--", unit))

    async def unit_path(self) -> tuple[str, ...]:
        """Folders in which units are looked for. Raises ServerError."""
        said = parse_show(await self._said("show", "--property=UnitPath"))
        return paths(said.get("UnitPath", ""))

    async def variable(self, name: str) -> str | None:
        """Of the manager's own environment. Raises ServerError."""
        return parse_show(await self._said("show-environment")).get(name)

    async def act(self, *words: str) -> None:
        """Have it do something. Raises ServerError, with what to do where it is not allowed."""
        await self._said(*words)

    async def forget_failures(self, unit: str) -> None:
        """A unit that is not loaded has none. Raises ServerError where it is not allowed."""
        done = await self.host.run((*self.systemctl, "reset-failed", "--", unit))
        if done.returncode and "not loaded" not in done.stderr:
            raise self._explained(command_failed((*self.systemctl, "reset-failed", unit), done))

    async def _said(self, *words: str) -> str:
        argv = (*self.systemctl, *words)
        try:
            return (await run_checked(self.host, argv)).stdout
        except ServerError as error:
            raise self._explained(error) from error

    def _explained(self, error: ServerError) -> ServerError:
        said = str(error)
        if any(words in said for words in _NO_BUS):
            return ServerError(f"{said}: is this machine run by systemd{self._session()}?")
        if any(words in said for words in _NO_RIGHT):
            return ServerError(f"{said}: add --sudo, or run breakeven as root")
        return error

    def _session(self) -> str:
        return ", and XDG_RUNTIME_DIR set, as in a login of that user" if self.user else ""


def parse_show(text: str) -> dict[str, str]:
    """`Name=value` lines as `systemctl show` prints them."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            found[name] = f"{found[name]}\n{value}" if name in found else value
    return found


def paths(value: str) -> tuple[str, ...]:
    """A property that lists paths; those with spaces are quoted."""
    return tuple(word.value for word in split(value))


def number(properties: Mapping[str, str], name: str) -> int:
    """0 for one that is absent or `[not set]`."""
    value = properties.get(name, "")
    return int(value) if value.isdigit() else 0


def seconds_since(stamp_us: int, uptime: bytes | None) -> float | None:
    """Since a time of the machine's monotonic clock; None where it never was, or the uptime is not known."""
    if not stamp_us or not uptime:
        return None
    return max(0.0, float(uptime.split()[0]) - stamp_us / 1e6)
