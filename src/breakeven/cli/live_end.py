"""What became of the candidates of a live service: the reports, a line for each, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.output import stdout
from breakeven.errors import ServerError
from breakeven.report.terminal import say
from breakeven.report.text import line
from breakeven.units import change

if TYPE_CHECKING:
    from breakeven.trial.outlook import Tried
    from breakeven.trial.result import TrialResult

UNTRIED = "untried"
"""Outcome of a trial that restarted nothing: it is neither faster nor slower."""
NO_VERDICT = "No verdict: "


def conclude(tried: Sequence[Tried], target: str, values: Mapping[str, Any], out: Path) -> int:
    """Prints what came out, and gives the exit code: 3 where all candidates that were tried failed (which is
    more than a verdict `refused`), else what the gate says."""
    from breakeven.report.html import write_trial_html
    from breakeven.report.live_json import live_json
    from breakeven.trial.store import load_record

    done = [one.result for one in tried if one.result is not None]
    for result in done:
        write_trial_html(result, result.run_dir / "report.html")
    fine = [result for result in done if load_record(result.run_dir).failed is None]
    best = max(fine or done, key=_speed, default=None)
    if values["as_json"]:
        options.print_json(live_json(tried, best, target, out / "baseline"))
    else:
        _print(tried, done, out)
    if done and not fine:
        click.echo(f"breakeven: the service is as it was found, but {_all_failed(done)}: see {out}", err=True)
        return ServerError.exit_code
    return options.gate(best.verdict.outcome if best else UNTRIED, values["fail_if"])


def _print(tried: Sequence[Tried], done: Sequence[TrialResult], out: Path) -> None:
    """The reports, and of several candidates a line for each, with empty lines in between."""
    from breakeven.report.terminal import print_trial

    for number, result in enumerate(done):
        if number:
            stdout().print()
        print_trial(result, stdout(), str(result.run_dir / "report.html"))
    if len(tried) > 1:
        if done:
            stdout().print()
        for one in tried:
            say(stdout(), became(one))
    if not done:
        click.echo(f"Nothing was restarted. The baseline: {out / 'baseline'}")


def became(one: Tried) -> str:
    """`ngram, k 5: faster, decode speed +8.0 %`."""
    speedup = one.result.comparison.speedup if one.result else None
    measured = f", decode speed {change(speedup.estimate)}" if speedup else ""
    told = f"{one.result.verdict.outcome}{measured}" if one.result else f"not tried: {one.skipped}"
    return f"{one.outlook.candidate.describe()}: {line(told, 500)}"


def ended(one: Tried) -> str:
    """The same of a candidate that was just tried, with why there is no verdict: the next may end alike."""
    verdict = one.result.verdict if one.result else None
    why = (
        f": {line(verdict.reason.removeprefix(NO_VERDICT), 1000)}"
        if verdict and verdict.outcome == "refused"
        else ""
    )
    return f"{became(one)}{why}"


def _all_failed(done: Sequence[TrialResult]) -> str:
    return "the candidate failed" if len(done) == 1 else f"all {len(done)} candidates that were tried failed"


def _speed(result: TrialResult) -> float:
    return result.comparison.speedup.estimate if result.comparison.speedup else 0.0
