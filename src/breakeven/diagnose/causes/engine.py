"""What the engine does otherwise once it speculates, as its logs tell: scheduling, graphs, attention, runner.

A log that says it makes a cause of explain's high, one that says the opposite drops it, and without a log it
is medium at most. A log says nothing of time: nothing is blamed while steps take as long as they should.
"""

from __future__ import annotations

import re
from dataclasses import replace

from breakeven.acceptance.logs.summary import LogSummary
from breakeven.diagnose.causes.cause import Cause, at_most, lifted
from breakeven.diagnose.causes.left_over import most_left_s, suspicion
from breakeven.diagnose.evidence import Evidence
from breakeven.diagnose.ratios import GOOD, acceptance_rate
from breakeven.engines.log import plain
from breakeven.explain.records import Confidence, Finding
from breakeven.explain.vllm_causes import FEWER_GRAPHS, no_async_scheduling
from breakeven.units import milliseconds

GRAPHS = ("NONE", "PIECEWISE", "FULL_DECODE_ONLY", "FULL", "FULL_AND_PIECEWISE")
"""vLLM's CUDAGraphMode. In the first two a decode step launches its attention kernels one by one."""
FULL = GRAPHS[2:]
SINGLE_TOKEN_MLA = "TRITON_MLA"  # noqa: S105
"""The backend of latent attention that decodes one token per sequence only: vllm#52218."""
_ASYNC = re.compile(r"[Aa]sync(?:hronous)? scheduling")
_DOWNGRADE = re.compile(r"not supported with spec-decode|Overriding cudagraph_mode")
UNLOGGED = "no log that was read tells it"
TO_CHECK = " (to be checked)"
"""After a title that would else assert it."""
_LONGEST = 240
"""Characters of a quoted line."""

BACKEND = Finding(
    "attention_backend",
    "Verify blocks may take a slower attention path",
    "A step that verifies has several tokens of each sequence. A backend whose decode kernel takes one only "
    "sends them through its prefill path, or is replaced by another (vllm#44492, vllm#52218)",
    "low",
    "grep -i 'attention backend' <baseline-log> <candidate-log>",
    "Compare the two; then measure the candidate with another --attention-backend.",
)


def async_scheduling(evidence: Evidence) -> Finding | None:
    """Off in the candidate, and not in the baseline."""
    now, before = _facts(evidence, "async_scheduling")
    if now == "on" or before == "off":
        return None
    if now is not None:
        return _blamed(evidence, _async_lost(evidence))
    found = _unlogged(evidence, "async_scheduling", None)
    return found and replace(found, confidence="low" if evidence.facts else found.confidence)


def _async_lost(evidence: Evidence) -> Finding | None:
    now, before = _facts(evidence, "async_scheduling")
    if now != "off" or before == "off":
        return None
    found = no_async_scheduling(evidence.drafting.method)
    title = found.title if before is not None else "Async scheduling is off"
    said = _quoted(evidence.log, _ASYNC) or "the candidate's log says that it is off"
    on = "" if before is None else "; the baseline's says that it is on"
    return replace(found, title=title, evidence=f"{said}{on}. {found.evidence}")


def cuda_graphs(evidence: Evidence) -> Finding | None:
    """Full graphs of decode steps in the baseline only."""
    now, before = _facts(evidence, "cuda_graphs")
    if now in FULL or (before is not None and before not in FULL):
        return None
    if (logged := _graphs_lost(evidence)) is not None:
        return _blamed(evidence, logged)
    found = _unlogged(evidence, FEWER_GRAPHS.id, FEWER_GRAPHS)
    if found is None or now is None:
        return found
    said = f"the candidate's log says {now}; what the baseline has is not known. {FEWER_GRAPHS.evidence}"
    return replace(found, evidence=said)


def _graphs_lost(evidence: Evidence) -> Finding | None:
    """By both logs, or by the candidate's that tells of the change."""
    now, before = _facts(evidence, "cuda_graphs")
    line = _quoted(evidence.log, _DOWNGRADE)
    if now is None or now in FULL or (before is not None and before not in FULL) or not (before or line):
        return None
    said = line or f"the candidate's log says {now}"
    was = "" if before is None else f"; the baseline's says {before}"
    title = f"CUDA graphs fall from {before or 'FULL'} to {now}"
    return replace(FEWER_GRAPHS, title=title, evidence=f"{said}{was}. {FEWER_GRAPHS.evidence}")


def attention_backend(evidence: Evidence) -> Finding | None:
    """Another attention kernel in the candidate, or perhaps another path through it."""
    if (logged := _backend_changed(evidence)) is not None:
        return _blamed(evidence, logged)
    now, _ = _facts(evidence, "attention_backend")
    if now is not None or lifted(evidence, "mla_prefill") is not None:
        return None
    return _unlogged(evidence, BACKEND.id, BACKEND)


def _backend_changed(evidence: Evidence) -> Finding | None:
    """But for one that mla_prefill tells of."""
    now, before = _facts(evidence, "attention_backend")
    if now is None or before is None or now == before or _single_token_mla(evidence) is not None:
        return None
    said = f"the baseline's log says {before}, the candidate's {now}. {BACKEND.evidence}"
    return replace(BACKEND, title=f"Another attention backend: {before} → {now}", evidence=said)


def mla_prefill(evidence: Evidence) -> Finding | None:
    """Verify blocks of latent attention that are computed as prefills."""
    now, _ = _facts(evidence, "attention_backend")
    if now is None and lifted(evidence, "mla_prefill") is not None:
        return _unlogged(evidence, "mla_prefill", None)
    return _blamed(evidence, _single_token_mla(evidence))


def _single_token_mla(evidence: Evidence) -> Finding | None:
    now, found = evidence.facts.get("attention_backend"), lifted(evidence, "mla_prefill")
    if found is None or now != SINGLE_TOKEN_MLA:
        return None
    return replace(found, evidence=f"the candidate's log says {now}. {found.evidence}")


def model_runner(evidence: Evidence) -> Finding | None:
    """Another implementation of the step itself."""
    return _blamed(evidence, _runner_changed(evidence))


def _runner_changed(evidence: Evidence) -> Finding | None:
    now, before = _facts(evidence, "model_runner")
    if now is None or before is None or now == before:
        return None
    return Finding(
        "model_runner",
        f"Another model runner: {before} → {now}",
        f"the baseline's log names vLLM's model runner {before}, the candidate's {now}: every step is "
        "prepared and launched by other code, drafted or not",
        "high",
        f"VLLM_USE_V2_MODEL_RUNNER={int(now == 'V2')} vllm serve <arguments>",
        f"Measure the baseline again on {now}: what it loses by that is not of speculation.",
    )


CAUSES: tuple[Cause, ...] = (
    async_scheduling,
    cuda_graphs,
    attention_backend,
    mla_prefill,
    model_runner,
)
LOGGED: tuple[Cause, ...] = (
    _async_lost,
    _graphs_lost,
    _backend_changed,
    _single_token_mla,
    _runner_changed,
)
"""The differences that logs tell, whether or not they cost anything."""


def _facts(evidence: Evidence, name: str) -> tuple[str | None, str | None]:
    """Of the candidate and of the baseline."""
    return evidence.facts.get(name), evidence.baseline_facts.get(name)


def _blamed(evidence: Evidence, logged: Finding | None) -> Finding | None:
    """What a log tells: the cause where steps take too long and no log tells of another difference; perhaps
    one where it does, where no speeds are known, or what is accepted may be too little by itself."""
    suspected, rate = suspicion(evidence), acceptance_rate(evidence)
    if logged is None or suspected == "no":
        return None
    several = sum(difference(evidence) is not None for difference in LOGGED)
    poor = evidence.explanation is None and (rate is None or rate.low < GOOD)
    doubted = several > 1 or suspected is None or (suspected == "maybe" and poor)
    confidence: Confidence = "medium" if doubted else "high"
    most_s = most_left_s(evidence)
    if several == 1 or most_s is None:
        could = logged.step_s or (None if most_s is None else (0.0, most_s))
        return replace(logged, confidence=confidence, step_s=could)
    together = f"{several} such differences are logged: together up to {milliseconds(most_s)} ms of a step"
    return replace(logged, confidence=confidence, evidence=f"{logged.evidence}. {together}")


def _unlogged(evidence: Evidence, name: str, otherwise: Finding | None) -> Finding | None:
    """What no log tells: as explain found it, medium at most; else what is to be checked where it is slow."""
    if suspicion(evidence) not in ("sure", "maybe"):
        return None
    found = lifted(evidence, name)
    if found is not None:
        confidence = at_most(found.confidence, "medium")
    elif evidence.explanation is not None or evidence.engine != "vllm" or otherwise is None:
        return None
    else:
        found, confidence = otherwise, "low"
    evidence_said = f"{UNLOGGED}. {found.evidence}"
    return replace(found, title=found.title + TO_CHECK, confidence=confidence, evidence=evidence_said)


def _quoted(log: LogSummary | None, pattern: re.Pattern[str]) -> str | None:
    """The first line of the log's start that matches, without its time and process."""
    line = next((line for line in (log.facts if log is not None else ()) if pattern.search(line)), None)
    if line is None:
        return None
    text = plain(line).rstrip(".")
    return f"the log says: {text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}"
