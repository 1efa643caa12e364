"""What is to be typed after a simulation is taken as it stands, where something pays."""

from __future__ import annotations

import shlex

from click.testing import CliRunner

from breakeven.cli import breakeven
from breakeven.guard.settings import GuardSettings
from breakeven.guard.simulate.next_steps import TRIAL, next_commands
from tests.unit.report.guards import fixed, played, simulation

SLOW = played("guard", "guard", 0.99, 0.98)


def test_the_guard_and_a_trial_of_it():
    assert next_commands(simulation()) == ("breakeven guard vllm-config", TRIAL)


def test_what_was_set_is_set_again():
    made = simulation(settings=GuardSettings(epsilon=0.005, most_tokens=6))
    words = "breakeven guard vllm-config --calibration 'runs/a b' --epsilon 0.5% --most-tokens 6"
    assert next_commands(made, "runs/a b")[0] == words
    told = CliRunner().invoke(
        breakeven, [*shlex.split(words)[1:3], "--epsilon", "0.5%", "--most-tokens", "6"]
    )
    assert told.exit_code == 0 and "0.005" in told.stdout


def test_without_a_seam_the_best_static_setting():
    made = simulation(engine="llama.cpp", has_seam=False, guard=SLOW)
    assert next_commands(made, "runs/curve") == (
        "llama-server … --flags-of 3",
        "breakeven trial … --candidate '--flags-of 3'",
    )


def test_nothing_where_nothing_pays():
    assert next_commands(simulation(guard=SLOW)) == ()
    assert next_commands(simulation(engine="llama.cpp", has_seam=False, fixed=())) == ()
    assert next_commands(simulation(engine="llama.cpp", has_seam=False, fixed=(fixed(3, 0.9, 0.8),))) == ()
