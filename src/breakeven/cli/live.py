"""A trial on a live service: measure it as it runs, forecast, ask, and only then change and restart it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli import options
from breakeven.cli.live_end import conclude, ended
from breakeven.cli.live_options import candidates, plan_file
from breakeven.cli.live_outlook import cost_values, outlooks
from breakeven.cli.live_service import find_service
from breakeven.cli.live_words import forecast_words, restart_words
from breakeven.cli.output import stderr
from breakeven.client.loop import session
from breakeven.errors import UsageError
from breakeven.report.terminal import say
from breakeven.report.text import clean, line
from breakeven.servers.lifecycle import START_LIMIT_S
from breakeven.servers.occupied import occupied

if TYPE_CHECKING:
    from breakeven.trace.run import Run
    from breakeven.trial.live import Basis, LivePlan, Service
    from breakeven.trial.outlook import Outlook, Tried
    from breakeven.trial.plan import TrialPlan

BEFORE = """
Before a candidate's restart: the baseline's replies are replayed with its drafter, what came out is shown
beside the change, and you are asked whether to go on (--yes: you are not)
"""


def live(values: Mapping[str, Any], trial: TrialPlan) -> int:
    """Runs the trial, prints what came out, and gives the exit code. Raises BreakevenError."""
    plan, command = _plan(values, trial), _command(values)
    _check_cost(values)
    out = options.new_run_dir("trial", values["out"])
    wake_sudo(values)
    with session() as loop:
        service = loop.run(find_service(values, command, plan.candidates, out / "server.log"))
        try:
            if values["dry_run"]:
                return _dry_run(loop, service, plan, values)
            shown = f"breakeven show {out / 'baseline'}"
            with occupied(service.found.target), options.keeping(out / "baseline", shown):
                tried = _trial(loop, service, plan, values, out)
        finally:
            loop.run(_end(service))
    return conclude(tried, service.found.target, values, out)


def _plan(values: Mapping[str, Any], trial: TrialPlan) -> LivePlan:
    from breakeven.trial.live import LivePlan

    found = candidates(values)
    if values["keep_if"] and values["as_new_unit"]:
        raise UsageError("--as-new-unit lasts until a reboot: leave it out, or --keep-if")
    if values["keep_if"] and len(found) > 1:
        raise UsageError("--keep-if leaves one winner on: name one candidate, or leave it out")
    return LivePlan(
        trial,
        found,
        values["order"] or "ABA",
        values["start_limit"] or START_LIMIT_S,
        values["keep_if"],
    )


def _command(values: Mapping[str, Any]) -> tuple[str, ...]:
    plan = plan_file()
    return values["command"] or (plan.command if plan else ())


def _check_cost(values: Mapping[str, Any]) -> None:
    """Raises UsageError for options of the cost that cannot be, before anything is measured."""
    from breakeven.cli.cost_options import choose_cost

    given = cost_values(values)
    if given is None:
        if values["if_forecast_above"] is not None and not values["calibrate"]:
            raise UsageError(
                "--if-forecast-above needs the cost of a step: type --calibrate, --calibration FILE, or "
                "--geometry X --hardware Y"
            )
        return
    if values["calibrate"]:
        raise UsageError("--calibrate measures what a step costs: leave it out, or what else says so")
    choose_cost(given)


def _dry_run(loop: asyncio.Runner, service: Service, plan: LivePlan, values: Mapping[str, Any]) -> int:
    from breakeven.trial.live import dry_run

    would = dry_run(service, plan, loop.run(service.lifecycle.state())) + BEFORE
    if values["as_json"]:
        options.print_json({"server": service.found.target, "dry_run": would.splitlines()})
    else:
        click.echo(clean(would).rstrip("\n"))
    return 0


async def _end(service: Service) -> None:
    """A server that breakeven started itself ends with it."""
    from breakeven.servers.process import ProcessServer

    if isinstance(service.lifecycle, ProcessServer):
        await service.lifecycle.stop()


def _trial(
    loop: asyncio.Runner, service: Service, plan: LivePlan, values: Mapping[str, Any], out: Path
) -> list[Tried]:
    from breakeven.cli.live_watch import LiveWatch
    from breakeven.trial.live import basis_of, measure_baseline, refuse_void, try_candidate
    from breakeven.trial.outlook import Tried, by_promise

    _refuse_taken(service)
    with LiveWatch() as watch:
        baseline = loop.run(measure_baseline(service, plan, out, watch))
    bases = {one.describe(): basis_of(plan, service.dialect, one, baseline) for one in plan.candidates}
    refuse_void(list(bases.values()), baseline)
    calibration = _calibrate(loop, service, values, out) if values["calibrate"] else None
    found, basis, doubts = outlooks(service, plan, baseline, values, calibration)
    of_bases = [said for one in bases.values() for said in one.doubts]
    _say_beside(service, plan, baseline, basis, [*of_bases, *doubts])
    tried: list[Tried] = []
    for outlook in by_promise(found):
        folder = out if len(found) == 1 else out / f"candidate-{len(tried) + 1}"
        on = bases[outlook.candidate.describe()]
        skipped = on.void or _skips(outlook, tried, values)
        if skipped or (skipped := _declines(service, plan, outlook, baseline, on, values)):
            say(stderr(), f"{outlook.candidate.describe()} is not tried: {line(skipped, 500)}")
            tried.append(Tried(outlook, skipped=skipped))
            continue
        wake_sudo(values)
        with LiveWatch() as watch:
            going = try_candidate(service, plan, outlook.candidate, folder, watch, baseline.path)
            tried.append(Tried(outlook, loop.run(going)))
        if len(found) > 1:
            say(stderr(), ended(tried[-1]))
    return tried


def _refuse_taken(service: Service) -> None:
    """Raises UsageError where a trial is under way on it, or is to be recovered: before it is measured."""
    from breakeven.servers.state_folder import name_of
    from breakeven.servers.undo_journal import SUFFIX, journals_folder, refuse_taken

    target = service.found.target
    refuse_taken(journals_folder() / f"{name_of(target)}{SUFFIX}", target)


def _calibrate(loop: asyncio.Runner, service: Service, values: Mapping[str, Any], out: Path) -> Path:
    """The curve of the baseline as it runs. Raises UsageError where it tells too little to forecast from."""
    from breakeven.cli.calibrate import calibration_plan, measure_curve

    folder = out / "calibration"
    plan = calibration_plan({**values, "quick": True, "max_concurrency": None})
    measure_curve(loop.run, service.endpoint, plan, folder, values)
    return folder


def _say_beside(service: Service, plan: LivePlan, baseline: Run, basis: str, doubts: Sequence[str]) -> None:
    warnings = service.warnings(plan.candidates, baseline.meta.server.version)
    if basis:
        say(stderr(), line(basis, 1000))
    for words in dict.fromkeys((*warnings, *_counted(service, baseline), *doubts)):
        say(stderr(), f"! {line(words, 1000)}", "yellow")


def _counted(service: Service, baseline: Run) -> tuple[str, ...]:
    """Speculation that its counters tell of, and its command line does not."""
    from breakeven.forecast.anchor import speculated

    if service.speculation is not None or not speculated(baseline):
        return ()
    return (
        "it speculated while it was measured, by its counters, though its command line does not say so: the "
        "trial compares with that, not with no speculation",
    )


def _skips(outlook: Outlook, tried: Sequence[Tried], values: Mapping[str, Any]) -> str | None:
    from breakeven.trial.outlook import reason_to_skip

    above = values["if_forecast_above"]
    if above is not None and outlook.speedup is None:
        return f"--if-forecast-above {above:g} needs a forecast, and there is none: {outlook.words}"
    speedups = [one.result.comparison.speedup for one in tried if one.result is not None]
    return reason_to_skip(outlook, above, [one for one in speedups if one is not None])


def _declines(
    service: Service,
    plan: LivePlan,
    outlook: Outlook,
    baseline: Run,
    basis: Basis,
    values: Mapping[str, Any],
) -> str | None:
    """Show the change and what is expected of it; None to go on. Raises UsageError where nobody can say."""
    argv = service.candidate_argv(outlook.candidate, baseline.meta.server.version)
    click.echo(clean(service.lifecycle.diff(service.found, argv)).rstrip("\n"), err=True)
    if outlook.words:
        say(stderr(), f"{outlook.candidate.describe()}: {line(outlook.words, 1000)}")
    told = (forecast_words(outlook), restart_words(service, plan), basis.left_out)
    question = f"{'; '.join(filter(None, told))}; go on?"
    if values["yes"]:
        say(stderr(), f"{question} yes (--yes)")
        return None
    if not can_ask():
        say(stderr(), question)
        raise UsageError(
            f"nobody can be asked here, and nothing was restarted: type --yes to go on; the baseline is "
            f"kept in {baseline.path}"
        )
    try:
        return None if click.confirm(question, err=True) else "you said no"
    except click.Abort as abort:
        what = outlook.candidate.describe()
        abort.add_note(f"nothing was restarted for {what}; the baseline is kept in {baseline.path}")
        raise


def can_ask() -> bool:
    """Whether somebody is at the terminal."""
    return sys.stdin.isatty()


def wake_sudo(values: Mapping[str, Any]) -> None:
    """Let it ask for the password now, where somebody can answer: afterwards nobody may be there, and each
    look at the server keeps it awake."""
    from breakeven.servers.sudo_host import SUDO

    if not (values["sudo"] and can_ask()):
        return
    with suppress(OSError):
        if subprocess.run((*SUDO, "id", "-u"), capture_output=True, check=False).returncode:
            subprocess.run(("sudo", "-v"), check=False)
