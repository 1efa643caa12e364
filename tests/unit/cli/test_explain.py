"""`breakeven explain`: options that cannot be, refused before anything is counted from them."""

from __future__ import annotations

import click
import pytest

from breakeven.cli.case_options import told_of
from breakeven.cli.explain import explain
from breakeven.errors import UsageError

H100 = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm")
SPEEDS = ("--speeds", "62.6,46.4")


@pytest.mark.parametrize("speeds", ["1e-300,1", "1,1e-300", "1e308,1e308", "nan,1", "1,inf", "0,1", "-1,1"])
def test_speeds_that_no_model_has(speeds: str):
    with pytest.raises(UsageError, match=r"is no speed: type two numbers from 1e-06 to 1e\+09"):
        explain.main(["--speeds", speeds, "--k", "5", *H100], standalone_mode=False)


@pytest.mark.parametrize(("option", "value"), [("--context", "1e308"), ("--concurrency", "9" * 400)])
def test_a_batch_that_no_memory_holds(option: str, value: str):
    with pytest.raises(click.BadParameter, match="not in the range"):
        explain.main([*SPEEDS, "--k", "5", *H100, option, value], standalone_mode=False)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("[" * 100_000, "no JSON object"),
        ('{"a":' * 100_000, "no JSON object"),
        ('{"method": ["ngram"]}', "a method that is no text"),
        ('{"method": 5}', "a method that is no text"),
        ('{"prompt_lookup_max": "4"}', "a prompt_lookup_max that is no whole number"),
        ('{"prompt_lookup_max": NaN}', "a prompt_lookup_max that is no whole number"),
        ('{"prompt_lookup_min": true}', "a prompt_lookup_min that is no whole number"),
    ],
)
def test_an_engines_flag_with_another_type_in_it(config: str, said: str):
    with pytest.raises(UsageError, match=said):
        explain.main([*SPEEDS, "--k", "5", *H100, "--speculative-config", config], standalone_mode=False)


@pytest.mark.parametrize("k", ["-3", "0", "50000000"])
def test_a_window_that_no_engine_has(k: str):
    with pytest.raises(click.BadParameter, match="1<=x<=1000"):
        explain.main([*SPEEDS, "--k", k, *H100], standalone_mode=False)


@pytest.mark.parametrize("name", ["num_speculative_tokens", "prompt_lookup_min", "prompt_lookup_max"])
@pytest.mark.parametrize("value", [-3, 0, 50_000_000])
def test_lengths_that_no_engine_has(name: str, value: int):
    values = {"k": None, "method": None, "speculative_config": f'{{"{name}": {value}}}'}
    with pytest.raises(UsageError, match=f"{name} that is no whole number of 1 to 1000"):
        told_of(values)
    with pytest.raises(UsageError, match="--max-n"):
        told_of({**values, "speculative_config": None, "max_n": 50_000_000})
