"""The public names: exactly these, each explained, and cheap to import."""

import inspect
import subprocess
import sys
import typing

import pytest

import breakeven

PUBLIC = [
    "Acceptance",
    "Anchored",
    "ApiKey",
    "BreakevenError",
    "Calibration",
    "ClosedLoop",
    "Comparison",
    "Drafter",
    "Endpoint",
    "Event",
    "Forecast",
    "Interval",
    "Kind",
    "LiveSide",
    "MeasurePlan",
    "Measured",
    "Modelled",
    "OpenLoop",
    "Prefill",
    "Prompt",
    "Replay",
    "RequestLatency",
    "RequestTrace",
    "Run",
    "RunSummary",
    "Sampling",
    "Sweep",
    "Terms",
    "Timeouts",
    "TrialPlan",
    "TrialResult",
    "Verdict",
    "Workload",
    "compare_runs",
    "compare_traces",
    "conduct",
    "forecast_heads",
    "forecast_source",
    "hardware",
    "judge",
    "load_calibration",
    "load_prompts",
    "load_run",
    "load_trial",
    "measure_endpoint",
    "open_source",
    "preset",
    "replay_source",
    "request_latency",
    "summarize",
    "sweep_source",
]
HEAVY = (
    "numba",
    "ray",
    "tokenizers",
    "torch",
    "transformers",
    "xllamacpp",
    "gguf",
    "uvloop",
    "aiohttp",
    "httpx",
    "rich",
    "click",
    "jinja2",
)


def test_the_public_names_are_exactly_these():
    assert sorted(breakeven.__all__) == PUBLIC
    assert all(hasattr(breakeven, name) for name in PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_a_docstring_of_its_own(name: str):
    value = getattr(breakeven, name)
    assert inspect.isclass(value) or inspect.isfunction(value)
    text = value.__doc__ or ""
    assert text.strip() and not text.startswith(f"{name}("), text


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_typed(name: str):
    value = getattr(breakeven, name)
    if inspect.isfunction(value):
        assert set(typing.get_type_hints(value)) == {*inspect.signature(value).parameters, "return"}


def test_importing_it_imports_no_extra_and_nothing_of_the_command_line():
    script = f"import sys, breakeven; print(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
