import sys
from pathlib import Path

import numpy as np
import pytest

from breakeven.drafters.base import Drafter
from breakeven.drafters.registry import BUILT_IN, drafter_class, make_drafter
from breakeven.drafters.settings import Settings
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
    with pytest.raises(UsageError, match="k is 1 or more"):
        make_drafter("own_drafter:LastTime", {"k": 0})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vllm", "no drafter 'vllm': type one of vllm-ngram, .*, or module:Class"),
        ("no_such_module:Class", "cannot load .*No module named"),
        ("breakeven.drafters.oracle:Delphi", "cannot load .*Delphi.*: mend the module"),
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
