"""`breakeven forecast`: which settings it tries where none are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from breakeven.cli.forecast import (
    CONCURRENCIES,
    MOST_CONCURRENCY,
    _concurrencies,
    _known,
)
from breakeven.cli.forecast_grid import (
    ENGINES,
    KS,
    LEAST_RANGES,
    MOST_SETTINGS,
    Levels,
    check_drafters,
    drafters_of,
    engine_unknown,
    grid_of,
)
from breakeven.cli.record import refuse_calibration
from breakeven.cost.calibration import FILE
from breakeven.errors import UsageError
from breakeven.forecast.next_steps import Known
from tests.unit.forecast.served import a_run, served

NOTHING: dict[str, Any] = {"drafter_names": (), "ks": None, "n_ranges": None}


@pytest.mark.parametrize("engine", [*ENGINES, None, "an engine of 2030"])
def test_the_default_grid_is_of_the_engine_and_small(engine: str | None):
    grid = grid_of(NOTHING, engine)
    assert {name for name, _ in grid} == set(drafters_of(engine))
    assert len(KS[0]) <= len(grid) <= MOST_SETTINGS
    assert {settings["k"] for _, settings in grid if "k" in settings} in map(set, KS)
    for name in drafters_of(engine):
        mine = [settings for drafter, settings in grid if drafter == name]
        ns = {settings.get("n", settings.get("max_n")) for settings in mine} - {None}
        assert not ns or (len(ns) >= LEAST_RANGES and 2 in ns), "what a sweep finds best is among them"


def test_more_n_grams_go_before_more_windows():
    grid = grid_of(NOTHING, "llama.cpp")
    assert {settings["k"] for _, settings in grid if "k" in settings} == set(KS[-1])
    assert {settings["n"] for _, settings in grid if "n" in settings} == {2, 3, 4}


def test_a_drafter_that_is_none_is_guessed_among_those_of_the_engine():
    for engine, guess in (("llama.cpp", "llamacpp-ngram-simple"), ("sglang", "sglang-ngram")):
        with pytest.raises(UsageError, match=f"no drafter 'ngram': did you mean {guess}"):
            check_drafters(("ngram",), engine)
    with pytest.raises(UsageError, match="did you mean vllm-suffix"):
        check_drafters(("vllm-sufix",), "vllm")


def test_a_concurrency_that_is_no_number():
    for word in ("all", "0", "8-4"):
        with pytest.raises(UsageError, match=r"--concurrency: .* type --concurrency 1,4,16$"):
            Levels().convert(word, None, None)


def test_a_calibration_is_no_record(tmp_path: Path):
    (tmp_path / FILE).write_text("{}")
    for path in (tmp_path, tmp_path / FILE):
        with pytest.raises(UsageError, match=f"type  breakeven forecast RUN --calibration {path}"):
            refuse_calibration(path, "forecast")
    (tmp_path / "run.json").write_text("{}")
    refuse_calibration(tmp_path, "forecast")


def test_whose_drafters_are_tried_is_said_where_nothing_tells():
    (said,) = engine_unknown(None, NOTHING)
    assert "the drafters of vllm are tried" in said and "--engine (sglang, llama.cpp" in said
    assert engine_unknown("sglang", NOTHING) == ()
    assert engine_unknown(None, {**NOTHING, "drafter_names": ("sglang-ngram",)}) == ()


def test_what_a_record_knows_for_the_next_command(tmp_path: Path):
    made = a_run(tmp_path / "run", [served("a#0", 10, 0.1, 0.01, 8)])
    known = _known(made.path, made)
    assert (known.model, known.url, known.embedded) == (made.meta.model, made.meta.url, False)
    assert known.prompts == str(made.path / "prompts.jsonl")
    assert _known(tmp_path / "a.jsonl", None) == Known()
    side = a_run(tmp_path / "trial" / "baseline", [served("a#0", 10, 0.1, 0.01, 8)], kind="trial-side")
    assert not _known(tmp_path / "trial", side).embedded and _known(tmp_path / "trial", side).url is None
    (tmp_path / "trial" / "baseline.log").touch()
    assert _known(tmp_path / "trial", side).embedded


def test_the_drafters_of_an_engine():
    assert list(drafters_of("vllm")) == list(drafters_of(None)) == ["vllm-ngram", "vllm-suffix"]
    assert all(name.startswith("llamacpp-") for name in drafters_of("llama.cpp"))
    assert list(drafters_of("sglang")) == ["sglang-ngram"]


def test_concurrencies_reach_as_far_as_the_calibration():
    assert _concurrencies(None, None) == CONCURRENCIES
    assert _concurrencies(None, 12) == (1, 2, 4, 8, 12) and _concurrencies(None, 16) == (1, 2, 4, 8, 16)
    assert _concurrencies((3, 64), 16) == (3, 64)


def test_a_calibration_that_claims_too_much_is_followed_as_far_as_can_be_asked():
    assert _concurrencies(None, 2**40) == (*CONCURRENCIES, MOST_CONCURRENCY)


def test_what_is_named_is_tried_in_full():
    asked = {"drafter_names": ("vllm-ngram",), "ks": (2, 3), "n_ranges": tuple((1, n) for n in range(1, 40))}
    assert len(grid_of(asked, "llama.cpp")) == 78
    assert len(grid_of({**NOTHING, "ks": tuple(range(1, 101))}, "vllm")) == 200, "one n range, as none fits"
