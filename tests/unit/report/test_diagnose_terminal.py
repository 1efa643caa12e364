"""A diagnosis on the terminal."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from breakeven.acceptance.counters import DEFINITIONS, SpecCounters
from breakeven.acceptance.stated import Stated, stated
from breakeven.diagnose.diagnosis import Diagnosis
from breakeven.diagnose.evidence import Drafting
from breakeven.explain.explain import explain
from breakeven.interval import Interval
from breakeven.report.diagnose_terminal import print_diagnosis
from breakeven.report.diagnose_words import HEALTHY, NO_FAULT, SLOWER
from tests.unit.explain.cases import kimi
from tests.unit.report.builders import HOSTILE
from tests.unit.report.diagnoses import COUNTERS, FINDING, evidence, live, log, silent, slow


def shown(made: Diagnosis, width: int = 100) -> str:
    console = Console(file=StringIO(), width=width, highlight=False)
    print_diagnosis(made, console)
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_all_that_matters_is_said_at_any_width(width: int):
    text = flat(shown(slow(), width))
    for said in (
        "Speed −25.9 % to −8.8 % with acceptance rate 50.0 %, draft share 66.7 %, tokens per step 2.33.",
        "Most telling: async scheduling is off in the candidate only (confidence high).",
        "vllm 0.32.0, ngram, k 5, n-grams of 4 tokens",
        "Log: vLLM 0.11 or later, 145 lines, 9 reports of speculation",
        "By vLLM /metrics: Acceptance rate 50.0 %: accepted draft tokens / drafted tokens",
        "Draft share 66.7 %: steps that drafted / all decode steps",
        "81.2 %",
        "What the drafter should have given",
        "+3.46 to 4.87",
        "Findings, most telling first",
        "predicted: a speedup at every draft share above 0.",
        "coding 15.97 21.55 to 54.96",
        "Ruled out by the arithmetic 1. Distinct experts as the sole cause",
        "1. Async scheduling is off in the candidate only (confidence high, up to 2.5 ms a step)",
        "Check: grep -i 'async scheduling' vllm.log",
        "! a note",
    ):
        assert said in text, said


@pytest.mark.parametrize("width", [60, 80, 120])
def test_only_what_is_copied_is_wider_than_the_terminal(width: int):
    copied = ("   Check:", "kimi-k2.5 on")
    for made in (slow(), live(), silent()):
        for text in shown(made, width).splitlines():
            assert len(text) <= width or text.startswith(copied), text


def test_every_ratio_stands_beside_its_definition_or_its_reason():
    counters = SpecCounters(None, 10, 50, 20, source="vLLM log")
    text = flat(shown(Diagnosis(evidence(counters=counters, stated=stated(counters)), ())))
    assert f"Mean acceptance length 3.00: {DEFINITIONS['mean_acceptance_length']} " in text
    assert "Tokens per step: not derivable: vLLM log does not count decode steps" in text
    assert "Draft share: not derivable: vLLM log does not count decode steps" in text
    assert "Acceptance by position: not derivable: vLLM log does not count it" in text


def test_positions_have_bars_by_their_share_of_drafts():
    lines = [text.split() for text in shown(slow()).splitlines() if "━" in text]
    assert [words[:3] for words in lines] == [
        ["1", "1,300", "81.2"],
        ["2", "900", "56.2"],
        ["3", "600", "37.5"],
        ["4", "400", "25.0"],
    ]
    assert [words[-1].count("━") for words in lines] == [16, 11, 8, 5]


def test_shares_that_only_a_log_bounds():
    bounded = log(counters=None, positions=(Interval(0.5, 0.45, 0.55), Interval(0.25, 0.25, 0.25)))
    text = shown(Diagnosis(evidence(counters=None, log=bounded), ()))
    assert "45.0 % to 55.0 %" in text and "25.0 %" in text


def test_a_healthy_server_says_so_in_one_sentence():
    healthy = Diagnosis(evidence(observations=kimi().observations), (), is_slower=False)
    assert flat(shown(healthy)).partition(" vllm")[0].endswith(HEALTHY)


def test_a_server_without_a_fault_whose_speed_was_not_compared():
    text = shown(live(), 200)
    first = text.splitlines()[0]
    assert first.endswith(NO_FAULT) and "Healthy" not in text
    assert "Findings" not in text
    assert "Step by the server's clock: 13.00 ms with speculation (mean of 2,400 gaps" in flat(text)
    assert "Work of the server within 30.0 s: 12 requests, 4,000 output tokens, 2 running, 0 waiting" in flat(
        text
    )


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (4000, "Nothing was drafted within 30.0 s while 4,000 tokens came out."),
        (0, "Nothing was drafted within 30.0 s: no token came out, so that nothing can be said of it."),
    ],
)
def test_a_server_that_drafted_nothing(tokens: int, said: str):
    text = flat(shown(live(tokens, drafted=0)))
    assert said in text and "Healthy" not in text


def test_a_server_of_which_nothing_is_known_is_not_called_healthy():
    text = flat(shown(silent()))
    assert text.startswith("Nothing was said of speculation")
    assert "Healthy" not in text
    assert "- acceptance rate: type --url URL" in text


def test_a_slower_server_and_one_that_accepts_nothing_are_not_called_healthy():
    slower = Diagnosis(evidence(observations=kimi().observations), (), is_slower=True)
    assert flat(shown(slower)).partition(" vllm")[0].endswith(SLOWER)
    none = replace(COUNTERS, accepted_tokens=3, accepted_per_position=(3, 0, 0, 0))
    assert NO_FAULT in flat(shown(Diagnosis(evidence(counters=none, stated=stated(none)), ())))


def test_two_speeds_that_may_not_be_compared():
    case = replace(kimi(), refused="The client failed.")
    text = flat(
        shown(Diagnosis(evidence(case=case, explanation=explain(case), refused=case.refused), (FINDING,)))
    )
    assert text.startswith("The client failed. Nothing is concluded from the two speeds.")


def test_speeds_without_a_cost_still_show_steps():
    seen = evidence(observations=kimi().observations, drafting=Drafting("ngram", 5))
    text = flat(shown(Diagnosis(seen, ())))
    assert "15.97 21.55 −25.9 % 21.55 to 54.96" in text
    unknown = flat(shown(Diagnosis(replace(seen, drafting=Drafting("ngram")), ())))
    assert "15.97 21.55 −25.9 % unknown" in unknown


def test_a_range_that_a_log_printed():
    rate = Stated("acceptance_rate", Interval(0.24, 0.17, 0.31), "vLLM log")
    text = flat(shown(Diagnosis(evidence(counters=None, stated=(rate,)), ())))
    assert "Acceptance rate 17.0 % to 31.0 %: accepted draft tokens / drafted tokens (vLLM log)" in text


def test_other_sources_are_shown_beside():
    other = replace(COUNTERS, drafted_tokens=None, source="vLLM log")
    text = flat(shown(Diagnosis(evidence(other_sources=(COUNTERS, other)), ())))
    assert "vLLM /metrics: 3,200 of 6,400 drafted tokens accepted, 50.0 %" in text
    assert "vLLM log: 3,200 of unknown drafted tokens accepted, –" in text


def test_hostile_text_is_harmless():
    bad = replace(FINDING, title=HOSTILE, evidence=HOSTILE, next_command=HOSTILE, check=HOSTILE)
    period = replace(log().first, at=HOSTILE)  # type: ignore[type-var]
    case = replace(kimi(), model=HOSTILE)
    seen = evidence(
        engine=HOSTILE,
        version=HOSTILE,
        drafting=Drafting(HOSTILE, 5),
        counters=replace(COUNTERS, source=HOSTILE),
        stated=stated(replace(COUNTERS, source=HOSTILE)),
        other_sources=(replace(COUNTERS, source=HOSTILE),),
        log=log(format=HOSTILE, first=period, last=period, notes=(HOSTILE,)),
        observations=tuple(replace(one, name=HOSTILE) for one in case.observations),
        case=case,
        explanation=explain(case),
        notes=(HOSTILE,),
    )
    text = shown(Diagnosis(seen, (bad,), {HOSTILE: HOSTILE}))
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text
    text.encode()
