"""`breakeven eagle states`: the target's hidden states on the recipe's data, as a head is trained on them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli.options import json_option, keeping, print_json
from breakeven.cli.output import stderr
from breakeven.client.endpoint import ApiKey
from breakeven.units import count, size

if TYPE_CHECKING:
    from breakeven.eagle.recipe import Recipe
    from breakeven.eagle.stage import Made

NEEDED: Mapping[str, tuple[str, ...]] = {
    "transformers": ("torch", "safetensors", "transformers"),
    "vllm": ("torch", "safetensors", "openai", "hs_connectors", "speculators"),
}


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.option("--fresh", is_flag=True, help="Remove the states that there are, and make all anew.")
@click.option(
    "--recheck", is_flag=True, help="Read every shard, and make those anew whose checksum is another by now."
)
@click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the server's API key.")
@json_option
def states(recipe: Path, fresh: bool, recheck: bool, api_key_env: str | None, as_json: bool) -> None:
    """Keep what the target's layers pass on at each token of RECIPE's data.

    What was interrupted goes on where it was, and ends with the same bytes.

    \b
    breakeven eagle states recipe.toml
    breakeven eagle states recipe.toml --fresh
    breakeven eagle states recipe.toml --recheck --json
    """
    from breakeven.eagle.recipe_file import read_recipe
    from breakeven.eagle.states.shards import FILE

    asked = read_recipe(recipe)
    folder = asked.stage("states")
    key = ApiKey.from_env_or_file(api_key_env)
    with keeping(folder / FILE, _again(recipe, api_key_env), "made"):
        made = _make(asked, key, recheck=recheck, fresh=fresh)
    if as_json:
        print_json({"folder": str(folder), **made.found})
    else:
        _say(recipe, folder, made.found)


def _make(asked: Recipe, key: ApiKey | None, **how: bool) -> Made:
    from breakeven.eagle import extras
    from breakeven.report.progress import progress

    extras.require(*NEEDED[asked.states.source])
    from breakeven.eagle.states.run import make_states

    with progress("states, tokens", None, stderr()) as ticker:
        return make_states(asked, ticker, key, **how)


def _say(recipe: Path, folder: Path, found: Mapping[str, Any]) -> None:
    layers = ", ".join(map(str, found["layers"]))
    click.echo(f"{folder}: {count(found['samples'], 'sample')}, {count(found['tokens'], 'token')}")
    click.echo(f"layers {layers} and the last state, {found['hidden']:,} numbers each, in {found['dtype']}")
    click.echo(f"{count(found['shards'], 'shard')}, {size(found['bytes'])}")
    click.echo(f"Next: breakeven eagle train {shlex.quote(str(recipe))}")


def _again(recipe: Path, api_key_env: str | None) -> str:
    """What goes on with the same server, without --fresh."""
    key = () if api_key_env is None else ("--api-key-env", api_key_env)
    return shlex.join(("breakeven", "eagle", "states", str(recipe), *key))
