from dataclasses import replace

import numpy as np
import pytest

from breakeven.acceptance.record import DECILES, Acceptance
from breakeven.replay.records import Origin, Replay
from breakeven.report.replay_next import Next, after_replay, after_sweep
from tests.unit.report.replays import GREEDY, no_steps, replayed, row, swept

FLAGS = "--spec-type ngram-simple"
URLS = "breakeven trial --baseline-url URL --candidate-url URL"
FORECAST = (
    "Whether it would pay, before any restart:  breakeven forecast "
    f"{GREEDY.path} --calibration FILE  (of `breakeven calibrate URL`)"
)
NOTHING = Acceptance(6, 46, 40, np.array([(0, 0, 40)]), np.zeros((DECILES, 4), np.int64))


def llamacpp(origin: Origin) -> Replay:
    return replayed(drafter="llamacpp-ngram-simple", settings={}, flags=FLAGS, origin=origin)


@pytest.mark.parametrize(
    ("kind", "command", "note"),
    [
        ("trial", "breakeven trial … --candidate", "(… are the other options of that trial)"),
        ("run", "breakeven trial … --candidate", "(… are the model, prompts and lengths of that run)"),
        ("jsonl", "breakeven trial --candidate", "(name your --model and --prompts)"),
    ],
)
def test_a_trial_is_of_the_records_own_model_and_prompts(kind, command, note):
    then = after_replay(llamacpp(replace(GREEDY, kind=kind)))
    assert then == Next(f"{command} '{FLAGS}'", f"{note} {FORECAST}")


def test_only_the_embedded_engines_own_flags_become_a_candidate():
    assert after_replay(replayed()) == Next(URLS, FORECAST)
    assert after_replay(replayed(flags="")) is None
    assert after_sweep(swept()) == Next(URLS, FORECAST)
    best = replace(row("llamacpp-ngram-mod", 2.0, 0.5), engine="llama.cpp", flags=FLAGS)
    assert after_sweep(swept((best,))) == Next(
        f"breakeven trial … --candidate '{FLAGS}'",
        f"(… are the model, prompts and lengths of that run) {FORECAST}",
    )
    assert after_sweep(swept((replace(best, tokens_per_step=1.01),))) is None


def test_a_drafter_that_never_drafted_is_followed_by_a_sweep_of_the_same_record():
    one = replayed(total=NOTHING, origin=replace(GREEDY, path="my runs/a"))
    assert after_replay(one) == Next("breakeven replay 'my runs/a' --sweep", "(or a smaller n)")
    assert after_replay(replace(one, settings={"k": 2, "min_n": 1, "max_n": 4})).note == ""
    assert after_replay(replace(one, settings={"k": 2, "n": 2})).note == "(or a smaller n)"
    assert after_replay(replace(one, settings={})).note == ""
    text = replace(one, origin=Origin("a.jsonl", "text", None, "tokenizer"), first_token="replayed")
    command = after_replay(text).command
    assert command == "breakeven replay a.jsonl --sweep --tokenizer … --first-token replayed"


def test_nothing_follows_where_there_was_no_step():
    assert after_replay(no_steps()) is None


def test_the_forecast_of_text_needs_its_tokenizer_too():
    then = after_replay(replayed(origin=Origin("a b.jsonl", "text", None, "tokenizer")))
    assert "breakeven forecast 'a b.jsonl' --tokenizer … --calibration FILE" in then.note
