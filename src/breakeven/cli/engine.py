"""`breakeven engine`: the flags that turn speculation on in an engine, and what a command line turns on."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.output import stderr, stdout
from breakeven.engines.argv import scalar
from breakeven.engines.dialect import Dialect
from breakeven.engines.dialects import NAMES, dialect, dialect_of
from breakeven.engines.speculation import METHODS, SpeculationConfig
from breakeven.errors import UsageError
from breakeven.report.terminal import say
from breakeven.report.text import line
from breakeven.secrets import shown_argv

LONGEST = 10_000
"""Characters of a command line that is printed."""
TRUTHS = {"true": True, "false": False}


@click.command()
@click.argument("engine", required=False)
@click.option("--method", help=f"{', '.join(METHODS)}, or the engine's own name.")
@click.option("--k", type=click.IntRange(min=1), help="Most tokens of a draft.")
@click.option("--min-n", type=click.IntRange(min=1), help="Shortest n-gram that is looked up.")
@click.option("--max-n", type=click.IntRange(min=1), help="Longest n-gram that is looked up.")
@click.option(
    "--draft", metavar="PATH", help="Weights of a learned drafter, or a class, as the engine has it."
)
@click.option("--set", "setting", multiple=True, metavar="NAME=VALUE", help="The engine's own settings.")
@click.option(
    "--engine-version",
    type=options.EngineVersion(),
    metavar="V",
    help="Of the engine: older ones have other flags.",
)
@click.option("--command", metavar="LINE", help="The server's command line, to be read and changed.")
@options.json_option
def engine(engine: str | None, setting: Sequence[str], as_json: bool, **values: Any) -> None:
    """Print the flags that turn speculation on in an engine; or read a server's command line.

    Flags go to stdout, in one line to copy; known traps go to stderr. Nothing is started or changed.

    \b
    breakeven engine vllm --method ngram --k 5 --min-n 2 --max-n 4
    breakeven engine sglang --method eagle3 --k 3 --draft lmsys/some-eagle3-draft
    breakeven engine vllm --command "vllm serve Qwen/Qwen3-8B --port 8001" --method ngram --k 5
    """
    config = _config(setting, values)
    answer = _answer(engine, config, values["command"], values["engine_version"])
    if as_json:
        options.print_json(answer)
    elif values["command"] is None:
        say(stdout(), answer["flags"], wrap=False)
    else:
        _print_command(answer)
    for warning in answer["warnings"]:
        say(stderr(), f"! {line(warning, 1000)}", "yellow")


def _config(setting: Sequence[str], values: dict[str, Any]) -> SpeculationConfig | None:
    names = ("k", "min_n", "max_n", "draft")
    if values["method"] is None:
        alone = next((name for name in names if values[name] is not None), None)
        if alone or setting:
            option = f"--{(alone or 'set').replace('_', '-')}"
            raise UsageError(f"{option} stands without a method: type --method ngram")
        return None
    own = dict(setting_given(text) for text in setting)
    return SpeculationConfig(values["method"], **{name: values[name] for name in names}, options=own)


def setting_given(text: str) -> tuple[str, Any]:
    """A setting of an engine by --set. Raises UsageError for what is none."""
    name, separator, word = text.partition("=")
    if not name or not separator:
        raise UsageError(f"--set {text!r} is not NAME=VALUE: type --set NAME=VALUE")
    return name, TRUTHS.get(word.lower(), scalar(word))


def _answer(
    name: str | None, config: SpeculationConfig | None, command: str | None, version: str | None
) -> dict[str, Any]:
    if command is not None:
        return _read(name, config, _split(command), version)
    if name is None:
        raise UsageError(f"which engine? type  breakeven engine {NAMES[0]} --method ngram --k 5")
    known = dialect(name)
    if config is None:
        raise UsageError(
            f"which way to speculate? type  breakeven engine {known.name} --method ngram --k 5, "
            'or  --command "…"  to read a command line'
        )
    return {
        "engine": known.name,
        "flags": known.line(config, version),
        "words": list(known.flags(config, version)),
        "files": known.files((), config, version),
        "warnings": list(known.warnings(config, (), version)),
    }


def _split(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"cannot read the command line ({error}): quote it as in a shell") from None


def _read(
    name: str | None, config: SpeculationConfig | None, argv: tuple[str, ...], version: str | None
) -> dict[str, Any]:
    """A command line as it is, without speculation, and with what it turns on or what is asked for."""
    known = _of(name, argv)
    on = known.speculation(argv)
    chosen = config or _writable(known, on, version)
    asked = config or on
    warnings = list(known.warnings(asked, argv, version)) if asked else []
    elsewhere = known.elsewhere(argv, {})
    address = known.address(argv, {})
    return {
        "engine": known.name,
        "speculation": None if on is None else on.describe(),
        "address": {"host": address.host, "port": address.port},
        "without": shown_argv(known.without(argv)),
        "with": shown_argv(known.with_speculation(argv, chosen, version)) if chosen else None,
        "files": {**known.files(argv, None), **(known.files(argv, chosen, version) if chosen else {})},
        "warnings": [*([elsewhere] if elsewhere else []), *warnings, *_hidden(argv)],
        "absent": _absent(on, chosen),
    }


def _writable(known: Dialect, on: SpeculationConfig | None, version: str | None) -> SpeculationConfig | None:
    """What a command line turns on; None for nothing, and for what would be refused if it were asked for: a
    line is read also where it is another version's."""
    with suppress(UsageError):
        if on is not None:
            known.flags(on, version)
            return on
    return None


def _of(name: str | None, argv: tuple[str, ...]) -> Dialect:
    if name is None:
        return dialect_of(argv)
    known = dialect(name)
    if not known.is_mine(argv):
        actual = dialect_of(argv)
        raise UsageError(f"this command starts {actual.title}, not {known.title}: type {actual.name}")
    return known


def _hidden(argv: tuple[str, ...]) -> list[str]:
    is_hidden = shown_argv(argv) != shlex.join(argv)
    return ["secrets are printed as ***: put them back before you use a line"] if is_hidden else []


def _absent(on: SpeculationConfig | None, chosen: SpeculationConfig | None) -> dict[str, str]:
    absent = {} if on else {"speculation": "the command line turns none on"}
    return absent if chosen else {**absent, "with": "no --method is given"}


def _print_command(answer: dict[str, Any]) -> None:
    console = stdout()
    title = dialect(answer["engine"]).title
    say(console, f"{title}, speculation: {line(answer['speculation'] or 'none', LONGEST)}", "bold")
    say(console, f"without: {line(answer['without'], LONGEST)}", wrap=False)
    if answer["with"] is not None:
        say(console, f"with:    {line(answer['with'], LONGEST)}", wrap=False)
    else:
        say(console, "To see it with speculation, add  --method ngram --k 5")
    for path, text in answer["files"].items():
        say(console, f"\n{line(path, LONGEST)} is to be written first:", "bold")
        say(console, text.rstrip(), wrap=False)
