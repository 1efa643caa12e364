"""`breakeven drafters`: which drafters can be replayed, and their settings."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.output import stdout
from breakeven.drafters.naming import value_words
from breakeven.drafters.settings import number
from breakeven.report.replay_words import engine_name
from breakeven.report.terminal import say
from breakeven.report.text import line


@click.command()
@click.argument("name", required=False)
@options.json_option
def drafters(name: str | None, as_json: bool) -> None:
    """List the drafters that `breakeven replay` knows, or show one with its settings and its flags.

    \b
    breakeven drafters
    breakeven drafters vllm-ngram
    breakeven drafters my_module:MyDrafter --json
    """
    from breakeven.drafters.registry import BUILT_IN

    if name is None:
        found = [described(each) for each in BUILT_IN]
        if as_json:
            options.print_json({"drafters": found})
        else:
            _print_all(found)
        return
    one = described(name)
    if as_json:
        options.print_json(one)
    else:
        _print_one(one)


def described(name: str) -> dict[str, Any]:
    """A drafter in plain types, `absent` beside each null. Raises UsageError for a name that is none."""
    from breakeven.drafters.registry import drafter_class, make_drafter

    cls, drafter = drafter_class(name), make_drafter(name, {})
    flags = drafter.flags()
    return {
        "name": name,
        "engine": cls.engine,
        "summary": cls.summary,
        "learns": cls.learns,
        "steps_matter": cls.steps_matter,
        "settings": [_setting(spec) for spec in fields(cls.Config)],
        "flags": flags or None,
        "absent": {} if flags else {"flags": "it names none that turn it on in an engine"},
    }


def _setting(spec: Field[Any]) -> dict[str, Any]:
    default = spec.default if spec.default_factory is MISSING else spec.default_factory()
    limits = {end: spec.metadata.get(end) for end in ("low", "high")}
    absent = {} if default is not None else {"default": "unset: the help says what then"}
    absent |= {end: "no limit" for end, limit in limits.items() if limit is None}
    return {
        "name": spec.name,
        "default": default,
        **limits,
        "help": spec.metadata.get("help", ""),
        "absent": absent,
    }


def _print_all(found: list[dict[str, Any]]) -> None:
    console = stdout()
    for one in found:
        say(console, f"{one['name']} ({engine_name(one['engine'])})", "bold")
        say(console, f"  {line(one['summary'])}")
        settings = ", ".join(f"{_default(each)}{_limits(each)}" for each in one["settings"])
        if settings:
            say(console, f"  {line(settings, 500)}", "dim")
    say(console, "\nOne of them with what its settings mean: breakeven drafters NAME", wrap=False)


def _print_one(one: dict[str, Any]) -> None:
    console = stdout()
    say(console, f"{line(one['name'])} ({engine_name(one['engine'])})", "bold")
    say(console, line(one["summary"], 500))
    if one["learns"]:
        say(console, "It keeps what it saw for later requests: the order of the record matters.")
    if one["steps_matter"]:
        say(console, "Its drafts depend on where earlier steps ended: there is no --per-position of it.")
    console.print()
    for each in one["settings"]:
        say(console, f"{_default(each)}{_limits(each)}: {line(each['help'], 500)}")
    if one["flags"]:
        say(console, f"\nFlags: {line(one['flags'], 1000)}", wrap=False)
    else:
        say(console, f"\nFlags: none ({one['absent']['flags']})")


def _default(setting: dict[str, Any]) -> str:
    return f"{setting['name']}={value_words(setting['default'])}"


def _limits(setting: dict[str, Any]) -> str:
    if setting["low"] is None or setting["high"] is None:
        return ""
    return f" ({number(setting['low'])} to {number(setting['high'])})"
