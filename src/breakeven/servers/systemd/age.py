"""Whether files that a service is made of were changed since it was started."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from breakeven.servers.operations import Host
from breakeven.servers.systemd.manager import number, seconds_since

STARTED = "ExecMainStartTimestampMonotonic"
SLACK_S = 2.0
"""Of the two clocks, and of a file that is written just before the start."""


async def changed_since_start(
    host: Host, properties: Mapping[str, str], files: Iterable[str], uptime: bytes | None
) -> tuple[str, ...]:
    """Those of the files that are younger than the main process; none where it does not run, or its age is
    not known. A file that cannot be looked at is left out."""
    age_s = seconds_since(number(properties, STARTED), uptime)
    paths = tuple(files)
    if age_s is None or not paths or not number(properties, "MainPID"):
        return ()
    began_s = time.time() - age_s
    said = (await host.run(("stat", "--format=%Y %n", "--", *paths))).stdout
    lines = (line.partition(" ") for line in said.splitlines())
    return tuple(path for at_s, _, path in lines if at_s.isdigit() and int(at_s) > began_s + SLACK_S)
