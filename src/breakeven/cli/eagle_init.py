"""`breakeven eagle init`: a recipe to start from."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

import click

from breakeven.errors import UsageError
from breakeven.trace.files import storing, write_bytes_atomically

STARTER = "starter.toml"


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("recipe.toml"),
    show_default=True,
    help="File to write; one that exists is left as it is.",
)
def init(out: Path) -> None:
    """Write a recipe with every setting explained: name the model, its server and the traffic in it.

    \b
    breakeven eagle init
    breakeven eagle init --out heads/monday.toml
    """
    text = (files("breakeven.eagle") / STARTER).read_bytes()
    if out.exists() or out.is_symlink():
        raise UsageError(f"{out} exists: type  --out FILE  with another name")
    with storing(out.parent, "--out"):
        write_bytes_atomically(out, text)
    click.echo(
        f"{out}: set model, url and sources in it, then type  breakeven eagle data {shlex.quote(str(out))}"
    )
