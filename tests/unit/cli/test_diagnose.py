"""`breakeven diagnose`: what it is pointed at, and what is refused before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from breakeven.cli.diagnose import diagnose
from breakeven.cli.diagnose_readings import readings_of
from breakeven.diagnose.evidence import Drafting
from breakeven.diagnose.readings import Readings
from breakeven.errors import UsageError

GOLDEN = Path(__file__).parents[2] / "golden"
LOG = str(GOLDEN / "logs" / "vllm-0.32-dense-ngram.log")
BASE = str(GOLDEN / "logs" / "vllm-0.32-moe-base.log")
LLAMA = str(GOLDEN / "logs" / "llamacpp-24536.log")
EXAMPLE = str(Path(__file__).parents[3] / "examples" / "kimi-k2.5-ngram")
THREE = '{"num_speculative_tokens": 3}'
MODEL = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm")


def readings(*words: str) -> Readings:
    """What the command line reads, without what it concludes."""
    context = diagnose.make_context("diagnose", list(words))
    values: dict[str, Any] = dict(context.params)
    with context:
        return readings_of(values.pop("record"), values)


def test_a_log_says_how_it_drafts():
    read = readings("--logs", LOG)
    assert read.log is not None and read.log.engine == "vllm"
    assert (read.told.method, read.told.k) == ("ngram", 5)
    assert read.case is None and read.cost is None and read.candidate is None


def test_what_is_typed_counts_more_than_the_log():
    read = readings("--logs", LOG, "--k", "5", "--min-n", "2", "--max-n", "4", "--engine", "vllm")
    assert read.told.drafting(read.engine) == Drafting("ngram", 5, 2, 4)


def test_a_cost_without_speeds_is_for_the_replay_and_the_window():
    read = readings("--logs", LOG, "--baseline-logs", BASE, *MODEL)
    assert read.case is None and read.cost is not None
    assert read.baseline_log is not None and read.baseline_log.counters is None


def test_what_is_typed_of_the_batch_and_the_drafts_is_read_without_two_speeds():
    words = ("--concurrency", "8", "--context", "900", "--acceptance", "0.2-0.4", "--draft-share", "0.5")
    read = readings("--logs", LOG, *words)
    assert (read.sequences, read.context_tokens) == (8, 900)
    assert (read.acceptance_rate, read.draft_share) == ((0.2, 0.4), (0.5, 0.5))


def test_the_experiment():
    read = readings(EXAMPLE)
    assert read.case is not None and (read.case.k, read.case.tp, read.case.method) == (5, 8, "ngram")
    assert read.case.settings == {"prompt_lookup_max": 4}
    assert read.case.profiled_s == {"all_reduce": 0.0062}
    assert read.told.drafting("vllm") == Drafting("ngram", 5, 4, 4, min_left_out=True)
    assert read.log is not None and read.replies is not None
    assert len(read.observations) == 4


def test_what_is_typed_counts_more_than_the_experiment():
    read = readings(EXAMPLE, "--tp", "4", "--logs", LOG)
    assert read.case is not None and read.case.tp == 4
    assert read.log is not None and read.log.lines > 10


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "what is to be diagnosed"),
        (("--k", "5"), "what is to be diagnosed"),
        (("--logs", "/nowhere"), "cannot be read"),
        (("--logs", LOG, "--baseline-logs", LOG), "are both"),
        (("--logs", LOG, "--unit", "x"), "two logs"),
        (("--logs", LOG, "--hardware", "h100-sxm"), "--model missing"),
        (
            ("--logs", LOG, "--k", "5", "--speculative-config", '{"num_speculative_tokens": 3}'),
            "leave one out",
        ),
        (("--logs", LOG, "--min-n", "5", "--max-n", "2"), "swap them"),
        (("--logs", LOG, "--speculative-config", "{"), "no JSON object"),
        ((str(GOLDEN),), "is no run, no trial"),
        (("/nowhere",), "no folder"),
        ((str(GOLDEN), str(GOLDEN), str(GOLDEN)), "name one run, or two"),
        (("--url", "ftp://x"), "neither http nor https"),
        (("--logs", LOG, "--engine", "vLLM", "--tp", "2"), "missing"),
        (("--logs", LOG, "--engine", "sglang"), "of another server"),
        (("--logs", LOG, "--baseline-logs", LLAMA), "of another server"),
        (("--logs", LOG, "--k", "10"), "a window of 10 was typed"),
        (("--logs", BASE, "--baseline-logs", LOG), "only the baseline drafted"),
        (("--logs", LOG, "--seconds", "5"), "type --url"),
    ],
)
def test_what_cannot_be(words: tuple[str, ...], said: str):
    with pytest.raises(UsageError, match=said):
        readings(*words)


@pytest.mark.parametrize("words", [("--seconds", "0"), ("--seconds", "nan"), ("--min-n", "0"), ("--nope",)])
def test_options_out_of_range(words: tuple[str, ...]):
    with pytest.raises(click.UsageError):
        readings("--logs", LOG, *words)


def test_a_log_of_no_engine(tmp_path: Path):
    (tmp_path / "other").write_text("a line\nof something else\n")
    with pytest.raises(UsageError, match="of an engine that is known"):
        readings("--logs", str(tmp_path / "other"))


def test_an_empty_log(tmp_path: Path):
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match="is empty"):
        readings("--logs", str(tmp_path / "empty"))
