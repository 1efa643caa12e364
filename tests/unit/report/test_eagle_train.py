"""How a training is shown, meanwhile and at its end."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from breakeven.eagle.stage import Made
from breakeven.eagle.train.records import Scores, Step, Validation
from breakeven.report.eagle_train import Shown, print_trained, trained_json

FOUND = {
    "steps": 1200,
    "stopped_early": False,
    "best_step": 1000,
    "k": 3,
    "acceptance_length": 2.345,
    "loss": 1.5,
    "loss_by_step": [1.0, 1.1],
    "acceptance": [0.713, None],
    "train_samples": 95,
    "validation_samples": 5,
    "layers": [2, 4, 5],
    "seconds": 61.0,
}
MADE = Made("train", {}, {}, {}, FOUND, {}, 0.0, 500.0)


def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def said(one: Console) -> str:
    assert isinstance(one.file, io.StringIO)
    return one.file.getvalue()


def shown(made: Made) -> str:
    one = console()
    print_trained(made, "eagle/train", one)
    return said(one)


def test_end():
    text = shown(MADE)
    assert "1,200 optimizer steps on 95 samples in 1 min 01 s" in text
    assert "best after step 1,000: acceptance length 2.35 with 3 draft tokens, loss 1.500" in text
    assert "71%, -" in text and "teacher-forced" in text and "eagle/train/best" in text
    assert trained_json(MADE, "eagle/train") == {"folder": "eagle/train", **FOUND}


def test_early_stop_is_told():
    assert "asked for is reached" in shown(replace(MADE, found={**FOUND, "stopped_early": True}))


def test_without_validation():
    text = shown(replace(MADE, found={**FOUND, "acceptance_length": None}))
    assert "training loss 1.500 at the end" in text and "best after" not in text


def test_meanwhile():
    one = console()
    with Shown(one) as watch:
        watch.begins(100, 40)
        watch.stepped(Step(41, 0, 2.5, (2.5,), (0.5,), 9, 1e-4, 1.0, 0.1))
        watch.validated(Validation(42, Scores(2.0, (2.0,), (0.25, None), 9), 1.25))
    assert said(one).splitlines() == [
        "going on after step 40 of 100",
        "eagle train, optimizer steps: 1 of 60 (loss 2.500, 50% of first drafts)",
        "after step 42: loss 2.000, acceptance length 1.25, by position 25%, -",
    ]


def test_a_batch_without_chains():
    one = console()
    with Shown(one) as watch:
        watch.begins(100, 0)
        watch.stepped(Step(1, 0, 2.5, (2.5,), (None,), 9, 1e-4, 1.0, 0.1))
    assert said(one) == "eagle train, optimizer steps: 1 of 100 (loss 2.500)\n"
