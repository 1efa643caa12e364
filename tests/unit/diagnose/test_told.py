"""How a server drafts, by its own words."""

from pathlib import Path

import pytest

from breakeven.acceptance.logs.reader import read_log
from breakeven.diagnose.evidence import Drafting
from breakeven.diagnose.told import Told, told_by_config, told_by_log, told_by_trial
from breakeven.engines.llamacpp import candidate_settings
from breakeven.engines.speculation import SpeculationConfig

LOGS = Path(__file__).parents[2] / "golden" / "logs"


def test_a_captured_log_of_vllm_tells_method_window_and_lengths():
    with (LOGS / "vllm-0.32-dense-ngram.log").open("rb") as file:
        told = told_by_log(read_log(file).facts)
    assert (told.method, told.k) == ("ngram", 5)
    assert told.drafting("vllm") == Drafting("ngram", 5, told.max_n, told.max_n, min_left_out=True)


def test_a_log_without_speculation_tells_that_it_is_off():
    with (LOGS / "vllm-0.32-moe-base.log").open("rb") as file:
        assert told_by_log(read_log(file).facts) == Told(is_off=True)


def test_a_later_start_without_speculation_counts_and_a_method_counts_more():
    lines = [
        "SpeculativeConfig(method='ngram', model=None, num_spec_tokens=5)",
        "x, speculative_config=None, y",
    ]
    assert told_by_log(lines) == told_by_log(["speculative_algorithm=None"]) == Told(is_off=True)
    assert told_by_log(reversed(lines)).drafting("vllm") == Drafting("ngram", 5)
    assert not Told("eagle3").or_else(Told(is_off=True)).is_off


@pytest.mark.parametrize(
    ("line", "drafting"),
    [
        (
            "non-default args: {'port': 1, 'speculative_config': {'method': 'ngram', "
            "'num_speculative_tokens': 5, 'prompt_lookup_max': 4}}",
            Drafting("ngram", 5, 4, 4, min_left_out=True),
        ),
        (
            "model='m', speculative_config=SpeculativeConfig(method='eagle3', model='h', num_spec_tokens=3)",
            Drafting("eagle3", 3),
        ),
        (
            "server_args=ServerArgs(speculative_algorithm='EAGLE3', speculative_num_steps=3, "
            "speculative_eagle_topk=1, speculative_num_draft_tokens=4)",
            Drafting("eagle3", 3),
        ),
        (
            "server_args=ServerArgs(speculative_algorithm='NGRAM', speculative_num_draft_tokens=12)",
            Drafting("ngram", 11),
        ),
    ],
)
def test_lines_of_a_start(line: str, drafting: Drafting):
    assert told_by_log([line]).drafting("vllm") == drafting


@pytest.mark.parametrize(
    "line",
    [
        "'speculative_config': {'method': __import__('os')}",
        "'speculative_config': {'a': }",
        "'speculative_config': {1, 2}",
        "'speculative_config': {'method': 5, 'num_speculative_tokens': True}",
        "SpeculativeConfig(method='" + "x" * 100 + "', num_spec_tokens=5)",
        "'speculative_config': {'num_speculative_tokens': 99999999}",
    ],
)
def test_what_cannot_be_read_tells_nothing(line: str):
    told = told_by_log([line])
    assert (told.method, told.k) == (None, None)


def test_the_last_start_counts():
    lines = [f"SpeculativeConfig(method='ngram', model=None, num_spec_tokens={k})" for k in (5, 3)]
    assert told_by_log(lines).k == 3


@pytest.mark.parametrize(
    ("config", "lengths"),
    [
        ({"method": "ngram"}, (5, 5)),
        ({"method": "ngram", "prompt_lookup_max": 4}, (4, 4)),
        ({"method": "ngram", "prompt_lookup_min": 2}, (2, 2)),
        ({"method": "ngram", "prompt_lookup_min": 2, "prompt_lookup_max": 4}, (2, 4)),
        ({"prompt_lookup_max": 4}, (4, 4)),
        ({"method": "eagle3"}, (None, None)),
        ({"method": "ngram", "prompt_lookup_max": "4"}, (5, 5)),
    ],
)
def test_an_end_of_vllms_lookup_that_is_unset_is_as_the_other(config: dict, lengths: tuple):
    told = told_by_config(config)
    assert (told.min_n, told.max_n) == lengths


@pytest.mark.parametrize(
    ("config", "left_out"),
    [
        ({"prompt_lookup_max": 4}, True),
        ({"prompt_lookup_min": 4, "prompt_lookup_max": 4}, False),
        ({"prompt_lookup_min": 4}, False),
        ({}, False),
    ],
)
def test_whether_only_the_longest_was_said(config: dict, left_out: bool):
    told = told_by_config({"method": "ngram", **config})
    assert told.drafting("vllm").min_left_out == left_out
    assert Told(k=3).or_else(told).drafting("vllm").min_left_out == left_out
    assert not Told(max_n=4).or_else(told).drafting("vllm").min_left_out, "that is not of the server's words"


def test_settings_stay_as_the_engine_names_them():
    config = {
        "method": "ngram",
        "num_speculative_tokens": 5,
        "prompt_lookup_max": 4,
        "prompt_lookup_min": "x",
    }
    assert told_by_config(config).settings == {"prompt_lookup_max": 4}


@pytest.mark.parametrize(
    ("description", "drafting"),
    [
        (candidate_settings().describe(), Drafting("ngram-simple", 3, 3, 3)),
        (f"vLLM, {SpeculationConfig('ngram', 5, 2, 4).describe()}", Drafting("ngram", 5, 2, 4)),
        (f"vLLM, {SpeculationConfig('ngram', 5, 4, 4).describe()}", Drafting("ngram", 5, 4, 4)),
        (f"SGLang, {SpeculationConfig('eagle3', 3, draft='x').describe()}", Drafting("eagle3", 3)),
        ("vllm 0.32 at http://127.0.0.1:8000/v1, runs/a", Drafting(is_assumed=True)),
        ("no speculation, 1 thread", Drafting(is_assumed=True, is_off=True)),
    ],
)
def test_what_a_trial_keeps_of_its_candidate(description: str, drafting: Drafting):
    assert told_by_trial(description).drafting("llama.cpp") == drafting


def test_what_is_typed_counts_more_and_n_grams_go_together():
    typed, logged = Told(k=3, max_n=3), Told("ngram", 5, 2, 4, {"prompt_lookup_max": 4})
    both = typed.or_else(logged)
    assert (both.method, both.k, both.min_n, both.max_n) == ("ngram", 3, None, 3)
    assert both.drafting("vllm") == Drafting("ngram", 3, 3, 3)
    assert both.drafting("sglang") == Drafting("ngram", 3, None, 3)
