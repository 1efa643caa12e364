import pytest

from breakeven.acceptance.per_request import from_chunk


def test_vllm_detailed_metrics():
    spec = {
        "mean_acceptance_length": 6.0,
        "acceptance_histogram": [1, 0, 0, 0, 0, 3],
        "num_spec_steps": 4,
        "num_accepted_draft_tokens": 15,
        "num_draft_tokens": 20,
    }
    counters = from_chunk({"metrics": {"speculative_decoding": spec}}, output_tokens=32)
    assert counters is not None
    assert (counters.drafts, counters.drafted_tokens, counters.accepted_tokens) == (4, 20, 15)
    assert counters.steps == 32 - 1 - 15
    assert counters.accepted_per_position == (3, 3, 3, 3, 3)
    assert counters.draft_share == pytest.approx(4 / 16)


def test_llamacpp_timings_do_not_tell_the_steps_that_drafted():
    counters = from_chunk({"timings": {"draft_n": 289, "draft_n_accepted": 158}}, output_tokens=300)
    assert counters is not None
    assert counters.acceptance_rate == pytest.approx(0.547, abs=5e-4)
    assert counters.drafts is None
    assert counters.mean_acceptance_length is None
    assert counters.draft_share is None
    assert counters.tokens_per_step == pytest.approx(1 + 158 / 141)


def test_llamacpp_leaves_the_counts_out_when_nothing_was_drafted():
    counters = from_chunk({"timings": {"predicted_n": 20}}, output_tokens=20)
    assert counters is not None
    assert (counters.drafts, counters.drafted_tokens, counters.accepted_tokens) == (0, 0, 0)
    assert counters.acceptance_rate is None
    assert counters.draft_share == 0


def test_accepted_beyond_the_end_never_makes_steps_negative():
    spec = {"num_spec_steps": 1, "num_accepted_draft_tokens": 6, "num_draft_tokens": 6}
    counters = from_chunk({"metrics": {"speculative_decoding": spec}}, output_tokens=2)
    assert counters is not None
    assert counters.steps == 1
    assert counters.tokens_per_step == 1, "the other five were cut off"


def test_llamacpp_that_accepted_beyond_the_end_took_a_step_at_least():
    counters = from_chunk({"timings": {"draft_n": 7, "draft_n_accepted": 6}}, output_tokens=2)
    assert counters is not None
    assert (counters.steps, counters.tokens_per_step) == (1, 1)


def test_mlx_vlm_counts_its_rounds():
    """Each round of its blocks of 8 drafts 7 tokens; what a round accepted past the stop token is counted."""
    timings = {"predicted_n": 100, "draft_rounds": 30, "draft_n": 210, "draft_n_accepted": 71}
    counters = from_chunk({"timings": timings}, output_tokens=None)
    assert counters is not None
    assert (counters.steps, counters.drafts, counters.emitted_tokens) == (30, 30, 99)
    assert counters.tokens_per_step == pytest.approx(99 / 30)
    assert counters.source == "mlx-vlm timings in the reply"


SGLANG = {
    "spec_accept_rate": 0.2930232558139535,
    "spec_accept_length": 2.4651162790697674,
    "spec_num_correct_drafts": 63,
    "spec_num_proposed_drafts": 215,
    "spec_verify_ct": 43,
    "spec_correct_drafts_histogram": [11, 14, 11, 4, 0, 3],
}
"""Of a reply of 106 tokens (sglang#33518)."""


def test_sglang_details_of_the_openai_api():
    counters = from_chunk({"sglext": {"spec_tokens_details": SGLANG}}, output_tokens=106)
    assert counters is not None
    assert (counters.steps, counters.drafts, counters.drafted_tokens, counters.accepted_tokens) == (
        43,
        43,
        215,
        63,
    )
    assert counters.accepted_per_position == (32, 18, 7, 3, 3)
    assert counters.acceptance_rate == pytest.approx(SGLANG["spec_accept_rate"])
    assert counters.tokens_per_step == pytest.approx(105 / 43), "the first token is of the prefill"


@pytest.mark.parametrize(
    "names",
    [
        ("spec_accept_token_num", "spec_draft_token_num", "spec_accept_histogram"),
        ("spec_accepted_drafts", "spec_proposed_drafts", "spec_accept_histogram"),
    ],
)
def test_older_names_of_sglang_in_its_own_api(names):
    new = ("spec_num_correct_drafts", "spec_num_proposed_drafts", "spec_correct_drafts_histogram")
    meta = {"completion_tokens": 106, "spec_verify_ct": 43} | {
        old: SGLANG[now] for old, now in zip(names, new, strict=True)
    }
    assert from_chunk({"meta_info": meta}, None) == from_chunk(
        {"sglext": {"spec_tokens_details": SGLANG}}, 106
    )


def test_sglang_that_tells_only_its_verify_calls():
    counters = from_chunk({"meta_info": {"spec_verify_ct": 43}}, output_tokens=106)
    assert counters is not None
    assert (counters.steps, counters.accepted_tokens, counters.acceptance_rate) == (43, None, None)
    assert counters.tokens_per_step == pytest.approx(105 / 43)


@pytest.mark.parametrize(
    "chunk",
    [
        {},
        {"metrics": None},
        {"timings": []},
        {"metrics": {"speculative_decoding": 3}},
        {"meta_info": {"completion_tokens": 3}},
        {"sglext": {"spec_tokens_details": None}},
        {"sglext": 7},
    ],
)
def test_chunks_without_counts(chunk):
    assert from_chunk(chunk, 10) is None


@pytest.mark.parametrize("value", [None, "12", -1, True, 1.5, [1]])
def test_a_count_of_the_wrong_type_is_unknown(value):
    spec = {"num_spec_steps": value, "num_accepted_draft_tokens": value, "acceptance_histogram": [value]}
    counters = from_chunk({"metrics": {"speculative_decoding": spec}}, output_tokens=10)
    assert counters is not None
    assert counters.drafts is None
    assert counters.accepted_tokens is None
    assert counters.steps is None


@pytest.mark.parametrize(
    "chunk",
    [
        {"timings": {"draft_n": 5, "draft_n_accepted": 9}},
        {"metrics": {"speculative_decoding": {"num_draft_tokens": 2, "num_accepted_draft_tokens": 3}}},
    ],
)
def test_more_accepted_than_drafted_is_no_count(chunk):
    assert from_chunk(chunk, output_tokens=32) is None


def test_a_count_beyond_all_measure_is_unknown():
    counters = from_chunk({"timings": {"draft_n": 10**30, "draft_n_accepted": 10**30}}, output_tokens=32)
    assert counters is not None
    assert (counters.drafted_tokens, counters.accepted_tokens) == (None, None)
