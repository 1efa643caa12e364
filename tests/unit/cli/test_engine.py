"""`breakeven engine`: what its help names, and what it refuses of the guard."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from breakeven.cli.engine import engine
from breakeven.cli.trial import trial
from breakeven.engines.speculation import METHODS
from breakeven.errors import UsageError


@pytest.mark.parametrize("verb", [engine, trial])
def test_every_method_that_is_taken_is_named(verb: click.Command):
    asked = {param.name: param for param in verb.params if isinstance(param, click.Option)}
    help_ = asked["method"].help
    assert help_ is not None and all(method in help_.split(", ") for method in METHODS)


def test_the_guard_is_vllms():
    told = CliRunner().invoke(engine, ["vllm", "--method", "guard", "--k", "6"], catch_exceptions=False)
    assert '"model":"breakeven.guard.vllm.GuardedNgram","num_speculative_tokens":6' in told.stdout
    with pytest.raises(UsageError, match="the guard is for vLLM only"):
        CliRunner().invoke(engine, ["sglang", "--method", "guard"], catch_exceptions=False)
    with pytest.raises(UsageError, match=r"breakeven guard vllm-config --help"):
        words = ["vllm", "--method", "guard", "--set", "epsilon=0.01"]
        CliRunner().invoke(engine, words, catch_exceptions=False)
