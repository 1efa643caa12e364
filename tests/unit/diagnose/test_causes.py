"""All causes together: a healthy server has none, and what was planted comes first."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.counters import SpecCounters
from breakeven.diagnose.causes import CAUSES
from breakeven.diagnose.diagnose import diagnose
from breakeven.diagnose.evidence import Drafting, Evidence, Replayed
from tests.unit.diagnose.compared import OFF, compared, counted, observed, started, uncosted
from tests.unit.diagnose.healthy import healthy
from tests.unit.diagnose.test_drafts import ONLY_4, RARE
from tests.unit.diagnose.test_step_cost import STEEP
from tests.unit.diagnose.test_window import FADING, LONG, setting

POOR = counted((0.3, 0.1, 0.05, 0.05))


@pytest.mark.parametrize(
    "evidence",
    [
        Evidence(),
        healthy(),
        compared(2.0),
        compared(1.9),
        compared(2.0, replayed=Replayed(setting(4, 0.50, share=0.67), (setting(8, 0.52), setting(2, 0.55)))),
        uncosted(1.6, counted((0.8, 0.6)), drafting=Drafting("eagle3", 2)),
    ],
    ids=["nothing known", "one server", "as predicted", "nearly", "replayed", "a head"],
)
def test_a_healthy_server_has_no_finding(evidence: Evidence) -> None:
    assert [finding.title for finding in diagnose(evidence).findings] == []


MAYBE_COUNT = st.none() | st.integers(0, 5000)
FACTS = st.fixed_dictionaries(
    {},
    optional={
        "async_scheduling": st.sampled_from(["on", "off"]),
        "cuda_graphs": st.sampled_from(["NONE", "PIECEWISE", "FULL", "FULL_AND_PIECEWISE"]),
        "attention_backend": st.sampled_from(["TRITON_MLA", "FLASH_ATTN", "FLASHINFER"]),
        "model_runner": st.sampled_from(["V1", "V2"]),
    },
)


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    """Whatever may be known or not, and be so."""
    rates = sorted(draw(st.lists(st.floats(0, 1), max_size=8)), reverse=True)
    drafts = draw(MAYBE_COUNT)
    drafted = draw(MAYBE_COUNT)
    counters = SpecCounters(
        None if (more := draw(MAYBE_COUNT)) is None else (drafts or 0) + more,
        drafts,
        drafted,
        None if drafted is None else draw(st.none() | st.integers(0, drafted)),
        tuple(round(rate * (drafts or 0)) for rate in rates) if draw(st.booleans()) else None,
    )
    drafting = Drafting(
        draw(st.sampled_from(["ngram", "suffix", "eagle3", "mtp", "draft_model", "custom_class"])),
        draw(st.none() | st.integers(1, 16)),
        *draw(st.sampled_from([(None, None), (None, 4), (4, 4), (2, 4)])),
    )
    gain = draw(st.none() | st.floats(0.1, 10))
    others = draw(st.lists(st.builds(setting, st.integers(1, 9), st.none() | st.floats(0.1, 3)), max_size=4))
    known = {
        "counters": draw(st.none() | st.just(counters)),
        "drafting": drafting,
        "engine": draw(st.sampled_from(["vllm", "llama.cpp", None])),
        "facts": draw(FACTS),
        "baseline_facts": draw(FACTS),
        "sequences": draw(st.sampled_from([None, 1, 2.5, 16])),
        "replayed": Replayed(others[0], tuple(others[1:])) if others else None,
    }
    if gain is not None and draw(st.booleans()):
        return compared(
            gain,
            replace(counters, drafts=None),
            draw(st.sampled_from([LONG, STEEP])),
            **{name: value for name, value in known.items() if name != "counters"},
        )
    cost = draw(st.sampled_from([None, LONG, STEEP]))
    return healthy(**known, cost=cost, observations=() if gain is None else (observed(gain, counters),))


@given(evidences())
def test_no_evidence_is_too_little_or_too_odd(evidence: Evidence) -> None:
    for finding in diagnose(evidence).findings:
        assert finding.evidence and not re.search(r"\bnan\b|\bNone\b(?! of )", finding.evidence)


PLANTED = {
    "async_scheduling": compared(
        1.1, facts={"async_scheduling": "off"}, baseline_facts={"async_scheduling": "on"}, log=started(OFF)
    ),
    "cuda_graphs": compared(
        1.1, facts={"cuda_graphs": "PIECEWISE"}, baseline_facts={"cuda_graphs": "FULL_AND_PIECEWISE"}
    ),
    "window_too_long": compared(0.9, counted(FADING), LONG, drafting=Drafting("ngram", 16, 2, 4)),
    "lookup_only_longest": compared(1.05, RARE, drafting=ONLY_4),
    "mismatched_head": compared(
        0.72, counted((0.035, 0.004, 0.001)), LONG, drafting=Drafting("eagle3", 3), engine="vllm"
    ),
    "compute_bound": compared(0.7, counted((0.5, 0.3, 0.1, 0.1)), STEEP, sequences=16),
    "step_cost": uncosted(0.374, counted((0.966,)), drafting=Drafting("mtp", 1)),
    "verification_too_dear": compared(0.9, counted((0.02, 0.01, 0.0, 0.0)), LONG),
    "pays_at_low_acceptance": uncosted(1.2, POOR),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_comes_first(name: str) -> None:
    findings = diagnose(PLANTED[name]).findings
    assert findings and findings[0].id == name, [one.id for one in findings]


def test_every_cause_is_there_once_and_says_what_it_is() -> None:
    assert len(set(CAUSES)) == len(CAUSES)
    for cause in CAUSES:
        assert inspect.getdoc(cause)


def test_a_finding_can_be_acted_on() -> None:
    """Every one has its evidence, and a command or something to look at."""
    found = [finding for evidence in PLANTED.values() for finding in diagnose(evidence).findings]
    assert len({one.id for one in found}) > 10
    for one in found:
        assert one.evidence and one.title and one.check.endswith(".") and not one.title.endswith(".")
        assert one.step_s is None or one.step_s[0] <= one.step_s[1]
