"""Which source is taken for what."""

from dataclasses import replace
from pathlib import Path

import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.acceptance.logs.reader import read_log
from breakeven.acceptance.meter import FOREIGN
from breakeven.acceptance.page import Page
from breakeven.acceptance.prometheus import read_page
from breakeven.acceptance.stated import Stated
from breakeven.diagnose.batch import context_of
from breakeven.diagnose.evidence import GIVEN, Drafting, Replies
from breakeven.diagnose.gather import ANEW, LONGER, NOT_ON_PAGE, NOW, OFF_ON_VLLM, SHARED, counted, gather
from breakeven.diagnose.inferred import inferred, window_of
from breakeven.diagnose.readings import Look, Readings
from breakeven.diagnose.told import Told
from breakeven.explain.records import Observation
from breakeven.interval import Interval
from breakeven.trace.run import Run
from tests.unit.explain.cases import kimi
from tests.unit.report.builders import run_on_disk, trace

GOLDEN = Path(__file__).parents[2] / "golden"
LOG = GOLDEN / "logs" / "vllm-0.32-dense-ngram.log"
OWN = SpecCounters(90, 40, 120, 60, (30, 20, 10), "llama.cpp timings in the reply")


def logged():
    with LOG.open("rb") as file:
        return read_log(file)


def page(drafts: int = 10, started: str | None = None, **load: float) -> Page:
    spec = SpecCounters(3 * drafts, drafts, 5 * drafts, 2 * drafts, source="vLLM /metrics")
    return Page("vllm", spec, Load(**load), by_rank={"0": spec}, started=started)  # type: ignore[arg-type]


def look(before: Page, after: Page) -> Look:
    return Look(before, after, 30.0, "0.32.0")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    text = " ".join(map(str, range(400)))
    some = [replace(trace("a", "c", 0.01, repeat, text=text), speculation=OWN) for repeat in range(3)]
    return run_on_disk(tmp_path / "run", some, {"ok": True, "reasons": []})


def test_counts_of_the_requests_come_first_then_the_log(run: Run):
    made = gather(Readings(candidate=run, log=logged()))
    assert made.counters is not None and made.counters.drafted_tokens == 360
    assert [one.source for one in made.other_sources] == ["vLLM log"]
    assert all(one.source == OWN.source for one in made.stated)
    assert made.engine == "llama.cpp" and made.replies is not None and made.replies.requests == 3
    assert made.sequences == 1 and made.context_tokens == context_of(run) == 40 + 48


def test_a_log_of_a_longer_time_is_not_compared(run: Run):
    few = SpecCounters(30, 10, 30, 15, source="chosen")
    made = gather(Readings(candidate=run, counters=few, log=logged()))
    assert made.other_sources == () and LONGER in made.notes
    seen = gather(Readings(look=look(page(10), page(30)), log=logged()))
    assert seen.counters is not None and seen.counters.drafts == 20
    assert seen.other_sources == () and LONGER in seen.notes and seen.facts
    assert LONGER not in gather(Readings(log=logged())).notes


def test_counts_that_a_comparison_chose_stand(run: Run):
    chosen = SpecCounters(30, 10, 30, 15, source="chosen")
    assert gather(Readings(candidate=run, counters=chosen)).counters == chosen


def test_a_page_read_now_is_not_of_the_runs_time(run: Run):
    made = gather(Readings(candidate=run, look=look(page(10), page(30))))
    assert made.other_sources == () and NOW in made.notes


def test_a_run_without_counts_says_none(tmp_path: Path):
    plain = run_on_disk(tmp_path / "run", [trace("a", "c", 0.01)], {"ok": True, "reasons": []})
    made = gather(Readings(candidate=plain))
    assert made.counters is None
    assert {one.why for one in made.stated} == {"not derivable: nothing that was given counts it"}


def test_a_log_alone():
    made = gather(Readings(log=logged()))
    assert made.engine == "vllm" and made.version == "0.32.0"
    assert made.facts["async_scheduling"] == "off"
    assert made.counters == logged().counters and made.stated == logged().stated
    assert made.traffic is None and made.replies is None and made.observations == ()


def test_a_look_counts_what_happened_between_its_pages():
    made = gather(Readings(look=look(page(10, output_tokens=100), page(30, output_tokens=260, running=2))))
    assert made.counters is not None and (made.counters.drafts, made.counters.accepted_tokens) == (20, 40)
    assert made.traffic is not None and made.traffic.load.output_tokens == 160
    assert (made.traffic.seconds, made.traffic.requests) == (30.0, None)
    assert (made.sequences, made.version, made.resets) == (2, "0.32.0", 0)


def test_a_server_that_started_anew_has_no_counts():
    made = gather(Readings(look=look(page(30), page(10))))
    assert made.counters is None and made.resets == 1
    assert {one.why for one in made.stated} == {ANEW}
    again = gather(Readings(look=look(page(10, started="1"), page(30, started="2"))))
    assert again.counters is None and again.resets == 1


def test_ranks_that_are_silent():
    after = replace(page(30), ranks=3, silent_ranks=2)
    made = gather(Readings(look=look(replace(page(10), ranks=3), after)))
    assert (made.ranks, made.silent_ranks) == (3, 2)


def test_ratios_that_a_page_states_without_counts():
    reported = Stated("mean_acceptance_length", Interval(2.5, 2.5, 2.5), "SGLang /metrics")
    stating = Page("sglang", None, Load(), (reported,))
    made = gather(Readings(look=look(stating, stating)))
    assert reported in made.stated and len(made.stated) == 4
    assert made.counters is None and made.engine == "sglang"


def test_real_pages_without_speculation():
    text = (GOLDEN / "vllm-baseline.metrics.txt").read_text()
    plain = read_page(text)
    assert plain is not None
    made = gather(Readings(look=look(plain, plain)))
    assert made.counters is None and made.engine == "vllm" and OFF_ON_VLLM in made.notes
    assert {one.why for one in made.stated} == {NOT_ON_PAGE}
    assert made.drafting.is_off and not any("taken for" in note for note in made.notes)


def test_counters_that_the_second_page_has_first_began_at_0():
    before = replace(page(0), spec=None, by_rank={})
    made = gather(Readings(look=look(before, page(30))))
    assert made.counters is not None and made.counters.drafts == 30 and not made.drafting.is_off


def test_a_server_that_drafts_is_not_off_whatever_an_older_start_said():
    off = Told(is_off=True)
    assert not gather(Readings(off, log=logged())).drafting.is_off
    assert gather(Readings(off)).drafting.is_off


def test_a_window_by_what_was_counted():
    full = SpecCounters(None, 100, 300, 9, (6, 2, 1), "llama.cpp /metrics")
    assert window_of(full) == 3
    assert (
        window_of(replace(full, drafts=99)) is None and window_of(replace(full, drafted_tokens=299)) is None
    )
    vllm = SpecCounters(None, 40, 181, 9, (6, 2, 1, 0, 0), "vLLM /metrics")
    assert window_of(vllm) == 5
    assert window_of(replace(vllm, drafted_tokens=160)) is None and window_of(SpecCounters()) is None


def test_a_log_tells_the_drafter_by_its_totals_and_the_window_by_its_ratios():
    told = {}
    for name in ("llamacpp-24536", "vllm-6768", "sglang-11948"):
        with (GOLDEN / "logs" / f"{name}.log").open("rb") as file:
            told[name] = inferred(Readings(log=read_log(file)))
    assert told["llamacpp-24536"].method == "draft-eagle3"
    assert (told["vllm-6768"].k, told["sglang-11948"].k) == (16, 3)


def test_bounds_that_were_given_are_stated_as_given():
    made = gather(Readings(observations=kimi().observations, case=kimi()))
    rate = next(one for one in made.stated if one.name == "acceptance_rate")
    assert rate.source == GIVEN and rate.value is not None
    assert (rate.value.low, rate.value.high) == (0.17, 0.31)
    assert made.explanation is not None and len(made.explanation.explained) == 4
    assert made.sequences == 1


def test_bounds_of_some_prompts_only_are_not_those_of_all():
    some = (Observation("a", 0.01, 0.012, (0.2, 0.3)), Observation("b", 0.01, 0.012))
    assert all(one.value is None for one in gather(Readings(observations=some)).stated)


def test_speeds_that_may_not_be_compared(run: Run):
    made = gather(Readings(candidate=run, refused="The client failed."))
    assert made.refused == "The client failed." and made.observations == ()


PAGE = SpecCounters(None, 12, 60, 30, (12, 10, 8), "llama.cpp /metrics")


def counted_by_page(run: Run, page: SpecCounters = PAGE, **work: int) -> Run:
    """The same run, of whose replies none counts anything."""
    plain = [replace(one, speculation=None) for one in run.traces()]
    made = run_on_disk(run.path.parent / "plain", plain, {"ok": True, "reasons": []})
    return Run(made.path, replace(made.meta, counters=page, load=Load(**work)))


def test_steps_follow_from_the_tokens_where_only_the_page_counts(run: Run):
    """Three replies of 96 tokens, of which the prefill gave three and 30 were accepted."""
    made = gather(Readings(candidate=counted_by_page(run, output_tokens=3 * 96)))
    assert made.counters == replace(PAGE, steps=3 * 95 - 30, emitted_tokens=3 * 95)
    (share,) = (one.value for one in made.stated if one.name == "draft_share")
    assert share is not None and share.estimate == 12 / 255
    assert made.other_sources == ()


def test_steps_of_windows_that_do_not_hold_all_requests_follow_from_what_they_hold(run: Run):
    made = gather(Readings(candidate=counted_by_page(run, requests=2, output_tokens=2 * 96)))
    assert made.counters is not None and made.counters.steps == 2 * 95 - 30


def test_steps_that_a_page_counts_stand(run: Run):
    page = replace(PAGE, steps=250)
    made = gather(Readings(candidate=counted_by_page(run, page, output_tokens=3 * 96)))
    assert made.counters == page


def shared(run: Run) -> Run:
    """The same, of a time in which others asked too."""
    return Run(run.path, replace(run.meta, warnings=(f"{FOREIGN}: it finished 600 output tokens",)))


def test_what_a_page_counted_of_others_too_is_left_out_and_that_is_said(run: Run):
    alone = counted_by_page(run, output_tokens=600)
    made = gather(Readings(candidate=shared(alone)))
    assert made.counters is None and all(one.value is None for one in made.stated)
    assert SHARED in made.notes and made.traffic is not None
    with_log = gather(Readings(candidate=shared(alone), log=logged()))
    assert with_log.counters is not None and with_log.counters.source == "vLLM log"
    assert SHARED not in gather(Readings(candidate=alone)).notes


def test_counts_of_the_replies_stand_whoever_asked_beside_them(run: Run):
    alone = Run(run.path, replace(run.meta, counters=PAGE))
    assert [one.source for one in gather(Readings(candidate=alone)).other_sources] == [PAGE.source]
    made = gather(Readings(candidate=shared(alone)))
    assert made.counters is not None and made.counters.source == OWN.source
    assert made.other_sources == () and SHARED in made.notes


def test_steps_are_unknown_where_the_page_counts_no_tokens(run: Run):
    assert gather(Readings(candidate=counted_by_page(run))).counters == PAGE


def test_steps_follow_as_well_where_a_comparison_had_the_page_alone(run: Run):
    paged = counted_by_page(run, output_tokens=3 * 96)
    assert gather(Readings(candidate=paged, counters=PAGE)).counters == counted(paged) != PAGE


def test_ratios_of_all_steps_have_bounds_where_a_look_counts_no_steps():
    spec = replace(PAGE, source="llama.cpp /metrics")
    before, after = (
        Page("llama.cpp", spec, Load(output_tokens=100), by_rank={"": spec}),
        Page("llama.cpp", spec + spec, Load(output_tokens=420), by_rank={"": spec + spec}),
    )
    made = gather(Readings(look=look(before, after)))
    assert made.counters is not None and made.counters.steps is None
    (share,) = (one.value for one in made.stated if one.name == "draft_share")
    assert share is not None and share.low == 12 / 290 < share.high


def test_what_is_typed_counts_more():
    told = Told("eagle3", 3)
    made = gather(Readings(told, engine="sglang", version="9", log=logged(), replies=Replies(5)))
    assert (made.engine, made.version, made.drafting) == ("sglang", "9", Drafting("eagle3", 3))
    assert made.replies == Replies(5)


def test_facts_that_a_live_trial_kept_of_the_start(run: Run):
    kept = Run(run.path, replace(run.meta, extra={"log_facts": {"cuda_graphs": "FULL", "odd": 5}}))
    assert gather(Readings(candidate=kept)).facts == {"cuda_graphs": "FULL"}
    damaged = Run(run.path, replace(run.meta, extra={"log_facts": ["FULL"]}))
    assert gather(Readings(candidate=damaged)).facts == {}


def test_replies_that_loop_are_left_out_and_that_is_said(tmp_path: Path):
    real = " ".join(map(str, range(400)))
    some = [
        replace(trace("a", "c", 0.01, repeat, text=text), speculation=OWN)
        for repeat, text in enumerate((real, real, "no, yes, " * 60))
    ]
    made = gather(Readings(candidate=run_on_disk(tmp_path / "run", some, {"ok": True, "reasons": []})))
    assert made.counters is not None and made.counters.drafted_tokens == 2 * (OWN.drafted_tokens or 0)
    assert made.replies is not None and len(made.replies.looping) == 1 and made.replies.count_drafts
    assert "1 of 3 replies end in a loop: what they count is left out of the acceptance" in made.notes


def test_what_is_typed_is_taken_where_nothing_counts_it(run: Run):
    typed = Readings(acceptance_rate=(0.2, 0.4), draft_share=(0.5, 0.5), sequences=8, context_tokens=900)
    made = gather(typed)
    found = {one.name: one for one in made.stated if one.value}
    assert found.keys() == {"acceptance_rate", "draft_share"} and {one.source for one in found.values()} == {
        GIVEN
    }
    assert (made.sequences, made.context_tokens) == (8, 900) and not any(
        "left aside" in n for n in made.notes
    )
    counted_too = gather(replace(typed, candidate=run))
    assert all(one.source == OWN.source for one in counted_too.stated)
    assert sum("left aside" in note for note in counted_too.notes) == 2


def test_a_server_at_rest_when_it_was_looked_at_last():
    made = gather(Readings(look=look(page(10, running=32), page(30, running=0))))
    assert made.sequences == 32
    assert gather(Readings(look=look(page(10, running=0), page(30, running=0)))).sequences is None
