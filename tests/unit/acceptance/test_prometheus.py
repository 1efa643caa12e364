import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.acceptance import load
from breakeven.acceptance.counters import DEFINITIONS, SpecCounters
from breakeven.acceptance.exposition import MAX_LINE, MAX_RANKS
from breakeven.acceptance.load import Load
from breakeven.acceptance.page import Page
from breakeven.acceptance.pages.ranks import CANNOT_BE, TOO_MANY
from breakeven.acceptance.pages.tensorrt import DOUBTED, UNCOUNTED
from breakeven.acceptance.prometheus import SOURCES, between, is_reset, read_page, started
from breakeven.acceptance.stated import stated
from tests.unit.acceptance.pages import GOLDEN, golden, page, text_of, vllm

TEXTS = {path.name: path.read_text() for path in sorted(GOLDEN.iterdir()) if "metrics.txt" in path.name} | {
    "iterations": text_of("trtllm-iterations")
}


def test_vllm_with_created_gauges_beside_the_counters():
    found = golden("vllm-ngram")
    assert found.spec == SpecCounters(
        steps=2151,
        drafts=39,
        drafted_tokens=195,
        accepted_tokens=186,
        accepted_per_position=(39, 39, 36, 36, 36),
        source="vLLM /metrics",
        emitted_tokens=2336 - 11,
    )
    assert found.load == Load(
        requests=11,
        prompt_tokens=3177,
        output_tokens=2336,
        preemptions=0,
        prefix_queries=3177,
        prefix_hits=1792,
        running=0,
        waiting=0,
        kv_usage=0,
        token_s=(79.89126879300034, 2151),
    )
    assert (found.engine, found.ranks, found.notes, found.started) == ("vllm", 1, (), "1.79595094186e+09")


def test_vllm_counts_its_steps_in_inter_token_latencies():
    """22 requests, one at a time: 1,558 iterations of the engine, 22 of which were prefills."""
    spec = golden("vllm-moe-ngram").spec
    assert spec is not None
    assert (spec.steps, spec.drafts, spec.emitted_tokens) == (1558 - 22, 654, 4672 - 22)
    assert spec.tokens_per_step == pytest.approx(4650 / 1536)
    assert spec.draft_share == pytest.approx(654 / 1536)


GAPS = (("sum", "2"), ("count", "{}"))


def test_inter_token_latencies_that_are_by_token_are_no_steps():
    lines = vllm(drafts=10, draft_tokens=30, accepted_tokens=20, generation_tokens=41)
    lines += 'vllm:time_to_first_token_seconds_count{engine="0"} 1\n'
    gaps = "".join(
        f'vllm:inter_token_latency_seconds_{part}{{{{engine="0"}}}} {value}\n' for part, value in GAPS
    )
    by_step, by_token = page(lines, gaps.format(21)), page(lines, gaps.format(40))
    assert by_step.spec.steps == 21 and by_step.load.token_s == (2, 21)
    assert by_token.spec.steps is None and by_token.load.token_s is None
    assert by_token.spec.emitted_tokens == 40


def test_the_older_name_of_inter_token_latencies():
    old = text_of("vllm-ngram").replace("inter_token_latency_seconds", "time_per_output_token_seconds")
    assert read_page(old) == golden("vllm-ngram")


def test_vllm_0_counts_nothing_that_can_be_used():
    """Its counters add up running totals (vllm#15415)."""
    found = golden("vllm-v0")
    assert found.spec == SpecCounters(source="vLLM V0 /metrics")
    (rate,) = found.reported
    assert (rate.name, rate.value.estimate) == ("acceptance_rate", 0.642)
    assert "vllm#15415" in found.notes[0]
    assert all(one.value is None and one.why.startswith("not derivable") for one in stated(found.spec))
    assert (found.load.requests, found.load.output_tokens, found.load.kv_usage) == (40, 12000, 0.12)


def test_a_baseline_of_vllm_says_nothing_of_speculation():
    found = golden("vllm-baseline")
    assert found.spec is None and found.load.requests and found.load.token_s


def test_llamacpp():
    found = golden("llamacpp-ngram-simple")
    assert found.spec is not None
    assert (found.spec.drafts, found.spec.drafted_tokens, found.spec.accepted_tokens) == (4, 144, 144)
    assert found.spec.steps is None
    assert sum(found.spec.accepted_per_position) == 144
    assert found.load == Load(None, 197 + 177, 202, None, 197 + 177, 177, 0, 0)


@pytest.mark.parametrize(
    ("name", "counts", "positions"),
    [
        ("llamacpp-none", (0, 0, 0), ()),
        ("llamacpp-ngram-cache", (18, 141, 84), (14, 12, 11, 10, 10, 9, 9, 9)),
        ("llamacpp-ngram-mod", (7, 376, 295), None),
    ],
)
def test_llamacpp_with_other_drafters(name, counts, positions):
    spec = golden(name).spec
    assert (spec.drafts, spec.drafted_tokens, spec.accepted_tokens) == counts
    assert positions is None or spec.accepted_per_position == positions
    assert sum(spec.accepted_per_position) == spec.accepted_tokens


def test_sglang_counts_verify_calls_and_no_drafted_tokens():
    found = golden("sglang-eagle")
    assert found.spec == SpecCounters(steps=43, drafts=43, source="SGLang /metrics", emitted_tokens=105)
    ratios = {one.name: one for one in stated(found.spec)}
    assert ratios["tokens_per_step"].value.estimate == pytest.approx(105 / 43)
    assert ratios["acceptance_rate"].why == (
        "not derivable: SGLang /metrics does not count accepted tokens or drafted tokens"
    )
    assert ratios["mean_acceptance_length"].value is None
    assert [(one.name, one.value.estimate) for one in found.reported] == [
        ("acceptance_rate", 0.29),
        ("mean_acceptance_length", 2.46),
    ]
    assert found.load == Load(1, 120, 106, 0, 120, 80, 0, 0, 0.02)


def test_sglang_ranks_that_report_none_are_no_zeros_and_no_element_0():
    """sglang#34743: [null, null, 2.90, 3.67]. Nothing says how many drafts either is of."""
    found = golden("sglang-ranks")
    assert (found.ranks, found.silent_ranks) == (4, 1), "a rank at 0 made no steps, one at NaN says nothing"
    (_, length) = found.reported
    assert length.value is None
    assert "2.90 to 3.67" in length.why and "2 of 4 ranks" in length.source
    assert (found.load.running, found.load.kv_usage) == (7, 0.31), (
        "the ranks of tp tell the same of one batch"
    )
    assert found.spec == SpecCounters(source="SGLang /metrics")


def test_sglang_without_speculation_has_gauges_of_0():
    text = text_of("sglang-ranks").replace("2.90", "0.0").replace("3.67", "0.0")
    found = read_page(text)
    assert found.spec is None and found.reported == ()


def test_tgi_counts_accepted_tokens_and_steps_only():
    """4 requests of 25 tokens: 64 passes, 4 of them prefills; 96 tokens in 60 steps."""
    found = golden("tgi")
    assert found.spec == SpecCounters(steps=60, accepted_tokens=36, source="TGI /metrics")
    assert found.spec.tokens_per_step == pytest.approx(96 / 60)
    assert [one.name for one in stated(found.spec) if one.value is not None] == ["tokens_per_step"]
    assert found.load == Load(4, 200, 100, running=0, waiting=0)


def test_tensorrt_counts_by_position():
    found = golden("trtllm")
    assert found.spec == SpecCounters(
        drafts=30,
        drafted_tokens=90,
        accepted_tokens=60,
        accepted_per_position=(27, 20, 13),
        source="TensorRT-LLM /prometheus/metrics",
    )
    assert found.load == Load(4, 400, 120, None, 400, 100, 5, 3, 0.6)
    assert found.reported[0].value.estimate == 3.75


def test_tensorrt_without_positions_counts_over_iterations():
    text = "".join(line + "\n" for line in text_of("trtllm").split("\n") if "token_position" not in line)
    spec = read_page(text).spec
    assert (spec.drafts, spec.drafted_tokens, spec.accepted_tokens) == (None, 95, 61)


def test_the_two_totals_of_tensorrt_are_not_held_against_each_other():
    """Positions appear with the first request that finishes, and may count fewer than all iterations."""
    text = "".join(line + "\n" for line in text_of("trtllm").split("\n") if "token_position" not in line)
    before, after = read_page(text), golden("trtllm")
    assert not is_reset(before, after) and between(before, after) is None


CONTRADICTIONS = {
    "more accepted than drafted at a position": ("accepted_tokens", 2, 31),
    "more accepted at a later position": ("accepted_tokens", 1, 28),
    "more drafted at a later position": ("drafted_tokens", 1, 31),
    "accepted beyond the last position": ("accepted_tokens", 3, 1),
    "no count": ("drafted_tokens", 0, "NaN"),
}


def trtllm(name: str, place: int, value: object) -> str:
    """Its page with another value at a position."""
    line = f'trtllm_spec_decode_{name}_total{{engine_type="pytorch",model_name="m",token_position="{place}"}}'
    kept = [each for each in text_of("trtllm").split("\n") if not each.startswith(line)]
    return "\n".join((*kept, f"{line} {value}", ""))


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_tensorrt_positions_that_contradict_themselves_give_way_to_iterations(what):
    found = read_page(trtllm(*CONTRADICTIONS[what]))
    assert (found.spec.drafts, found.spec.drafted_tokens, found.spec.accepted_tokens) == (None, 95, 61)
    assert list(found.by_rank) == ["iterations"]
    assert found.notes == (DOUBTED.format(kind="finished requests"),)
    good = golden("trtllm")
    assert good.notes == () and between(good, found) is between(found, good) is None
    assert not is_reset(good, found)


def test_a_page_of_tensorrt_of_which_nothing_can_be_counts_nothing_and_is_not_off():
    text = trtllm("accepted_tokens", 2, 31).replace("num_accepted_tokens_total", "x_total")
    text += 'trtllm_spec_decode_num_accepted_tokens_total{engine_type="pytorch",model_name="m"} 96\n'
    found = read_page(text)
    assert found.spec == UNCOUNTED and found.by_rank == {}
    assert len(found.notes) == 2 and between(found, found) is None and not is_reset(golden("trtllm"), found)


def test_a_prefix_cache_that_finds_more_than_was_looked_up_has_no_rate():
    text = text_of("trtllm").replace("cached_tokens_total", "x_total")
    text += 'trtllm_prompt_cached_tokens_total{engine_type="pytorch",model_name="m"} 401\n'
    assert read_page(text).load.prefix_hit_rate is None and golden("trtllm").load.prefix_hit_rate == 0.25


def test_tensorrt_iterations_are_no_totals():
    found = golden("trtllm-iterations")
    assert found.spec == SpecCounters(source="TensorRT-LLM /metrics") and found.by_rank == {}
    assert (found.load.running, found.load.waiting, found.load.kv_usage) == (5, 3, 0.6)
    assert "/prometheus/metrics" in found.notes[0]
    assert between(found, found) is None


@pytest.mark.parametrize(
    "text", ["", "[1]", "[", "{}", "[{}]", '[{"iter": 3}]', "vllm", "x vllm:a 1\n", "go_gc 1\n"]
)
def test_pages_of_others(text):
    assert read_page(text) is None


def test_engines_and_ranks_are_summed():
    found = page(*(vllm(i, drafts=i + 1, draft_tokens=9, accepted_tokens=i, p0=i) for i in range(3)))
    assert (found.spec.drafts, found.spec.drafted_tokens, found.spec.accepted_per_position) == (6, 27, (3,))
    assert (found.ranks, len(found.by_rank)) == (3, 3)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, 1e300])
def test_a_rank_whose_counter_cannot_be_is_left_out(value):
    found = page(vllm(0, drafts=value, draft_tokens=9, accepted_tokens=4), vllm(1, drafts=2, draft_tokens=6))
    assert (found.spec.drafts, found.spec.drafted_tokens, found.ranks, found.silent_ranks) == (2, 6, 2, 1)
    assert found.notes == (f"1 of 2 ranks {CANNOT_BE}, and is left out",)


def test_counts_that_contradict_themselves_are_said_to():
    """More accepted than drafted, or more drafts accepted to a position than there were."""
    for one in (
        {"draft_tokens": 9, "accepted_tokens": 10},
        {"draft_tokens": 9, "accepted_tokens": 5, "p0": 4},
    ):
        found = page(vllm(drafts=3, **one))
        assert found.spec == SpecCounters(source="vLLM /metrics")
        assert found.notes == (f"1 of 1 rank {CANNOT_BE}, and is left out",)
    told = "".join(
        f"llamacpp:spec_decode_num_{name} {value}\n"
        for name, value in (("drafts", 3), ("draft_tokens", 9), ("accepted_tokens", 10))
    )
    assert page(told).spec == SpecCounters(source="llama.cpp /metrics") and CANNOT_BE in page(told).notes[0]


@pytest.mark.parametrize("ranks", [MAX_RANKS + 1, 40_000])
def test_a_page_of_more_ranks_than_any_server_has(ranks: int):
    text = "".join(
        f'vllm:spec_decode_num_{name}_total{{engine="{rank}"}} 3\n'
        for name in ("drafts", "draft_tokens", "accepted_tokens", "emitted")
        for rank in range(ranks)
    )
    found = read_page(text)
    assert found is not None and found.notes == (TOO_MANY,)
    assert found.spec == SpecCounters(source="vLLM /metrics") and found.by_rank == {}
    most = "".join(f'vllm:spec_decode_num_drafts_total{{engine="{rank}"}} 3\n' for rank in range(MAX_RANKS))
    assert page(most).ranks == MAX_RANKS


def test_positions_are_no_ranks():
    lines = (vllm(rank, drafts=3, **{f"p{at}": 3 for at in range(40)}) for rank in range(128))
    assert page(*lines).ranks == 128


def test_no_rank_that_counts_is_unknown_and_not_none():
    found = page(vllm(drafts=math.nan))
    assert found.spec == SpecCounters(source="vLLM /metrics") and found.by_rank == {}


def test_lines_of_other_metrics_are_not_looked_at():
    text = text_of("vllm-ngram")
    assert read_page(f'broken{{a="}} 1\nvllm:broken{{a="}} 1\n{text}') == read_page(text)


def test_windows_line_ends_timestamps_and_exemplars():
    plain = vllm(drafts=3, draft_tokens=9, accepted_tokens=4)
    stamped = plain.replace("\n", " 1700000000000\n").replace("9 17", '9 # {trace_id="a b"} 1 17')
    assert page(plain.replace("\n", "\r\n")).spec == page(stamped).spec == page(plain).spec


def test_a_label_may_hold_anything():
    text = 'vllm:spec_decode_num_drafts_total{model_name="a\\"} 7,{b=\\"",engine="0"} 3\n'
    assert page(text).spec.drafts == 3


def test_a_line_longer_than_any_is_not_read_and_not_taken_for_0():
    long = f'vllm:spec_decode_num_drafts_total{{a="{"x" * MAX_LINE}"}} 3\n'
    found = page(vllm(1, drafts=2), long)
    assert (found.spec.drafts, found.ranks) == (2, 2)


def test_a_position_beyond_any_window_is_not_counted():
    odd = (
        vllm(p1=1).replace('position="1"', f'position="{label}"') for label in ("١x", "", "-1", "9" * 8000)
    )
    lines = vllm(drafts=1, p0=1) + vllm(p99999=1) + "".join(odd)
    assert page(lines).spec.accepted_per_position == (1,)


def test_a_start_is_told_by_any_page():
    assert started('a 1\nprocess_start_time_seconds{instance="x"} 1.5e9\n') == "1.5e9"
    assert started("go_gc 1\n") is None


def test_lifetime_counts_of_earlier_traffic_do_not_enter():
    """sglang#16694: the server's own average was 3.9 before, and this run's is 3.1."""
    before = page(vllm(drafts=100, draft_tokens=500, accepted_tokens=290, p0=90, p1=80))
    after = page(vllm(drafts=200, draft_tokens=1000, accepted_tokens=500, p0=150, p1=110, p2=5))
    counted = between(before, after)
    assert counted == SpecCounters(
        drafts=100,
        drafted_tokens=500,
        accepted_tokens=210,
        accepted_per_position=(60, 30, 5),
        source="vLLM /metrics",
    )
    assert before.spec.mean_acceptance_length == pytest.approx(3.9)
    assert counted.mean_acceptance_length == pytest.approx(3.1)


FIRST = {"drafts": 13, "draft_tokens": 50, "accepted_tokens": 20, "p0": 12, "p1": 8}


@pytest.mark.parametrize(
    "later",
    [
        {"drafts": 2, "draft_tokens": 10, "accepted_tokens": 4, "p0": 2, "p1": 2},
        {**FIRST, "accepted_tokens": 19},
        {**FIRST, "drafts": 40, "draft_tokens": 100, "p0": 30, "p1": 7},
        {"prompt_tokens": 1},
    ],
)
def test_a_counter_that_fell_or_went_is_a_reset_and_not_unknown(later):
    before, after = page(vllm(**FIRST)), page(vllm(**later))
    assert between(before, after) is None
    assert is_reset(before, after)


def test_what_is_unknown_is_no_reset():
    known, silent = page(vllm(**FIRST)), page(vllm(drafts=math.nan))
    for before, after in ((known, silent), (silent, known), (known, known)):
        assert not is_reset(before, after)
    assert between(known, silent) is None is between(silent, known)
    assert between(None, known) is None is between(known, None)
    assert between(known, known).drafts == 0


def test_a_start_between_two_pages_is_a_reset_whatever_the_counts():
    before, after = (
        page(vllm(started=1, **FIRST)),
        page(vllm(started=2, drafts=99, draft_tokens=999, accepted_tokens=99)),
    )
    assert is_reset(before, after) and between(before, after) is None


def test_one_rank_that_started_anew_is_a_reset_though_the_sum_rose():
    before = page(vllm(0, drafts=100, draft_tokens=300), vllm(1, drafts=100, draft_tokens=300))
    after = page(vllm(0, drafts=500, draft_tokens=1500), vllm(1, drafts=3, draft_tokens=9))
    assert after.spec.drafts > before.spec.drafts
    assert is_reset(before, after) and between(before, after) is None


def test_counters_of_the_load_that_fell_are_a_reset_of_a_baseline():
    before, after = (page(vllm(prompt_tokens=n, generation_tokens=9)) for n in (5, 4))
    assert is_reset(before, after)
    assert load.between(before.load, after.load).prompt_tokens is None


def test_a_rank_that_only_one_page_knows_is_left_out():
    before = page(vllm(0, drafts=1, draft_tokens=3, accepted_tokens=0))
    after = page(*(vllm(i, drafts=5, draft_tokens=15, accepted_tokens=2) for i in range(2)))
    assert between(before, after).drafts == 4


def test_more_accepted_than_drafted_is_no_count():
    before, after = (
        page(vllm(drafts=0, draft_tokens=3, accepted_tokens=0)),
        page(vllm(drafts=2, draft_tokens=6, accepted_tokens=5)),
    )
    assert between(before, after) is None


def test_steps_are_never_fewer_than_drafts():
    """A request that was cancelled leaves a draft and no inter-token latency."""

    def at(steps: int, drafts: int, tokens: int) -> Page:
        lines = vllm(drafts=drafts, draft_tokens=drafts * 3, accepted_tokens=0, generation_tokens=tokens)
        return page(
            lines,
            'vllm:time_to_first_token_seconds_count{engine="0"} 1\n'
            f'vllm:inter_token_latency_seconds_count{{engine="0"}} {steps}\n',
        )

    assert between(at(10, 4, 11), at(14, 9, 15)).steps == 5


def test_every_engine_names_its_source():
    assert set(SOURCES) == {"vllm", "sglang", "llama.cpp", "tensorrt-llm", "tgi"}


@settings(deadline=None)
@given(st.text() | st.text(alphabet='vllm:{}="0 \n\\nae.'))
def test_any_text_is_read_or_refused(text):
    read_page(text)
    for prefix in ("vllm:", "sglang:", "llamacpp:", "tgi_", "trtllm_", "["):
        read_page(prefix + text)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_a_mutated_page_is_read_or_refused(data):
    """Lines cut, doubled, swapped and overwritten; what comes out adds up, and its ratios can be stated."""
    name = data.draw(st.sampled_from(sorted(TEXTS)))
    lines = [line for line in TEXTS[name].split("\n") if line and "bucket" not in line][:400]
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(lines) - 1))
        line = lines[at]
        cut = data.draw(st.integers(0, len(line)))
        odd = data.draw(
            st.sampled_from(["", "NaN", "+Inf", "-1", "1e400", '"', "{", "}", "\\", "\x00", " ", "9" * 400])
        )
        lines[at] = line[:cut] + odd + data.draw(st.sampled_from([line[cut:], "", lines[0]]))
    found = read_page("\n".join(lines))
    if found is None:
        return
    assert found.ranks >= 1
    if found.spec is not None:
        assert [one.name for one in stated(found.spec)] == list(DEFINITIONS)
        counts = (found.spec.steps, found.spec.drafts, found.spec.drafted_tokens, found.spec.accepted_tokens)
        assert all(value is None or value >= 0 for value in counts)
    original = read_page(TEXTS[name])
    for before, after in ((original, found), (found, original)):
        counted = between(before, after)
        assert counted is None or (counted.drafted_tokens or 0) >= 0 <= (counted.drafts or 0)
        change = load.between(before.load, after.load)
        assert change.output_tokens is None or change.output_tokens >= 0
