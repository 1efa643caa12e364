"""The evaluation of a head on a terminal: what passes, by place and category, and beside other drafters."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from breakeven.eagle.evaluate.journal import COLUMN
from breakeven.eagle.evaluate.records import DEFINITIONS, Combined, Evaluation, Part, Rival, Share
from breakeven.interval import Interval
from breakeven.report.replay_words import PAYS
from breakeven.report.terminal import print_grid, say
from breakeven.report.text import line
from breakeven.units import ABSENT, between, count, ratio, share, shares

SETTINGS = ("k", "min_n", "max_n")
"""Of a drafter, that tell its rows apart."""


def print_evaluation(made: Evaluation, record: Path, console: Console) -> None:
    """The answer, what it is made of, and everything that qualifies it; `record` is the replies' file."""
    _print_answer(made, console)
    _print_chained(made, console)
    _print_forced(made, console)
    _print_categories(made.by_category, console)
    _print_rivals(made.rivals, made.combined, console)
    console.print()
    for note in made.warnings:
        say(console, f"! {line(note, 1000)}", "yellow")
    say(console, PAYS)
    for command in next_commands(made, record):
        say(console, f"Next: {line(command, 1000)}", wrap=False)


def next_commands(made: Evaluation, record: Path) -> tuple[str, str]:
    """The head's acceptance at every token, and whether it would pay beside drafters without training."""
    path = shlex.quote(str(record))
    rates = ",".join(
        f"{one.estimate:.3f}" for one in made.total.chained.accepted_by_position if one is not None
    )
    return (
        f"breakeven replay {path} --drafter recorded --set source={COLUMN} --k {made.k} --per-position",
        f"breakeven forecast {path} --calibration FILE --method eagle3 --per-position {rates}",
    )


def _print_answer(made: Evaluation, console: Console) -> None:
    part, chained = made.total, made.total.chained
    replies = "1 held-out reply" if part.replies == 1 else f"{part.replies:,} held-out replies"
    tokens = count(part.output_tokens, "output token")
    say(console, f"{line(made.head, 300)}: {replies}, {tokens}", "bold", wrap=False)
    console.print()
    per_step, length = _number(chained.tokens_per_step), _number(chained.acceptance_length)
    say(console, f"At k = {made.k}: tokens per step {per_step}, acceptance length {length}.", "bold")
    counters = chained.acceptance.counters
    say(console, f"{counters.accepted_tokens:,} of {counters.drafted_tokens:,} drafted tokens were accepted.")


def _print_chained(made: Evaluation, console: Console) -> None:
    chained = made.total.chained
    columns = {"accepted": chained.accepted_by_position, "of those so far": chained.conditional_by_position}
    _print_places(columns, console)
    say(console, f"chained: {DEFINITIONS['chained']}", "dim")
    say(console, f"accepted = {DEFINITIONS['accepted_by_position']}", "dim")
    say(console, f"of those so far = {DEFINITIONS['conditional_by_position']}", "dim")


def _print_forced(made: Evaluation, console: Console) -> None:
    forced = made.total.teacher_forced
    columns = {"agrees": forced.agreement_by_position, "Σ min(p, q)": forced.overlap_by_position}
    if forced.sampled_by_position:
        columns["sampled"] = forced.sampled_by_position
    _print_places(columns, console)
    say(console, f"teacher-forced: {DEFINITIONS['teacher_forced']}", "dim")
    say(console, f"agrees = {DEFINITIONS['agreement_by_position']}", "dim")
    at = f"temperature {made.temperature:g}"
    say(console, f"Σ min(p, q) = {DEFINITIONS['overlap_by_position']}".replace("this temperature", at), "dim")
    if forced.sampled_by_position:
        say(console, f"sampled = {DEFINITIONS['sampled_by_position']}", "dim")


def _print_places(columns: Mapping[str, Sequence[Share]], console: Console) -> None:
    places = zip(*columns.values(), strict=True)
    rows = {str(place): tuple(map(_share, row)) for place, row in enumerate(places, 1)}
    console.print()
    print_grid("place in draft", tuple(columns), rows, console)


def _print_categories(by_category: Mapping[str, Part], console: Console) -> None:
    if len(by_category) < 2:
        return
    rows = {
        line(name, 30): (
            f"{part.replies:,}",
            _number(part.chained.tokens_per_step),
            _number(part.chained.acceptance_length),
            _share(part.chained.accepted_by_position[0]),
        )
        for name, part in by_category.items()
    }
    console.print()
    print_grid("category", ("replies", "tokens/step", "acceptance length", "first accepted"), rows, console)


def _print_rivals(rivals: Sequence[Rival], combined: Combined, console: Console) -> None:
    rows = {
        f"{rival.drafter} {_settings(rival)}": (
            f"{rival.tokens_per_step:.2f}",
            share(rival.counters.acceptance_rate),
            share(rival.counters.draft_share),
        )
        for rival in rivals
    }
    console.print()
    print_grid("drafter", ("tokens/step", "acceptance", "draft share"), rows, console)
    gain, chosen = combined.gain, ", ".join(f"{name} for {n:,}" for name, n in combined.chosen.items())
    say(
        console,
        f"Combined, in hindsight: {combined.tokens_per_step:.2f} tokens per step, {ratio(gain.estimate)} "
        f"({ratio(gain.low)} to {ratio(gain.high)}) those of {combined.best_single} alone; {chosen}.",
    )
    say(console, f"combined = {DEFINITIONS['combined']}. What drafting costs is not in it.", "dim")


def _settings(rival: Rival) -> str:
    return " ".join(f"{name}={value}" for name, value in rival.settings.items() if name in SETTINGS)


def _number(value: Interval | None) -> str:
    return ABSENT if value is None else f"{value.estimate:.2f} ({between(value.low, value.high)})"


def _share(value: Share) -> str:
    return ABSENT if value is None else f"{share(value.estimate)} ({shares(value.low, value.high)})"
