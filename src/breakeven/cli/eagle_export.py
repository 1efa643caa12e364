"""`breakeven eagle export`: the trained head as a folder for each engine, written and read again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from breakeven.cli.options import json_option, print_json
from breakeven.cli.output import stderr, stdout
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.recipe_file import read_recipe
from breakeven.engines.dialects import dialect
from breakeven.engines.speculation import SpeculationConfig
from breakeven.report.terminal import say
from breakeven.units import share, size

SERVER = "systemd:UNIT"


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.option("--fresh", is_flag=True, help="Remove what was exported, and write it anew.")
@json_option
def export(recipe: Path, fresh: bool, as_json: bool) -> None:
    """Write the trained head of a RECIPE as folders that vLLM and SGLang load.

    Each folder is read again as its engine would: every tensor has to fit the configuration, and the
    trainer's library has to draft with it as with the trained head. The output ends with what tries it on a
    server.

    \b
    breakeven eagle export recipe.toml
    breakeven eagle export recipe.toml --fresh
    breakeven eagle export recipe.toml --json
    """
    from breakeven.eagle.export.run import run_export

    asked = read_recipe(recipe)
    made = run_export(asked, lambda words: say(stderr(), words), fresh=fresh)
    engines = {name: _engine(asked, name, found) for name, found in made.found["engines"].items()}
    if as_json:
        print_json({"folder": str(asked.stage("export")), "target": made.found["target"], "engines": engines})
        return
    for name, found in engines.items():
        _print(name, found, stdout())
    say(stdout(), f"Next: breakeven eagle card {shlex.quote(str(recipe))}", wrap=False)


def _engine(recipe: Recipe, name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """What was found of a folder, with what to type."""
    folder, k = str((recipe.stage("export") / name).resolve()), recipe.evaluate.k
    words = ("breakeven", "trial", "--server", SERVER, "--method", "eagle3", "--draft", folder, "--k", str(k))
    flags = dialect(name).line(SpeculationConfig("eagle3", k=k, draft=folder))
    return {
        "folder": folder,
        **found["checked"],
        "notes": found["notes"],
        "flags": flags,
        "trial": shlex.join(words),
    }


def _print(name: str, found: Mapping[str, Any], console: Console) -> None:
    say(console, f"{dialect(name).title}: {found['folder']}", "bold", wrap=False)
    say(
        console,
        f"  {found['parameters']:,} parameters in {found['weight_type']}, {size(found['n_bytes'])}; read "
        f"again: all {found['tensors']} tensors fit, and it drafts as the trained head does "
        f"({found['logits']:,} logits alike; "
        f"{share(found['same_choice'])} of the choices are those in float32)",
    )
    for note in found["notes"]:
        say(console, f"  {note}")
    say(console, "  Try it on a server, which is put back afterwards:")
    say(console, f"    {found['trial']}", wrap=False)
    say(console, "  Or by the server's own flags:")
    say(console, f"    {found['flags']}", wrap=False)
