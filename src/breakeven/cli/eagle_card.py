"""`breakeven eagle card`: a model card beside every exported head."""

from __future__ import annotations

from pathlib import Path

import click

from breakeven.cli.options import json_option, print_json
from breakeven.eagle.recipe_file import read_recipe


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.option("--fresh", is_flag=True, help="A card is always written anew; here for `eagle run`.")
@json_option
def card(recipe: Path, fresh: bool, as_json: bool) -> None:
    """Write README.md beside every exported head of a RECIPE: figures, provenance, and what was not measured.

    The figures are those of `breakeven eagle evaluate`, with their intervals; the rest is what the stages
    wrote down of themselves: sources, counts, settings, versions, checksums.

    \b
    breakeven eagle card recipe.toml
    breakeven eagle card recipe.toml --json
    """
    from breakeven.eagle.card import write_cards

    written = [str(path) for path in write_cards(read_recipe(recipe))]
    if as_json:
        print_json({"cards": written})
        return
    for path in written:
        click.echo(path)
