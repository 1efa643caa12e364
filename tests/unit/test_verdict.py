import dataclasses

import pytest

from breakeven.compare.comparison import compare_traces
from breakeven.compare.records import Comparison, SideQuality
from breakeven.interval import Interval
from breakeven.trace.records import RequestTrace
from breakeven.verdict import judge
from tests.cases.builders import reply, run


def judged(baseline, candidate, **options):
    return judge(compare_traces(baseline, candidate, temperature=0, **options))


def with_sides(baseline: SideQuality, candidate: SideQuality) -> Comparison:
    found = compare_traces(run(50), run(60, seed=1), temperature=0)
    return dataclasses.replace(found, baseline=baseline, candidate=candidate)


def side(requests: int = 100, errors: int = 0, truncated: int = 0, degenerate: int = 0) -> SideQuality:
    return SideQuality(requests, errors, truncated, degenerate, {}, max_tokens=512)


@pytest.mark.parametrize(
    ("speed", "outcome", "figure"), [(60, "faster", "+20."), (40, "slower", "−20."), (50, "same", "2.0 %")]
)
def test_clear_cases(speed: float, outcome: str, figure: str):
    found = judged(run(50), run(speed, seed=1))
    assert found.outcome == outcome
    assert found.reason.startswith(outcome.capitalize()) and figure in found.reason
    assert "8 prompts × 3 repeats" in found.reason and "95.0 % interval" in found.reason
    assert found.next_command is None


def shaken(prompt: int, repeat: int) -> float:
    """Noise that cancels over any two repeats."""
    return 1.1 if (prompt // 2 + repeat) % 2 else 1 / 1.1


def test_undecided_by_noise_names_the_repeats():
    found = judged(run(50, repeats=4), run(51.5, repeats=4, speed_of=shaken, seed=1))
    assert found.outcome == "undecided"
    assert found.next_command is not None
    assert int(found.next_command.removeprefix("breakeven trial … --repeats ")) > 4
    assert "repeats of these prompts would decide it" in found.reason
    assert "same" not in found.reason.lower()


def test_undecided_by_prompts_asks_for_prompts():
    speeds = [50 * factor for factor in (1.2, 0.9, 1.15, 0.95, 1.25, 0.85, 1.1, 0.95)]
    found = judged(run(50), run(speeds, seed=1))
    assert found.outcome == "undecided"
    assert found.next_command == "breakeven trial … --prompts FILE"
    assert "More repeats would not" in found.reason
    assert "(4 of 8 are faster by themselves, 4 slower)" in found.reason


def test_an_estimate_on_the_floor_may_never_be_decided():
    estimate = 1.02 * (1 - 1e-6)
    found = compare_traces(run(50), run(50, seed=1), temperature=0)
    on_the_floor = dataclasses.replace(found, speedup=Interval(estimate, 0.95, 1.1))
    judgement = judge(on_the_floor)
    assert judgement.outcome == "undecided" and judgement.next_command is None
    assert "too near the floor" in judgement.reason


def test_categories_that_disagree_are_named():
    baseline = [*run(50, category="math"), *_other(run(50, category="copy"))]
    candidate = [*run(45, seed=1, category="math"), *_other(run(80, seed=1, category="copy"))]
    found = judged(baseline, candidate)
    assert "faster on copy (+" in found.reason and "slower on math (−" in found.reason


def test_one_pair_decides_nothing():
    found = judged([reply(tpot_s=0.02)], [reply(tpot_s=0.01)])
    assert found.outcome == "undecided" and "one pair" in found.reason


def test_one_prompt_speaks_for_itself():
    found = judged(run(50, prompts=1, repeats=6), run(70, prompts=1, repeats=6, seed=1))
    assert found.outcome == "faster" and "p0 only" in found.reason


def test_what_both_sides_checks_say_is_said_once():
    checks = [(name, False, ("the event loop lagged",)) for name in ("baseline", "candidate")]
    verdict = judge(compare_traces(run(50), run(60), temperature=0), checks)
    assert verdict.reason.count("the event loop lagged") == 1 and verdict.next_command is None
    assert "(baseline and candidate: the event loop lagged)" in verdict.reason


def test_reasons_that_differ_in_their_figures_only_are_one():
    checks = [
        ("baseline", False, ("it lagged 12.5 ms", "it lagged 13.0 ms")),
        ("candidate", False, ("it lagged 9 ms",)),
    ]
    reason = judge(compare_traces(run(50), run(60), temperature=0), checks).reason
    assert "(baseline and candidate, by the figures of the first: it lagged 12.5 ms)" in reason


def test_a_self_check_that_failed_without_a_reason_refuses():
    found = judge(compare_traces(run(50), run(60), temperature=0), [("baseline", False, ())])
    assert found.outcome == "refused" and "(baseline: " in found.reason


def test_a_void_self_check_refuses():
    found = judge(
        compare_traces(run(50), run(60), temperature=0),
        [("baseline", True, ()), ("candidate", False, ("event-loop lag 40 ms",))],
    )
    assert found.outcome == "refused" and "candidate: event-loop lag 40 ms" in found.reason


def test_nothing_paired_refuses_with_the_counts():
    found = judged(run(50, prompts=2, tokens=1, max_tokens=1), run(50, prompts=2, tokens=1, max_tokens=1))
    assert found.outcome == "refused"
    assert "6 requests, 0 failed, 6 without a TPOT (one token has none after it)" in found.reason
    assert found.next_command == "breakeven trial … --max-tokens 64"


def at_once(trace: RequestTrace) -> RequestTrace:
    """The same, all of which arrived together."""
    last = trace.events[-1]
    events = tuple(one._replace(read_ns=last.read_ns, read_id=0) for one in trace.events)
    return dataclasses.replace(trace, events=events)


def test_replies_that_come_whole_are_told_from_short_ones():
    whole = [at_once(trace) for trace in run(50, prompts=2)]
    found = judged([*whole[:-1], reply("p1", 2, tokens=1)], whole)
    assert (
        "baseline 6 requests, 0 failed, 6 without a TPOT (5: all tokens came in one read, 1: " in found.reason
    )
    assert "candidate 6 requests, 0 failed, 6 without a TPOT (all tokens came in one read)" in found.reason
    assert "held back by a proxy (ask the server itself)" in found.reason
    assert found.next_command == "breakeven trial … --max-tokens 512"


def test_reasoning_that_is_not_streamed_is_not_mended_by_more_tokens():
    def hidden(trace: RequestTrace) -> RequestTrace:
        usage = {"completion_tokens": 900, "completion_tokens_details": {"reasoning_tokens": 800}}
        return dataclasses.replace(trace, usage=usage)

    sides = [[hidden(trace) for trace in run(50, prompts=2)] for _ in range(2)]
    found = judged(*sides)
    assert "6 without a TPOT (hidden reasoning)" in found.reason and "proxy" not in found.reason
    assert found.next_command is not None and "enable_thinking" in found.next_command


def test_no_replies_refuse():
    found = judged(run(50), [])
    assert found.outcome == "refused" and "candidate 0 requests" in found.reason
    assert found.next_command == "breakeven trial …"


def test_truncation_on_one_side_refuses():
    found = judge(with_sides(side(), side(truncated=22)))
    assert found.outcome == "refused"
    assert "candidate 22.0 %, 22 of 100" in found.reason
    assert found.next_command == "breakeven trial … --max-tokens 1024"


def test_truncation_alike_on_both_sides_does_not():
    assert judge(with_sides(side(truncated=22), side(truncated=22))).outcome == "faster"


@pytest.mark.parametrize(("errors", "outcome"), [(5, "faster"), (6, "refused")])
def test_errors(errors: int, outcome: str):
    found = judge(with_sides(side(errors=errors), side()))
    assert found.outcome == outcome
    if outcome == "refused":
        assert "baseline 6.0 %, 6 of 100" in found.reason


@pytest.mark.parametrize(("degenerate", "outcome"), [(50, "faster"), (51, "refused")])
def test_loops(degenerate: int, outcome: str):
    found = judge(with_sides(side(), side(degenerate=degenerate)))
    assert found.outcome == outcome
    assert ("51 of 100" in found.reason) == (outcome == "refused")


def slowing(_: int, repeat: int) -> float:
    return 1 - 0.05 * repeat


def test_a_drift_that_both_sides_shared_is_a_warning():
    sides = run(50, speed_of=slowing), run(53, speed_of=slowing, seed=1)
    compared = compare_traces(*sides, temperature=0)
    assert compared.drift.significant
    assert any("drifted" in warning for warning in compared.warnings)
    assert judge(compared).outcome == "faster"


def _other(traces):
    return [dataclasses.replace(trace, prompt_id=f"x{trace.prompt_id}") for trace in traces]


@pytest.mark.parametrize("confidence", [0.95, 0.999, 0.99999])
def test_a_spread_without_bounds_is_told_in_words(confidence: float):
    found = judged(run([50, 40], repeats=1), run([500, 4], repeats=1), confidence=confidence)
    assert found.outcome == "undecided"
    assert "−100.0 % to over +100,000 %" in found.reason
    assert "The spread is too wide" in found.reason and "floor" not in found.reason


def test_a_level_is_never_shown_as_certain():
    found = judged(run(50, noise=0.1), run(52, noise=0.1, seed=1), confidence=0.9999)
    assert "99.99 % interval" in found.reason


def test_sides_that_answered_other_requests_are_told():
    early, late = ([t for t in run(repeats=4) if (t.repeat < 2) is first] for first in (True, False))
    found = judged(early, late)
    assert found.outcome == "refused"
    assert "those that have one answer other prompts or repeats" in found.reason
