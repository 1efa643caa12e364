import dataclasses
import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.logs.lines import EVENTS
from breakeven.acceptance.logs.reader import read_log
from breakeven.acceptance.logs.summary import LogSummary
from breakeven.acceptance.stated import Stated
from breakeven.engines.dialects import dialect
from tests.unit.acceptance.logs.writer import llamacpp_lines, sglang_line, vllm_line, vllm_state_line

LOGS = Path(__file__).parents[3] / "golden" / "logs"
V0 = (
    "INFO 10-16 19:05:{second:02} metrics.py:367] Speculative metrics: Draft acceptance rate: 0.642, "
    "System efficiency: 0.598, Number of speculative tokens: {k}, Number of accepted tokens: {matched}, "
    "Number of draft tokens: {drafted}, Number of emitted tokens: {emitted}."
)
BANNER = "(APIServer pid=1) INFO 11-29 11:16:02 [api_utils.py:347]   █▄█▀ █   █  version 0.32.0"
SERVING = "INFO:     Application startup complete."
POST = 'INFO:     127.0.0.1:46844 - "POST /v1/completions HTTP/1.1" 200 OK'


def read(*lines: str) -> LogSummary:
    return read_log(["\n".join(lines).encode()])


def ratio(summary: LogSummary, name: str) -> Stated:
    return next(one for one in summary.stated if one.name == name)


def is_safe(text: str) -> bool:
    """No control character, escape, lone surrogate, or mark that reorders text."""
    reordering = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return not any(
        unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(one) in reordering
        for one in text
    )


def as_plain(value: Any) -> Any:
    """For JSON: floats to 6 digits; of the facts, how many."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            one.name: len(value.facts) if one.name == "facts" else as_plain(getattr(value, one.name))
            for one in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {key: as_plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(one) for one in value]
    return round(value, 6) if isinstance(value, float) else value


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.glob("*.log")))
def test_real_logs_give_their_golden_results(name: str):
    summary = read_log([(LOGS / f"{name}.log").read_bytes()])
    assert as_plain(summary) == json.loads((LOGS / f"{name}.json").read_text())


@pytest.mark.parametrize("name", ["vllm-0.32-moe-suffix", "llamacpp-ngram-mod", "sglang-11948"])
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_it_does_not_matter_where_the_bytes_are_cut(name: str, size: int):
    log = (LOGS / f"{name}.log").read_bytes()
    assert read_log(log[at : at + size] for at in range(0, len(log), size)) == read_log([log])


def test_an_empty_log_says_nothing():
    summary = read_log([])
    assert (summary.engine, summary.format, summary.lines, summary.periods) == (None, "", 0, 0)
    assert summary.counters is summary.first is summary.last is summary.status is None
    assert all(one.value is None and one.why for one in summary.stated)


def test_vllm_periods_add_up_and_their_drafts_are_exact():
    one, two = [(5, 5)] * 3 + [(5, 2)], [(5, 0), (3, 1)]
    summary = read(vllm_line(one, 5, "11-29 11:18:25"), vllm_line(two, 5, "11-29 11:18:35"))
    assert summary.counters is not None
    assert (summary.counters.drafts, summary.counters.drafted_tokens, summary.counters.accepted_tokens) == (
        6,
        28,
        18,
    )
    assert summary.counters.accepted_per_position == (5, 4, 3, 3, 3)
    assert (summary.engine, summary.format, summary.periods) == ("vllm", "vLLM 0.11 or later", 2)
    assert summary.first is not None and summary.first.at == "11-29 11:18:25"
    assert summary.last is not None and summary.last.counters.drafts == 2
    steps = ratio(summary, "tokens_per_step")
    assert steps.value is None and steps.why == "not derivable: vLLM log does not count decode steps"


@given(
    st.integers(1, 8).flatmap(
        lambda window: st.tuples(
            st.just(window),
            st.lists(
                st.integers(1, window).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
                min_size=1,
                max_size=400,
            ),
        )
    )
)
def test_what_vllm_prints_is_read_back(case: tuple[int, list[tuple[int, int]]]):
    window, drafts = case
    summary = read(vllm_line(drafts, window))
    counters, accepted = summary.counters, sum(two for _, two in drafts)
    assert counters is not None
    assert (counters.drafted_tokens, counters.accepted_tokens) == (sum(one for one, _ in drafts), accepted)
    assert counters.drafts in (None, len(drafts))
    length = ratio(summary, "mean_acceptance_length").value
    assert length is not None
    assert length.low - 1e-12 <= 1 + accepted / len(drafts) <= length.high + 1e-12
    truth = tuple(sum(two > position for _, two in drafts) for position in range(window))
    assert counters.accepted_per_position in (None, truth)
    assert len(summary.positions) == window
    for share, count in zip(summary.positions, truth, strict=True):
        assert share.low - 1e-12 <= count / len(drafts) <= share.high + 1e-12


def test_a_busy_period_leaves_its_drafts_in_bounds():
    drafts = [(5, 4)] * 12_000 + [(4, 0)] * 8_001
    summary = read(vllm_line(drafts, 5))
    assert summary.counters is not None
    assert (summary.counters.drafts, summary.counters.accepted_per_position) == (None, None)
    length, rate = ratio(summary, "mean_acceptance_length").value, ratio(summary, "acceptance_rate").value
    assert length is not None and rate is not None
    assert length.low < 1 + 48_000 / 20_001 < length.high
    assert length.high - length.low < 0.005
    assert rate.low == rate.high == 48_000 / 92_004
    assert all(share.high - share.low < 0.0025 for share in summary.positions)
    assert summary.positions[3].low < 12_000 / 20_001 < summary.positions[3].high


@pytest.mark.parametrize(
    ("printed", "rate"), [("Avg Draft acceptance rate: 17.0%", 0.17), ("Draft acceptance rate: 38.8%", 0.388)]
)
def test_lines_that_were_cut_to_their_rate_give_the_rate(printed: str, rate: float):
    summary = read(
        f"SpecDecoding metrics: {printed}", "SpecDecoding metrics: Avg Draft acceptance rate: 150.0%"
    )
    value = ratio(summary, "acceptance_rate").value
    assert value is not None
    assert (value.low, value.high) == pytest.approx((rate, rate))
    assert summary.counters is None


def test_ranks_of_one_time_make_one_period():
    lines = [vllm_line([(5, 5)], 5), vllm_line([(5, 3), (5, 0)], 5)]
    summary = read(*lines)
    assert summary.periods == 1
    assert summary.first == summary.last is not None
    assert summary.last.counters.drafts == 3


def test_before_vllm_0_9_the_mean_length_left_out_the_own_token():
    summary = read(
        "INFO 05-01 10:00:00 [metrics.py:64] SpecDecoding metrics: Draft acceptance rate: 38.8%, "
        "Mean acceptance length: 1.16, Accepted: 150 tokens, Drafted: 387 tokens, "
        "Per-position acceptance rate: 0.543, 0.357, 0.264"
    )
    assert summary.counters is not None and summary.counters.drafts == 129
    assert summary.last is not None
    assert summary.last.reported == pytest.approx({"acceptance_rate": 0.388, "mean_acceptance_length": 2.16})
    assert summary.format == "vLLM 0.9 or 0.10"


def test_totals_of_v0_become_what_was_counted_between_them():
    first = V0.format(second=1, k=3, matched=20, drafted=30, emitted=25)
    second = V0.format(second=6, k=3, matched=30, drafted=45, emitted=37)
    summary = read(first, second)
    assert summary.counters is not None
    assert (summary.counters.drafts, summary.counters.drafted_tokens) == (15, 45)
    assert summary.counters.accepted_tokens == 37 - 15
    assert summary.last is not None and summary.last.counters.drafts == 5
    assert summary.resets == 0
    assert any("after a rejected one" in note for note in summary.notes)
    assert any("since the server's start" in note for note in summary.notes)


def test_a_total_that_falls_is_a_reset():
    summary = read(
        V0.format(second=1, k=3, matched=20, drafted=30, emitted=25),
        V0.format(second=6, k=3, matched=2, drafted=3, emitted=2),
    )
    assert summary.resets == 1
    assert summary.counters is not None and summary.counters.drafts == 11


def test_a_line_of_v0_cut_before_its_counts_still_bounds_the_length():
    summary = read(
        "INFO 10-16 19:05:47 metrics.py:367] Speculative metrics: Draft acceptance rate: 0.698, "
        "System efficiency: 0.426, Number of speculative tokens: 5, Number of acc"
    )
    length = ratio(summary, "mean_acceptance_length").value
    assert length is not None and length.estimate == pytest.approx(0.426 * 6)
    assert summary.counters is None


def test_llamacpp_steps_follow_from_the_output():
    summary = read_log([(llamacpp_lines([(48, 48), (48, 17)], 136, 1) + llamacpp_lines([], 21, 2)).encode()])
    assert summary.counters is not None
    assert summary.counters.drafts == 2
    assert summary.counters.steps == (136 - 1 - 65) + 20
    share = ratio(summary, "draft_share").value
    assert share is not None and share.estimate == pytest.approx(2 / 90)
    assert summary.periods == 1


def test_llamacpp_without_mean_length_does_not_support_an_acceptance_length():
    summary = read("draft acceptance rate = 0.54671 (  158 accepted /   289 generated)")
    rate, length = ratio(summary, "acceptance_rate"), ratio(summary, "mean_acceptance_length")
    assert rate.value is not None and round(rate.value.estimate, 3) == 0.547
    assert length.value is None
    assert length.why == "not derivable: llama.cpp log does not count steps that drafted"


def test_the_totals_of_llamacpp_drafters_tell_the_drafts_where_they_agree():
    lines = [
        "draft acceptance rate = 0.50000 (   10 accepted /   20 generated)",
        "statistics ngram_mod: #calls(b,g,a) = 1 4 2, #gen drafts = 2, #acc drafts = 2, #gen tokens = 8, "
        "#acc tokens = 6, dur(b,g,a) = 0.149, 0.347, 0.005 ms",
        "statistics draft: #calls = 4, #gen drafts = 4, #acc drafts = 2, #gen tokens = 12, #acc tokens = 4",
    ]
    agreeing = read(*lines).counters
    assert agreeing is not None and agreeing.drafts == 6
    other = read(*lines[:2]).counters
    assert other is not None and other.drafts is None


def test_llamacpp_that_drafts_nothing_has_drafts_of_0():
    lines = "common_speculative_init: adding speculative implementation 'ngram_mod'\n" + llamacpp_lines(
        [], 21
    )
    counters = read_log([lines.encode()]).counters
    assert counters is not None
    assert (counters.drafts, counters.drafted_tokens, counters.steps) == (0, 0, 20)
    assert read_log([llamacpp_lines([], 21).encode()]).counters is None


def test_sglang_gives_ratios_but_no_counts():
    summary = read(sglang_line(2.4, 0.7, 3), sglang_line(3.4, 1.2 / 1.5, 1))
    assert summary.counters is None
    assert summary.periods == 1
    length = ratio(summary, "mean_acceptance_length").value
    assert length is not None
    assert length.estimate == pytest.approx((3 * 2.4 + 3.4) / 4)
    assert (length.low, length.high) == (pytest.approx(2.395), pytest.approx(3.405))


@pytest.mark.parametrize(("drafted", "with_own"), [(3, True), (3, False), (4, True), (4, False)])
def test_whether_sglang_counts_the_own_token_in_its_rate_is_found_out(drafted: int, with_own: bool):
    lengths = (1.5, 2.17, 2.9)
    rates = [length / (drafted + 1) if with_own else (length - 1) / drafted for length in lengths]
    summary = read(*map(sglang_line, lengths, rates))
    rate = ratio(summary, "acceptance_rate").value
    assert rate is not None
    assert rate.estimate == pytest.approx((sum(lengths) / 3 - 1) / drafted)


def test_a_rate_of_sglang_that_fits_no_one_window_is_not_derivable():
    rate = ratio(read(sglang_line(2.0, 0.5), sglang_line(2.0, 0.25)), "acceptance_rate")
    assert rate.value is None and rate.why.startswith("not derivable")


def test_a_log_of_tgi_is_known_and_counts_nothing():
    summary = read(
        "2024-08-01T10:00:00.000000Z  INFO text_generation_launcher: Args {",
        "2024-08-01T10:01:00.000000Z  INFO text_generation_router::server: router/src/server.rs: Connected",
    )
    assert (summary.engine, summary.counters) == ("tgi", None)
    assert ratio(summary, "acceptance_rate").why == (
        "not derivable: TGI log does not count accepted tokens or drafted tokens"
    )


def test_tensorrt_llm_iterations_are_exact_and_rank_0_alone_counts():
    line = (
        '{"iter": 7, "attentionDpRank": %d, "specDecodingStats": {"numDraftTokens": 24, '
        '"numAcceptedTokens": 12, "numRequestsWithDraftTokens": 8, "acceptanceLength": 2.5}}'
    )
    counters = read(line % 0, line % 1).counters
    assert counters is not None
    assert (counters.drafts, counters.drafted_tokens, counters.accepted_tokens) == (8, 24, 12)


def test_status_lines_are_summed_over_ranks():
    summary = read(
        vllm_state_line(0, 3, "11-29 11:18:25"),
        vllm_state_line(1, 1, "11-29 11:18:25"),
        vllm_state_line(0, 2, "11-29 11:18:35", output=0.0),
        vllm_state_line(1, 0, "11-29 11:18:35", output=0.0),
    )
    status = summary.status
    assert status is not None
    assert (status.times, status.mean_running, status.most_waiting) == (2, 3.0, 8)
    assert status.most_kv_usage == pytest.approx(0.3)
    assert status.prefix_hit_rate == pytest.approx(0.534)
    assert status.mean_output_tokens_s == pytest.approx(63.6)


def test_sglang_status_and_its_prefix_cache():
    summary = read(
        "[2025-10-22 10:27:56 TP0] Prefill batch. #new-seq: 1, #new-token: 30, #cached-token: 10, "
        "token usage: 0.00, #running-req: 0, #queue-req: 0, ",
        sglang_line(2.0, 0.5, 4),
    )
    assert summary.status is not None
    assert (summary.status.mean_running, summary.status.most_waiting) == (4, 3)
    assert summary.status.prefix_hit_rate == 0.25
    assert summary.status.most_kv_usage == 0.25


def test_periods_without_drafts_are_told():
    summary = read(
        vllm_state_line(0, 1, "11-29 11:18:25"),
        vllm_line([(5, 5)], 5, "11-29 11:18:25"),
        vllm_state_line(0, 1, "11-29 11:18:35"),
    )
    assert any(note.startswith("in 1 of 2 periods with output nothing was drafted") for note in summary.notes)


def test_vllm_with_speculation_that_never_drafts_has_drafts_of_0():
    start = (
        "(EngineCore pid=1) INFO 11-29 11:16:18 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with "
    )
    start += "config: model='m', speculative_config={}, tokenizer='m'"
    state = vllm_state_line(0, 1, "11-29 11:18:25")
    speculating = read(start.format("SpeculativeConfig(method='ngram', num_spec_tokens=5)"), SERVING, state)
    assert speculating.counters is not None and speculating.counters.drafts == 0
    assert read(start.format("None"), SERVING, state).counters is None


EVENT_LINES = {
    "preemption": "WARNING 05-09 00:49:33 scheduler.py:1057 Sequence group 0 is preempted by "
    "PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.",
    "kv_cache_full": "decode: failed to find free space in the KV cache, retrying with smaller batch size",
    "out_of_memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
    "compile": "INFO 11-29 11:16:02 [backends.py:1] Dynamo bytecode transform time: 5.10 s",
    "graph_capture": "INFO 11-29 11:16:02 [runner.py:1] Graph capturing finished in 20 secs, took 0.30 GiB",
    "async_scheduling_off": "WARNING 11-29 11:16:02 [vllm.py:1605] Async scheduling not supported with "
    "ngram-based speculative decoding and will be disabled.",
    "cuda_graph_downgraded": "WARNING 10-24 13:22:34 [x.py:1] CUDAGraphMode.FULL_AND_PIECEWISE is not "
    "supported with B backend (support: NEVER); setting cudagraph_mode=PIECEWISE",
    "cuda_graph_off": "WARNING 11-29 11:41:46 [vllm.py:1703] Enforce eager set, disabling torch.compile",
    "cuda_graph_unused": "[2025-10-22 10:27:57] Decode batch. #running-req: 9, cuda graph: False",
    "attention_backend": "INFO 11-29 11:16:02 [cuda.py:1] Using FLASHINFER attention backend out of 2",
    "speculation_off": "0.00.412.001 W srv  load_model: speculative decoding not supported by this context",
    "nan": "Detected errors during sampling! NaN in the logits.",
}


@pytest.mark.parametrize("name", EVENT_LINES)
def test_each_event_is_counted_with_its_first_line(name: str):
    line = EVENT_LINES[name]
    summary = read(line, line)
    assert summary.events == {name: (2, line)}
    assert name in EVENTS


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (
            "[2026-02-10 22:23:57] WARNING server_args.py:2314: Overlap scheduler is disabled when spec v2 "
            "is off or using unsupported speculative algorithm.",
            "async_scheduling_off",
        ),
        (
            "[2026-02-10 22:23:55] INFO server_args.py:1806: Attention backend not specified. Use flashinfer "
            "backend by default.",
            "attention_backend",
        ),
        ("[2025-12-02 12:01:32] Capture cuda graph end. Time elapsed: 7.00 s", "graph_capture"),
        ("KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_tokens_gained: 12", "preemption"),
        (
            "(EngineCore pid=348187) WARNING 08-04 20:50:58 [jit_monitor.py:135] Triton kernel JIT "
            "compilation during inference: _prepare_dflash_inputs_kernel. This causes a latency spike",
            "compile",
        ),
        ("min_p and logit_bias parameters won't work with speculative decoding.", None),
        ("To avoid running out of memory, lower --max-num-seqs", None),
        ("Using CPUUnquantizedExperts MoE backend", None),
    ],
)
def test_lines_of_other_engines_and_lines_that_tell_nothing(line: str, event: str | None):
    assert list(read(line).events) == ([] if event is None else [event])


@pytest.mark.parametrize("name", ["compile", "graph_capture"])
def test_what_comes_after_the_first_request_is_late(name: str):
    assert set(read(SERVING, EVENT_LINES[name], POST).events) == {name}
    assert set(read(SERVING, POST, EVENT_LINES[name]).events) == {f"late_{name}"}


def test_requests_that_sglang_asks_itself_are_no_service():
    fired = "[2025-10-22 10:27:50] The server is fired up and ready to roll!"
    assert set(read(POST, fired, EVENT_LINES["compile"]).events) == {"compile"}


def test_preemptions_in_a_state_line():
    line = vllm_state_line(0, 1, "11-29 11:18:25", extra="Preemptions: 3, ")
    assert read(line).events == {"preemption": (1, line[:300])}


def test_a_start_in_the_middle_is_a_restart():
    once = [BANNER, "(EngineCore pid=1) INFO 11-29 11:16:18 Using the first start", SERVING, POST]
    summary = read(*once, BANNER, "a line of the second start", SERVING, POST)
    assert summary.resets == 1
    assert summary.events["restart"][0] == 1
    assert any("second start" in line for line in summary.facts)
    assert not any("first start" in line for line in summary.facts)
    assert read(*once).resets == 0


def test_the_facts_of_a_start_are_what_the_engine_reads():
    summary = read_log([(LOGS / "vllm-0.32-dense-ngram.log").read_bytes()])
    facts = dialect("vllm").log.read_facts(summary.facts)
    assert facts["version"] == "0.32.0"
    assert facts["async_scheduling"] == "off"
    assert all(len(line) <= 500 for line in summary.facts)


@pytest.mark.parametrize(
    "wrap",
    [
        "Nov 29 11:18:25 host vllm[412]: {}",
        "2026-11-29T11:18:25.123456789Z {}",
        "vllm-1  | {}",
        "\x1b[1;36m(EngineCore_DP0 pid=12)\x1b[0;0m {}",
    ],
)
def test_prefixes_do_not_hide_a_line(wrap: str):
    counters = read(wrap.format(vllm_line([(5, 4)], 5))).counters
    assert counters is not None and counters.accepted_tokens == 4


@pytest.mark.parametrize(
    "record",
    [
        {"log": "{}\n", "stream": "stderr", "time": "2026-11-29T11:18:25.1Z"},
        {"MESSAGE": "{}", "__REALTIME_TIMESTAMP": "1796000000000000"},
        {"message": "{}", "levelname": "INFO"},
    ],
)
def test_lines_of_json_are_unwrapped(record: dict[str, str]):
    line = json.dumps({key: value.replace("{}", vllm_line([(5, 4)], 5)) for key, value in record.items()})
    summary = read(line)
    assert summary.counters is not None and summary.counters.accepted_tokens == 4
    assert summary.last is not None and summary.last.at == "11-29 11:18:25"


def test_a_journal_writes_a_line_with_colours_as_numbers():
    line = "\x1b[32mINFO\x1b[0m " + vllm_line([(5, 4)], 5)
    summary = read(json.dumps({"MESSAGE": list(line.encode())}, separators=(",", ":")))
    assert summary.counters is not None and summary.counters.accepted_tokens == 4


def test_every_state_of_a_progress_bar_is_a_line():
    bars = "\r".join(f"Capturing CUDA graphs (decode, FULL): {n:3}%|#| {n}/100 [00:01]" for n in (0, 50, 100))
    summary = read(bars, vllm_line([(5, 4)], 5))
    assert summary.events["graph_capture"][0] == 1
    assert summary.counters is not None


def test_utf_16_and_the_nuls_of_a_rotated_log():
    line = vllm_line([(5, 4)], 5)
    for log in (line.encode("utf-16"), b"\0" * 100_000 + line.encode()):
        counters = read_log([log]).counters
        assert counters is not None and counters.accepted_tokens == 4


def test_a_quoted_prompt_is_not_taken_for_the_engine():
    line = (
        f"INFO 01-01 00:00:00 [logger.py:43] Received request chatcmpl-1: prompt: '{vllm_line([(5, 4)], 5)}'"
    )
    assert read(line).counters is None


def test_counts_that_contradict_themselves_are_left_out():
    summary = read(
        "SpecDecoding metrics: Draft acceptance rate: 150.0%, Accepted: 99 tokens, Drafted: 66 tokens"
    )
    assert summary.counters is None
    assert summary.notes == ("lines of speculation that contradict themselves are left out: 1",)


def test_a_hostile_log_is_shown_safely():
    line = (
        "\x1b]0;title\x07\x9b31mCUDA out of memory \u202e\x00\x07\ud800".encode("utf-8", "replace")
        + b"\xff\xfe"
    )
    summary = read_log([b"x" * 10_000_000, b"\n", line, b"\n", b"{" * 70_000, b"NaN in the logits", b"\n"])
    count, first = summary.events["out_of_memory"]
    assert count == 1
    assert first.startswith("CUDA out of memory") and is_safe(first)
    assert summary.lines == 3


LINE = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")),
    st.sampled_from(sorted(LOGS.glob("*.log"))).flatmap(
        lambda path: st.sampled_from(path.read_bytes().split(b"\n")).flatmap(
            lambda line: st.tuples(
                st.integers(0, len(line)), st.integers(0, len(line)), st.binary(max_size=12)
            ).map(lambda cut: line[: cut[0]] + cut[2] + line[cut[1] :])
        )
    ),
)


@given(st.lists(LINE, max_size=30))
def test_nothing_in_a_log_raises(lines: list[bytes]):
    summary = read_log([b"\n".join(lines)])
    for one in summary.stated:
        assert (one.value is None) == bool(one.why)
        assert one.value is None or one.value.low <= one.value.estimate <= one.value.high
    for _, first in summary.events.values():
        assert is_safe(first)
    assert all(is_safe(line) for line in summary.facts)


KEY = "s3cr3t-key-1234"


@pytest.mark.parametrize(
    "line",
    [
        "(APIServer pid=1) INFO 11-29 11:16:02 [utils.py:233] non-default args: {{'api_key': ['{}', '{}2']}}",
        "[2025-10-22 10:27:57] server_args=ServerArgs(model_path='m', api_key='{}', port=1)",
        "INFO 11-29 11:16:02 [x.py:1] fetch https://me:{}@hub/x?token={} failed: CUDA out of memory",
        "torch.OutOfMemoryError: CUDA out of memory --api-key {}",
    ],
)
def test_no_key_of_a_log_is_kept(line: str):
    text = line.format(KEY, KEY)
    for summary in (read(text), read(SERVING, POST, text, BANNER, text), read("x" * 480 + text)):
        assert KEY not in str(summary)


NAN = "(EngineCore pid=1) WARNING 11-29 11:18:25 [sampler.py:9] NaN in the logits"


@pytest.mark.parametrize(
    "line",
    [
        'INFO:     6.6.6.6:1 - "GET /NaN-output HTTP/1.1" 404 Not Found',
        'INFO:     6.6.6.6:1 - "GET /Capturing-server_args=ServerArgs HTTP/1.1" 404 Not Found',
        '[2025-10-22 10:27:57] INFO:     6.6.6.6:1 - "GET /x?"OutOfMemoryError HTTP/1.1" 404 Not Found',
        "srv  log_server_r: request: GET /NaN-output 6.6.6.6 404",
        "user asked: why does it give garbage output and NaN logits?",
        "user asked: what is server_args=ServerArgs(?",
        "user said: SpecDecoding metrics: Accepted: 60 tokens, Drafted: 66 tokens",
        "ERROR 11-29 11:18:25 [serving.py:9] The model `x` or 'NaN output, CUDA out of memory' is not here",
        "[2025-10-22 10:27:57] Receive: obj=GenerateReqInput(text='NaN logits')",
    ],
)
def test_what_a_request_says_is_not_taken_for_the_engine(line: str):
    summary = read(BANNER, SERVING, POST, line)
    assert (summary.events, summary.resets, summary.counters) == ({}, 0, None)


def test_the_engine_itself_is_still_heard():
    bare = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
    events = read(BANNER, SERVING, POST, NAN, bare, BANNER).events
    assert {name: count for name, (count, _) in events.items()} == {
        "nan": 1,
        "out_of_memory": 1,
        "restart": 1,
    }
    assert events["nan"][1] == NAN
