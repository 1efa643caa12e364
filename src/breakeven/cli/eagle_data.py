"""`breakeven eagle data`: what a head learns from, out of recorded traffic."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from breakeven.cli.options import json_option, keeping, print_json
from breakeven.cli.output import stderr, stdout


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.option("--fresh", is_flag=True, help="Make the samples anew, from the replies that there are.")
@click.option("--ask-again", is_flag=True, help="Drop the target's replies too, and have it answer anew.")
@click.option("--model", help="The target's name on its server; needed only if that has several.")
@click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the server's API key.")
@json_option
def data(
    recipe: Path, fresh: bool, ask_again: bool, model: str | None, api_key_env: str | None, as_json: bool
) -> None:
    """Have the target answer the prompts of RECIPE's sources, and make samples of the replies.

    With regenerate = false recorded replies are taken. What was interrupted goes on where it was.

    \b
    breakeven eagle data recipe.toml
    breakeven eagle data recipe.toml --fresh
    breakeven eagle data recipe.toml --ask-again --api-key-env VLLM_API_KEY --json
    """
    from breakeven.client.endpoint import ApiKey
    from breakeven.eagle.data.make import REPLIES, STAGE, Access, make_data
    from breakeven.eagle.recipe_file import read_recipe
    from breakeven.report.eagle_data import Shown, data_json, print_data
    from breakeven.report.progress import progress
    from breakeven.trace.disk import META

    asked = read_recipe(recipe)
    folder = asked.stage(STAGE)
    access = Access(model, ApiKey.from_env_or_file(api_key_env))
    again = _again(recipe, model, api_key_env)
    with (
        keeping(folder / REPLIES / META, again, "answered"),
        progress("data, replies", None, stderr()) as ticker,
    ):
        made = make_data(asked, access, Shown(ticker), fresh=fresh, ask_again=ask_again)
    if as_json:
        print_json(data_json(folder, made))
    else:
        print_data(recipe, folder, made, stdout())


def _again(recipe: Path, model: str | None, api_key_env: str | None) -> str:
    """What goes on with the same server, without --fresh."""
    options = {"--model": model, "--api-key-env": api_key_env}
    given = [word for name, value in options.items() if value is not None for word in (name, value)]
    return shlex.join(("breakeven", "eagle", "data", str(recipe), *given))
