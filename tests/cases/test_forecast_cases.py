"""The rows of cases.csv with area `forecast`, one test each, named by the row's id."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from breakeven.cost.curve import Curve, CurvePoint
from breakeven.cost.measured import Measured
from breakeven.cost.step import PLAIN_STEP, Step
from breakeven.errors import UsageError
from breakeven.forecast.chain import chain_acceptance
from breakeven.forecast.random_tokens import refuse_random_prompts
from breakeven.forecast.run import forecast_heads
from breakeven.forecast.terms import Terms
from breakeven.replay.sources import open_source
from tests.cases.rows import assert_every_row_has_its_test


def curve_of(tokens_per_s: Mapping[int, float]) -> Curve:
    """From throughputs, by the tokens that a step carries. They come without intervals."""
    steps = {tokens: tokens / rate for tokens, rate in tokens_per_s.items()}
    return Curve(tuple(CurvePoint(tokens, s, s, s, n=1) for tokens, s in steps.items()))


def test_case_37_specforge_339_a_head_on_a_mixture_of_experts_does_not_pay():
    """Qwen3-30B-A3B on two H100, SGLang: the baseline's throughputs of the thread up to a batch of 16, which
    its 20 prompts can fill, and the acceptance length that it found with 3 steps, top-k 1.

    With the head on it measured 0.72 of the baseline's throughput at batch 1, and 0.79 at batch 4.
    """
    curve = curve_of({1: 222.47, 4: 566.21, 8: 733.61, 16: 1012.96})
    reached = 1.86
    terms = Terms(
        Measured(curve, moe=True),
        "the thread's own baseline",
        (1, 4, 8, 16, 32, 64),
        ks=(3,),
        acceptance=chain_acceptance(reached, 3),
        engine="sglang",
    )
    forecast = forecast_heads(terms)
    assert [needed.k for needed in forecast.needed] == [3] * 6
    for needed in forecast.needed:
        assert needed.acceptance_length[1.0].estimate > reached, needed
    for cell in forecast.given[2].cells:
        assert cell.speedup.estimate <= 1, cell
        assert cell.outcome != "faster", cell
    high_batch = [cell.speedup.estimate for cell in forecast.given[2].cells if cell.concurrency >= 4]
    assert max(high_batch) < 0.9
    assert (
        forecast.given[2].cells[1].speedup.low <= 447.90 / 566.21 <= forecast.given[2].cells[1].speedup.high
    )


def test_case_38_ik_llama_cpp_1630_two_tokens_cost_three_steps():
    """llama-bench put tokens of one text into a step: its curve is that of verification itself, and no step
    of it is read off at fewer tokens, as of a server's sequences. One draft gives two tokens at most."""
    curve = curve_of({1: 170, 2: 111, 8: 266})
    cost = Measured(curve, moe=False)
    assert cost.relative(Step(2), PLAIN_STEP).estimate == pytest.approx(3.06, abs=0.005)
    forecast = forecast_heads(
        Terms(cost, "llama-bench", (1,), ks=(1,), acceptance=(1.0,), method="draft-model", engine="llama.cpp")
    )
    (needed,) = forecast.needed
    assert needed.acceptance_length[1.0].low > 2
    (cell,) = forecast.given[0].cells
    assert cell.outcome == "slower", "even with every draft accepted"
    reused = Measured(curve, moe=True).relative(Step(2), PLAIN_STEP)
    assert 2 < reused.estimate < reused.high == pytest.approx(cost.relative(Step(2), PLAIN_STEP).high)


def test_case_39_vllm_52536_no_acceptance_is_projected_from_random_prompts(tmp_path: Path):
    """Prompts of random ids, answered by a model that soon repeats itself."""
    rng = np.random.default_rng(0)
    rows = [
        {"prompt_token_ids": rng.integers(0, 128_000, 256).tolist(), "generated_token_ids": [5, 6, 7] * 40}
        for _ in range(8)
    ]
    record = tmp_path / "random.jsonl"
    record.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(
        UsageError, match=r"look like random tokens.*record real ones: type  breakeven measure"
    ):
        refuse_random_prompts(open_source(record))


def test_every_row_of_the_area_has_its_test():
    assert_every_row_has_its_test("forecast", globals())
