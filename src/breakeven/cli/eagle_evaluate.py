"""`breakeven eagle evaluate`: how far a head's drafts pass on held-out replies, beside other drafters."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from breakeven.cli import options
from breakeven.cli.output import stderr, stdout
from breakeven.report.progress import progress


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.option(
    "--head",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Another EAGLE-3 head of the same target and layers [default: the one that the recipe trained].",
)
@click.option("--fresh", is_flag=True, help="Drop what was evaluated before.")
@options.json_option
def evaluate(recipe: Path, head: Path | None, fresh: bool, as_json: bool) -> None:
    """How often would the head be right on the held-out replies of a RECIPE? By place and category.

    Writes evaluation/replies.jsonl, a record for `breakeven replay` and `breakeven forecast`. Interrupted, it
    goes on with the next reply.

    \b
    breakeven eagle evaluate recipe.toml
    breakeven eagle evaluate recipe.toml --head published-head --fresh
    breakeven eagle evaluate recipe.toml --json
    """
    from breakeven.eagle.evaluate import journal
    from breakeven.eagle.evaluate import run as stage
    from breakeven.eagle.evaluate.as_json import evaluation_json
    from breakeven.eagle.recipe_file import read_recipe
    from breakeven.report.eagle_evaluate import print_evaluation

    said = read_recipe(recipe)
    record = said.stage(stage.FOLDER) / journal.FILE
    with (
        options.keeping(record, _again(recipe, head), done="drafted"),
        progress("held-out replies", None, stderr()) as watch,
    ):
        made = stage.evaluate(said, watch, head, fresh=fresh)
    if as_json:
        options.print_json(evaluation_json(made))
    else:
        print_evaluation(made, record, stdout())
        if head is None:
            click.echo(f"Next: breakeven eagle export {shlex.quote(str(recipe))}")


def _again(recipe: Path, head: Path | None) -> str:
    """What goes on with the same head, without --fresh."""
    of_head = () if head is None else ("--head", str(head))
    return shlex.join(("breakeven", "eagle", "evaluate", str(recipe), *of_head))
