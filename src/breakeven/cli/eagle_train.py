"""`breakeven eagle train`: a head from the states of its target."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from breakeven.cli.options import json_option, print_json
from breakeven.cli.output import stderr, stdout
from breakeven.errors import BreakevenError, UsageError


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.option("--fresh", is_flag=True, help="Train anew; what was trained before is removed.")
@json_option
def train(recipe: Path, fresh: bool, as_json: bool) -> None:
    """Train the head of a RECIPE on the states of its target, on a CPU, a GPU, or many.

    It can be stopped at any time, and goes on from the last checkpoint with the same command.

    \b
    breakeven eagle train recipe.toml
    breakeven eagle train recipe.toml --fresh
    torchrun --nproc-per-node 8 -m breakeven eagle train recipe.toml
    """
    from breakeven.eagle.recipe_file import read_recipe
    from breakeven.eagle.train.run import STAGE, is_first, train_head
    from breakeven.report.eagle_train import Shown, print_trained, trained_json

    said = read_recipe(recipe)
    folder = said.stage(STAGE)
    with _going_on(recipe, folder):
        if not is_first():
            train_head(said, fresh=fresh)
            return
        with Shown(stderr()) as shown:
            made = train_head(said, fresh=fresh, watch=shown)
    if as_json:
        print_json(trained_json(made, str(folder)))
    else:
        print_trained(made, str(folder), stdout())
        click.echo(f"Next: breakeven eagle evaluate {shlex.quote(str(recipe))}")


@contextmanager
def _going_on(recipe: Path, folder: Path) -> Iterator[None]:
    """Has a failure or Ctrl-C say how to go on from what is saved."""
    try:
        yield
    except (BreakevenError, KeyboardInterrupt) as error:
        if not isinstance(error, UsageError) and any(folder.glob("checkpoint-*")):
            again = shlex.join(("breakeven", "eagle", "train", str(recipe)))
            error.add_note(f"what was trained is saved: type  {again}")
        raise
