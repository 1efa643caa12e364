from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.prometheus import between, read_counters

GOLDEN = Path(__file__).parents[2] / "golden"


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.metrics.txt").read_text()


def test_vllm_page_with_created_gauges_beside_the_counters():
    counters = read_counters(golden("vllm-ngram"))
    assert counters is not None
    assert (counters.drafts, counters.drafted_tokens, counters.accepted_tokens) == (39, 195, 186)
    assert counters.accepted_per_position == (39, 39, 36, 36, 36)
    assert counters.steps is None


def test_llamacpp_page():
    counters = read_counters(golden("llamacpp-ngram-simple"))
    assert counters is not None
    assert (counters.drafts, counters.drafted_tokens, counters.accepted_tokens) == (4, 144, 144)
    assert counters.accepted_per_position is not None
    assert sum(counters.accepted_per_position) == 144


def test_a_baseline_of_vllm_says_nothing():
    assert read_counters(golden("vllm-baseline")) is None


def test_engines_and_ranks_are_summed():
    page = "".join(
        f'vllm:spec_decode_num_drafts_total{{engine="{i}"}} {i + 1}\n'
        f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="{i}",position="0"}} {i}\n'
        for i in range(3)
    )
    counters = read_counters("# TYPE vllm:spec_decode_num_drafts_total counter\n" + page)
    assert counters is not None
    assert counters.drafts == 6
    assert counters.accepted_per_position == (3,)


@given(st.text())
def test_any_page_is_read_or_refused(page: str):
    assert read_counters(page) is None


@given(st.integers(0, 3), st.sampled_from(["nan", "+Inf", "-1", "x", "1e400", '"}']))
def test_hostile_values_never_raise(line: int, value: str):
    lines = golden("vllm-ngram").splitlines()
    samples = [i for i, text in enumerate(lines) if text.startswith("vllm:spec_decode")]
    lines[samples[line]] = lines[samples[line]].rsplit(" ", 1)[0] + " " + value
    read_counters("\n".join(lines))


def test_a_counter_that_fell_is_a_reset():
    before = SpecCounters(drafts=10, drafted_tokens=50, accepted_tokens=20)
    after = SpecCounters(drafts=2, drafted_tokens=10, accepted_tokens=4)
    assert between(before, after) is None


def test_lifetime_counts_of_earlier_traffic_do_not_enter():
    before = SpecCounters(drafts=100, drafted_tokens=500, accepted_tokens=290, accepted_per_position=(90, 80))
    after = SpecCounters(
        drafts=200, drafted_tokens=1000, accepted_tokens=500, accepted_per_position=(150, 110, 5), source="x"
    )
    window = between(before, after)
    assert window == SpecCounters(
        drafts=100, drafted_tokens=500, accepted_tokens=210, accepted_per_position=(60, 30, 5), source="x"
    )
    assert window.mean_acceptance_length == pytest.approx(3.1)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e300"])
def test_a_counter_that_cannot_be_spoils_the_page(value):
    assert read_counters(f"vllm:spec_decode_num_drafts_total {value}\n") is None


def test_lines_of_other_metrics_are_not_looked_at():
    page = golden("vllm-ngram")
    assert read_counters(f'broken{{a="}} 1\n{page}') == read_counters(page)


@pytest.mark.parametrize("later", [(6, 1, 1), (6, 4), ()])
def test_positions_that_fell_are_a_reset_too(later):
    before = SpecCounters(None, 5, 15, 9, (5, 3, 1))
    assert between(before, SpecCounters(None, 9, 27, 20, later)) is None


def test_more_accepted_than_drafted_is_no_count():
    assert between(SpecCounters(None, 0, 0, 0, ()), SpecCounters(None, 2, 4, 5, ())) is None
