"""From options, and the record's run, to the cost of a step and the sentence that says which it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.cli.cost_options import ChosenCost, choose_cost, modelled_of
from breakeven.cost.anchored import Anchored
from breakeven.cost.calibration import save_calibration
from breakeven.cost.measured import Measured
from breakeven.cost.modelled import Modelled
from breakeven.cost.routing import RoutingTrace, load_routing, save_routing
from breakeven.cost.step import PLAIN_STEP, Step
from breakeven.errors import UsageError
from breakeven.trace.meta import Schedule
from breakeven.trace.run import Run
from tests.unit.cost.test_calibration import CALIBRATION
from tests.unit.forecast.served import a_run, served

NOTHING = dict.fromkeys(("calibration", "model", "hardware", "tp", "ep", "step_ms", "reuse", "routing"))
H100 = {"model": "llama-3.1-8b", "hardware": "h100-sxm"}


QWEN3 = {"model": "qwen3-30b-a3b", "hardware": "h100-sxm"}


def routing(folder: Path, count: int = 128, top_k: int = 8, random_router: bool = False) -> Path:
    """Tokens that keep half of their experts from one to the next."""
    rng = np.random.default_rng(0)
    rows = [rng.permutation(count)[:top_k]]
    for _ in range(79):
        fresh = np.setdiff1d(np.arange(count), rows[-1])
        rows.append(np.concatenate([rows[-1][top_k // 2 :], rng.permutation(fresh)[: top_k - top_k // 2]]))
    trace = RoutingTrace(np.array(rows)[:, None], (40, 40), count, "made", random_router)
    save_routing(trace, folder / "routing.npz")
    return folder / "routing.npz"


def chosen(run: Run | None = None, **values: Any) -> ChosenCost:
    return choose_cost({**NOTHING, **values}, run)


def calibration(folder: Path, **changes: Any) -> Path:
    save_calibration(replace(CALIBRATION, **changes), folder / "calibration.json")
    return folder / "calibration.json"


def run(folder: Path, **changes: Any) -> Run:
    return a_run(folder, [served(f"{i}#0", 100, 0.5, 0.012, 40, at_s=2 * i) for i in range(4)], **changes)


def test_more_devices_than_heads_are_refused_at_once():
    with pytest.raises(UsageError, match=r"type --tp 32$"):
        modelled_of({**NOTHING, **H100, "tp": 10**18})


def test_a_calibration_is_measured(tmp_path: Path):
    found = chosen(calibration=calibration(tmp_path))
    assert isinstance(found.cost, Measured) and found.cost.moe is True
    assert (found.geometry, found.engine) == (None, "vllm")
    assert "concurrency curve" in found.words and "3 points, up to 4 in flight" in found.words
    assert "at concurrency 2: the client fell behind" in found.warnings and "a note" in found.warnings
    assert not any("upper bound" in warning for warning in found.warnings), "the cost says so itself"


def test_the_words_say_how_well_it_is_known(tmp_path: Path):
    found = chosen(calibration=calibration(tmp_path, moe=False))
    assert found.words.endswith("3 drafted tokens takes 1.50 plain steps (1.48 to 1.52).")


@pytest.mark.parametrize(("model", "moe"), [("llama-3.1-8b", False), ("qwen3-30b-a3b", True)])
def test_a_model_beside_a_calibration_tells_of_experts(model: str, moe: bool, tmp_path: Path):
    found = chosen(calibration=calibration(tmp_path, moe=None), model=model)
    assert isinstance(found.cost, Measured) and found.cost.moe is moe
    assert found.geometry is not None and (found.geometry.experts is not None) is moe


def test_a_model_that_cannot_be_the_calibrated_one_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"made with --moe, and --model llama-3.1-8b has no experts"):
        chosen(calibration=calibration(tmp_path), model="llama-3.1-8b")


@pytest.mark.parametrize(
    ("name", "value"), [("hardware", "h100-sxm"), ("tp", 2), ("ep", 1), ("step_ms", 3.0), ("reuse", 0.0)]
)
def test_what_would_model_steps_that_were_measured_is_refused(name: str, value: Any, tmp_path: Path):
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')}.* leave out one of the two"):
        chosen(calibration=calibration(tmp_path), **{name: value})


def test_a_calibration_of_another_server_is_refused(tmp_path: Path):
    path = calibration(tmp_path, model="another")
    with pytest.raises(UsageError, match="model is 'another' there and 'm' here"):
        chosen(run(tmp_path / "r"), calibration=path)


def test_a_step_as_given_is_the_anchor(tmp_path: Path):
    found = chosen(run(tmp_path / "r"), **H100, step_ms=9.0)
    assert isinstance(found.cost, Anchored)
    assert (found.cost.measured_s, found.cost.at) == (0.009, PLAIN_STEP)
    assert "9 ms as given" in found.words and "llama-3.1-8b on 1 × h100-sxm" in found.words


@pytest.mark.parametrize(("step_ms", "times"), [(4.0, "0.562"), (34.0, "4.78")])
def test_a_step_of_another_machine_is_refused(step_ms: float, times: str, tmp_path: Path):
    with pytest.raises(UsageError) as caught:
        chosen(**H100, step_ms=step_ms)
    said = str(caught.value)
    assert f"{step_ms:g} ms as given, is {times} times what a model of llama-3.1-8b on 1 × h100-sxm" in said
    assert "7.11 ms" in said and "0.65 to 2.4 times" in said
    for words in ("breakeven calibrate URL", "--hardware", "--step-ms"):
        assert words in said
    slow = [served(f"{i}#0", 100, 0.5, 0.034, 40, at_s=2 * i) for i in range(4)]
    with pytest.raises(UsageError, match=r"record's own step, 34.00 ms .* another machine or model"):
        chosen(a_run(tmp_path / "slow", slow), **H100)
    assert isinstance(chosen(a_run(tmp_path / "two", slow), **H100, step_ms=9.0).cost, Anchored)


def test_else_the_run_has_measured_one(tmp_path: Path):
    found = chosen(run(tmp_path / "r"), **H100)
    assert isinstance(found.cost, Anchored)
    assert found.cost.measured_s == pytest.approx(0.012) and found.cost.at == Step(1, 1, 120)
    assert found.words.startswith("The record's own step, 12.00 ms with 1 in flight and 120 tokens in each")
    assert found.warnings == ()


def test_a_run_that_tells_none_leaves_the_model_alone_and_is_named(tmp_path: Path):
    found = chosen(run(tmp_path / "r", schedule=Schedule("open", rate_per_s=1.0)), **H100)
    assert isinstance(found.cost, Modelled)
    (warning,) = found.warnings
    assert "record's own speed is not used" in warning and "--step-ms" in warning


@pytest.mark.parametrize("step_ms", [None, 9.0])
def test_measured_reuse_replaces_what_a_model_assumes(step_ms: float | None, tmp_path: Path):
    file = routing(tmp_path)
    reuse = load_routing(file).reuse()
    found = chosen(**QWEN3, routing=file, step_ms=step_ms)
    model = found.cost.modelled if isinstance(found.cost, Anchored) else found.cost
    assert isinstance(model, Modelled) and model.reuse == reuse.estimate
    assert sorted(end.reuse for end in model.reuse_ends) == [reuse.low, reuse.high]
    assert "plain steps" in found.words and f"reused at {reuse.estimate:.2f} (" in found.words
    assert found.warnings == ()


def test_measured_reuse_reads_the_curve_of_a_mixture_of_experts(tmp_path: Path):
    file = Path(__file__).parents[2] / "golden" / "routing-smollm2-moe.npz"
    for moe in (True, None):
        found = chosen(calibration=calibration(tmp_path, moe=moe), routing=file)
        assert isinstance(found.cost, Measured) and found.cost.moe is True
        taken = load_routing(file).reuse_beside_sequences()
        assert found.cost.reuse == taken and taken.estimate != load_routing(file).reuse().estimate
        assert f"reused at {taken.estimate:.2f} (" in found.words and "different sequences" in found.words
    assert found.most_concurrency == 4 and chosen(**H100).most_concurrency is None


def test_a_random_router_is_named(tmp_path: Path):
    (said,) = chosen(**QWEN3, routing=routing(tmp_path, random_router=True)).warnings
    assert "Routing is random, not learned" in said and "routing.npz" in said


@pytest.mark.parametrize(
    ("values", "made", "fragments"),
    [
        ({**QWEN3, "reuse": 0.4}, {}, ("--reuse", "leave out one of the two")),
        (QWEN3, {"count": 64}, ("experts is 64 there and 128 here", "models routing MODEL --out")),
        (QWEN3, {"top_k": 4}, ("top_k is 4 there and 8 here",)),
        (H100, {}, ("llama-3.1-8b has none", "leave out --routing")),
        ({}, {}, ("breakeven calibrate URL",)),
    ],
)
def test_routing_of_what_it_cannot_be_of_is_refused(
    values: dict[str, Any], made: dict[str, Any], fragments: tuple[str, ...], tmp_path: Path
):
    with pytest.raises(UsageError) as caught:
        chosen(**values, routing=routing(tmp_path, **made))
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_routing_beside_a_calibration_must_be_of_its_model(tmp_path: Path):
    file = routing(tmp_path, top_k=4)
    with pytest.raises(UsageError, match=r"made with --dense, and --routing .* leave out one of the two"):
        chosen(calibration=calibration(tmp_path, moe=False), routing=file)
    with pytest.raises(UsageError, match="top_k is 4 there and 8 here"):
        chosen(calibration=calibration(tmp_path), model="qwen3-30b-a3b", routing=file)
    with pytest.raises(UsageError, match="no trace of routing"):
        chosen(**QWEN3, routing=tmp_path / "calibration.json")


def test_without_any_measurement_it_is_the_model(tmp_path: Path):
    found = chosen(**H100, tp=2, reuse=0.2)
    assert isinstance(found.cost, Modelled) and (found.cost.tp, found.cost.reuse) == (2, 0.2)
    assert "without any measurement" in found.words and found.warnings == ()


@pytest.mark.parametrize(
    ("values", "fragments"),
    [
        ({}, ("breakeven calibrate URL", "--calibration FILE", "--model X --hardware Y")),
        ({"tp": 2}, ("--tp belongs to a model", "--model X")),
        ({"step_ms": 3.0}, ("--step-ms belongs to a model",)),
        ({"model": "llama-3.1-8b"}, ("type --hardware Y",)),
        ({"hardware": "h100-sxm"}, ("type --model X",)),
        ({**H100, "tp": 5}, ("32 attention heads", "type --tp 4")),
        ({**H100, "tp": 4, "ep": 3}, ("ep must divide tp",)),
        ({**H100, "hardware": "h100-sxn"}, ("did you mean h100-sxm",)),
        ({**H100, "model": "lama-3.1-8b"}, ("did you mean llama-3.1-8b",)),
    ],
)
def test_what_says_no_cost_is_refused_with_what_to_type(values: dict[str, Any], fragments: tuple[str, ...]):
    with pytest.raises(UsageError) as caught:
        chosen(**values)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_model_and_hardware_alone_for_other_verbs():
    found = modelled_of({**H100, "tp": None, "ep": None}, reuse=0.4)
    assert (found.tp, found.ep, found.reuse) == (1, 1, 0.4)
