import sys
from pathlib import Path

import numpy as np
import pytest

from breakeven.drafters.base import Drafter, Limits, TableDrafter
from breakeven.drafters.registry import BUILT_IN, drafter_class, make_drafter
from breakeven.drafters.settings import Settings
from breakeven.drafters.tokens import flat
from breakeven.errors import UsageError

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(EXAMPLES)
    yield
    sys.modules.pop("own_drafter", None)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_name_is_that_of_its_class_and_its_defaults_are_allowed(name: str):
    cls = drafter_class(name)
    assert cls.name == name
    assert cls.engine != Drafter.engine
    assert cls.summary
    assert issubclass(cls.Config, Settings)
    assert isinstance(make_drafter(name, {}).flags(), str)


def test_engines_are_called_as_runs_call_them():
    engines = {drafter_class(name).engine for name in BUILT_IN}
    assert engines == {"vllm", "sglang", "llama.cpp", "tensorrt-llm", "transformers", "none"}


def test_drafters_that_are_slow_without_numba():
    plain = {name for name in BUILT_IN if not drafter_class(name).compiled}
    assert plain == {"llamacpp-ngram-cache", "trtllm-ngram", "oracle", "recorded"}


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_setting_is_explained(name: str):
    for field in drafter_class(name).Config.__dataclass_fields__.values():
        assert field.metadata["help"], f"{name}: {field.name}"


@pytest.mark.usefixtures("examples")
def test_the_example_of_a_drafter_of_ones_own():
    drafter = make_drafter("own_drafter:LastTime", {"k": 4})
    context = np.array([1, 2, 9, 1, 3, 1], np.int32)
    assert drafter.propose(context, 99) == [3, 1, 3, 1]
    assert drafter.propose(context, 1) == [3]
    assert drafter.propose(np.array([1, 2], np.int32), 99) == []
    with pytest.raises(UsageError, match="k is from 1 to 1048576, not 0: type --set k=3"):
        make_drafter("own_drafter:LastTime", {"k": 0})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vllm", "no drafter 'vllm': type one of vllm-ngram, .*, or module:Class"),
        ("vllm_ngram", r"no drafter 'vllm_ngram': did you mean vllm-ngram\? \(breakeven drafters lists them"),
        ("VLLM-ngran", "did you mean vllm-ngram"),
        ("no_such_module:Class", "no_such_module.py is neither in the working folder nor installed"),
        ("no.such:Class", "no/such.py is neither in"),
        ("breakeven.drafters.oracle:Delphi", "oracle has no Delphi, its drafters are Oracle$"),
        ("breakeven.drafters.tokens:Delphi", "tokens has no Delphi, it has no class derived from Drafter"),
        ("breakeven.drafters.oracle:OracleSettings", "is no Drafter"),
        ("breakeven.drafters.tokens:UNLIMITED", "is no Drafter"),
    ],
)
def test_names_that_lead_nowhere(name: str, message: str):
    with pytest.raises(UsageError, match=message):
        drafter_class(name)


def test_an_unknown_setting_lists_the_known():
    with pytest.raises(UsageError, match="oracle has no setting min_n: it has k"):
        make_drafter("oracle", {"min_n": 2})
    with pytest.raises(UsageError, match=r"vllm-ngram has no setting max-N: did you mean max_n\?"):
        make_drafter("vllm-ngram", {"max-N": 2})


@pytest.mark.parametrize("name", BUILT_IN)
def test_no_default_is_a_trap(name: str):
    assert make_drafter(name, {}).warnings() == ()


@pytest.mark.parametrize(
    ("name", "settings", "warnings"),
    [
        (
            "llamacpp-ngram-simple",
            {"n": 4, "k": 2},
            ["k 2 is below n 4: llama.cpp drops drafts shorter than n, so that nothing is drafted: "
             "give a k of 4 or more"],
        ),
        ("llamacpp-ngram-simple", {"n": 4, "k": 4}, []),
        (
            "llamacpp-ngram-mod",
            {"k": 8},
            ["min_k 48 is above k 8: only drafts of exactly k tokens are made: give a min_k of 1 for "
             "shorter ones"],
        ),
        ("llamacpp-ngram-mod", {"k": 48}, []),
        ("llamacpp-ngram-mod", {"k": 0}, ["k is 0: nothing is drafted: give a k of 64, its default"]),
        (
            "llamacpp-ngram-mod",
            {"n": 15},
            ["n 15 is below 16: llama.cpp warns that drafts may be of poor quality: give an n of 16 or more"],
        ),
        ("llamacpp-ngram-mod", {"n": 16}, []),
    ],
)  # fmt: skip
def test_traps_are_named(name: str, settings: dict[str, int], warnings: list[str]):
    assert list(make_drafter(name, settings).warnings()) == warnings


SMALL = flat([([1, 2, 3], [1, 2, 3, 1, 2]), ([4], [4, 4])], [9, None], [30, None])


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_setting_is_of_use_at_its_upper_limit(name: str):
    """Nothing overflows, and nothing is allocated or walked that would hang."""
    specs = drafter_class(name).Config.__dataclass_fields__.values()
    highest = {spec.name: spec.metadata["high"] for spec in specs if "high" in spec.metadata}
    for settings in ({key: high} for key, high in highest.items() if key not in ("min_n", "min_bfs_breadth")):
        drafter = make_drafter(name, settings)
        if isinstance(drafter, TableDrafter):
            table = drafter.table(SMALL)
            assert (table.accepted <= table.drafted).all()
        else:
            context = np.array([1, 2, 3, 1, 2], np.int32)
            drafter.begin(context[:3], Limits())
            drafter.propose(context, 2**20)
            drafter.end(context)
    assert all(high < float("inf") for high in highest.values())
    if highest:
        make_drafter(name, highest)


def test_learning_is_a_matter_of_the_settings():
    assert make_drafter("vllm-suffix", {}).learns
    assert not make_drafter("vllm-suffix", {"max_cached_requests": 0}).learns
    assert make_drafter("trtllm-ngram", {}).learns
    assert not make_drafter("trtllm-ngram", {"is_public_pool": False}).learns
    assert not make_drafter("vllm-ngram", {}).learns
