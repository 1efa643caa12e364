"""experiment.toml: what is read of it, and what is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from breakeven.cli import experiment
from breakeven.cli.experiment import FILE, is_experiment, read_experiment
from breakeven.errors import UsageError
from breakeven.explain.records import Observation

EXAMPLE = Path(__file__).parents[3] / "examples" / "kimi-k2.5-ngram"
PROMPT = '[[prompts]]\nname = "a"\nbaseline_tok_s = 100\ncandidate_tok_s = 50\n'


def read(folder: Path, text: str) -> experiment.Experiment:
    (folder / FILE).write_text(text)
    return read_experiment(folder)


def test_the_example():
    made = read_experiment(EXAMPLE)
    assert is_experiment(EXAMPLE) and not is_experiment(EXAMPLE.parent)
    assert made.options["model"] == "kimi-k2.5" and made.options["engine_version"] == "0.16"
    assert made.options["profiled"] == (("all_reduce", 0.0062),)
    assert json.loads(made.options["speculative_config"])["prompt_lookup_max"] == 4
    assert [one.name for one in made.observations] == ["coding", "math", "structured", "explanatory"]
    assert {one.acceptance_rate for one in made.observations} == {(0.17, 0.31)}
    assert all(one.draft_share is None and one.draft_tokens is None for one in made.observations)
    assert made.replies is not None
    assert (made.replies.requests, made.replies.truncated_in_reasoning) == (5, 1)
    assert made.logs == EXAMPLE / "candidate.log" and made.baseline_logs is None


def test_the_form_in_its_docstring_is_read(tmp_path: Path):
    assert experiment.__doc__ is not None
    made = read(tmp_path, experiment.__doc__.partition("\n\n")[2])
    assert made.options["tp"] == 8 and len(made.observations) == 1


def test_what_a_prompt_says_counts_more(tmp_path: Path):
    text = f"acceptance = 0.5\ndraft_share = [0.1, 0.2]\n{PROMPT}acceptance = [0.2, 0.3]\n{PROMPT}"
    first, second = read(tmp_path, text).observations
    assert first == Observation("a", 0.01, 0.02, (0.2, 0.3), (0.1, 0.2))
    assert second.acceptance_rate == (0.5, 0.5)
    assert read(tmp_path, PROMPT).replies is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("modle = 'x'", r"'modle' is not known \(did you mean model\?\)"),
        ("model = 5", "model is '5': write a text"),
        ("tp = true", "tp is 'True': write a number"),
        ("tp = 0", "tp is 0: write 1 or more"),
        ("context = nan", "context is nan"),
        ("acceptance = [0.5, 0.2]\n" + PROMPT, "write a share of 0 to 1"),
        ("acceptance = [0.1, 0.2, 0.3]\n" + PROMPT, "write a share of 0 to 1"),
        ("acceptance = 17\n" + PROMPT, "write a share of 0 to 1"),
        ("acceptance = ['a', 'b']\n" + PROMPT, "is no number"),
        ("acceptance = nan\n" + PROMPT, "no number that can be"),
        (f"acceptance = 1{'0' * 400}\n" + PROMPT, "no number that can be"),
        (f"[profiled]\nall_reduce = 1{'0' * 400}", "no number that can be"),
        ("[profiled]\nall_reduce = nan", "no number that can be"),
        (f"tp = 0x{'f' * 5000}", "thousands of digits"),
        (f"model = 0x{'f' * 5000}", "thousands of digits"),
        (f"speculative_config = {{k = 0x{'f' * 5000}}}", "no engine takes"),
        (f"[[prompts]]\nname = 'a'\nbaseline_tok_s = 0x{'f' * 5000}\ncandidate_tok_s = 5", "of digits"),
        ("[profiled]\nall_reduce = 'x'", "profiled all_reduce: 'x' is no number"),
        ("prompts = [5]", "it is no table"),
        ("[[prompts]]\nname = 'a'\nspeed = 5", "'speed' is not known"),
        ("[[prompts]]\nname = 'a'\nbaseline_tok_s = 5", "candidate_tok_s is None"),
        ("[[prompts]]\nname = 'a'\nbaseline_tok_s = inf\ncandidate_tok_s = 5", "baseline_tok_s is inf"),
        ("[[prompts]]\nname = 'a'\nbaseline_tok_s = 0\ncandidate_tok_s = 5", "baseline_tok_s is 0"),
        ("[[prompts]]\nbaseline_tok_s = 5\ncandidate_tok_s = 5", "write  name"),
        ("a = [" * 5000, "is no TOML"),
        ("= 5", "is no TOML"),
        ("#" * 1_000_001, "more than 1,000,000 bytes"),
    ],
)
def test_what_cannot_be(text: str, said: str, tmp_path: Path):
    with pytest.raises(UsageError, match=said):
        read(tmp_path, text)


def test_bytes_that_are_no_text(tmp_path: Path):
    (tmp_path / FILE).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is no TOML"):
        read_experiment(tmp_path)
