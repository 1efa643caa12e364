"""`breakeven eagle`: a trained draft head, from recorded traffic to a folder that engines load."""

from __future__ import annotations

from pathlib import Path

import click

from breakeven.cli.eagle_card import card
from breakeven.cli.eagle_data import data
from breakeven.cli.eagle_evaluate import evaluate
from breakeven.cli.eagle_export import export
from breakeven.cli.eagle_init import init
from breakeven.cli.eagle_plan import plan
from breakeven.cli.eagle_states import states
from breakeven.cli.eagle_train import train

STAGES = (data, states, train, evaluate, export, card)


@click.group()
def eagle() -> None:
    """Plan, train and judge an EAGLE-3 draft head for the traffic that you recorded.

    \b
    breakeven eagle plan runs/monday --calibration calibration.json --out next-steps-eagle.md
    breakeven eagle init --out recipe.toml
    breakeven eagle run recipe.toml
    """


@eagle.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.pass_context
def run(context: click.Context, recipe: Path) -> None:
    """Do every stage of a RECIPE in turn; what is whole already is not done again.

    \b
    breakeven eagle run recipe.toml
    """
    for stage in STAGES:
        context.invoke(stage, recipe=recipe)


for command in (plan, init, *STAGES):
    eagle.add_command(command)
