"""A line on stderr while a server waits to be put back: whatever else `breakeven` is called for."""

from __future__ import annotations

import platform

import click

from breakeven.errors import BreakevenError
from breakeven.report.text import clean
from breakeven.servers.state_folder import state_folder


def remind() -> None:
    """Costs one look at a folder where there is nothing to say, and never fails."""
    try:
        folder = state_folder() / "journals"
        if not folder.is_dir() or not any(path.suffix == ".jsonl" for path in folder.iterdir()):
            return
        targets = _pending_here()
    except (OSError, BreakevenError):
        return
    if targets:
        verb = "is" if len(targets) == 1 else "are"
        said = f"{', '.join(targets)} {verb} not as a trial that was cut off found it"
        click.echo(f"note: {clean(said)}: type  breakeven recover", err=True)


def _pending_here() -> list[str]:
    from breakeven.servers.recovery import pending

    found = pending()
    return [
        look.record.target if look.record else look.path.stem
        for look in found
        if look.record is None or look.record.node == platform.node()
    ]
