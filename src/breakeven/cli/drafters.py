"""`breakeven drafters`: which drafters can be replayed, and their settings."""

from __future__ import annotations

import math
from dataclasses import MISSING, Field, fields
from typing import Any

import click

from breakeven.cli import options
from breakeven.cli.output import stdout
from breakeven.errors import UsageError
from breakeven.report.replay_words import engine_name, value_words
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
    from breakeven.drafters.registry import drafter_class

    cls = drafter_class(name)
    try:
        flags = cls(cls.Config()).flags()
        missing = "it names none that turn it on in an engine"
    except (TypeError, UsageError):
        flags, missing = "", "it has a setting without a default"
    return {
        "name": name,
        "engine": cls.engine,
        "summary": cls.summary,
        "learns": cls.learns,
        "steps_matter": cls.steps_matter,
        "settings": [_setting(spec) for spec in fields(cls.Config)],
        "flags": flags or None,
        "absent": {} if flags else {"flags": missing},
    }


def _setting(spec: Field[Any]) -> dict[str, Any]:
    default = None if spec.default is MISSING else spec.default
    low, high = spec.metadata.get("low", -math.inf), spec.metadata.get("high", math.inf)
    absent = {}
    if default is None:
        absent["default"] = (
            "it has to be set" if spec.default is MISSING else "unset: the help says what then"
        )
    absent |= {end: "no limit" for end, limit in (("low", low), ("high", high)) if math.isinf(limit)}
    return {
        "name": spec.name,
        "default": default,
        "low": None if math.isinf(low) else low,
        "high": None if math.isinf(high) else high,
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
    if setting["absent"].get("default") == "it has to be set":
        return f"{setting['name']} (to be set)"
    return f"{setting['name']}={value_words(setting['default'])}"


def _limits(setting: dict[str, Any]) -> str:
    low, high = setting["low"], setting["high"]
    if low is None and high is None:
        return ""
    if high is None:
        return f" ({low:g} or more)"
    return f" (up to {high:g})" if low is None else f" ({low:g} to {high:g})"
