from dataclasses import replace

from breakeven.compare.confounders import confounders
from tests.cases.builders import reply, run


def one(baseline, candidate) -> str:
    found = confounders(baseline, candidate)
    assert len(found) == 1, found
    return found[0]


def test_equal_sides_have_none():
    assert confounders(run(), run(seed=1)) == ()
    assert confounders(run(cached_tokens=50), run(cached_tokens=52)) == ()


def test_prefix_cache():
    found = one(run(cached_tokens=80), run(cached_tokens=5))
    assert "80.0 % → 5.0 %" in found and "prefix cache" in found


def test_a_cache_known_on_one_side_only_is_not_compared():
    assert confounders(run(cached_tokens=80), run()) == ()


def test_time_to_first_token():
    found = one(run(ttft_s=0.05), run(ttft_s=0.2))
    assert "50.0 ms → 200.0 ms" in found


def test_prompt_tokens():
    assert "24 of 24 pairs" in one(run(prompt_tokens=100), run(prompt_tokens=103))


def test_finish_reasons():
    assert "length 0 → 24, stop 24 → 0" in one(run(), run(finish_reason="length"))


def test_output_lengths():
    assert "+25.0 %" in one(run(tokens=32), run(tokens=40))


def test_failed_and_unpaired_requests_tell_nothing():
    assert confounders([reply(), reply("only here")], [reply(error="cut off")]) == ()


def test_the_prefix_cache_is_known_from_llamacpps_timings_too():
    before, after = (
        [replace(trace, server_timings={"timings": {"cache_n": cached}}) for trace in run()]
        for cached in (80, 5)
    )
    assert "80.0 % → 5.0 %" in one(before, after)
