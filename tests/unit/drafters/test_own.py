"""Classes of the user's own: what is refused, and in which words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from breakeven.drafters.registry import drafter_class, make_drafter
from breakeven.errors import UsageError

MODULE = """
from dataclasses import dataclass
from breakeven.drafters.base import Drafter
from breakeven.drafters.settings import Settings, setting

@dataclass(frozen=True, slots=True)
class Config(Settings):
    k: int = setting(3, "tokens", 1)

class Mine(Drafter[Config]):
    name = "mine"
    Config = Config
    def propose(self, context, room):
        return []
"""


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.chdir(tmp_path)

    def write(more: str) -> None:
        (tmp_path / "mine_for_test.py").write_text(MODULE + more)

    yield write
    sys.modules.pop("mine_for_test", None)


def refused(**settings: Any) -> str:
    with pytest.raises(UsageError) as caught:
        make_drafter("mine_for_test:Mine", settings)
    return str(caught.value)


def test_a_class_that_is_right(module: Any):
    module("")
    assert make_drafter("mine_for_test:Mine", {"k": 2}).settings.k == 2


def test_a_class_that_is_missing(module: Any):
    module("")
    with pytest.raises(UsageError, match=r"mine_for_test has no Nine, its drafters are Mine$"):
        drafter_class("mine_for_test:Nine")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'): mend the module"),
        ("raise SystemExit(3)", "(SystemExit: 3): mend the module"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_module_that_fails(module: Any, more: str, message: str):
    module(more)
    assert message in refused()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("Mine.name = 3", "has 3 as its name: it must be text"),
        ("Mine.engine = None", "has None as its engine: it must be text"),
        ("Mine.summary = b''", "has b'' as its summary: it must be text"),
        ("Mine.learns = 1", "has 1 as its learns: it must be True or False"),
        ("Mine.steps_matter = 'no'", "has 'no' as its steps_matter: it must be True or False"),
        ("Mine.compiled = None", "has None as its compiled: it must be True or False"),
        ("Mine.Config = dict", "has a Config that is no class of settings"),
        ("Mine.Config = Config()", "has a Config that is no class of settings"),
        (
            "@dataclass(frozen=True)\nclass Other(Settings):\n    path: str\nMine.Config = Other",
            "has a setting path without a default: give it one in Other",
        ),
    ],
)
def test_a_class_that_says_what_is_of_no_use(module: Any, more: str, message: str):
    module(more)
    assert f"mine_for_test:Mine {message}" in refused()


FAILURES = {
    "Config": "def f(self): raise KeyError('x')\nConfig.__post_init__ = f",
    "__init__": "def f(self, settings): raise KeyError('x')\nMine.__init__ = f",
    "flags": "def f(self): raise KeyError('x')\nMine.flags = f",
    "exit": "def f(self, settings): raise SystemExit(1)\nMine.__init__ = f",
}


@pytest.mark.parametrize("more", FAILURES.values(), ids=FAILURES)
def test_a_class_that_fails(module: Any, more: str):
    module(more)
    assert "mine_for_test:Mine cannot be made (" in refused()


def test_flags_and_warnings_are_text(module: Any):
    module("Mine.flags = lambda self: 3")
    assert "flags() gives int: it must be text" in refused()


def test_warnings_are_texts(module: Any):
    module("Mine.warnings = lambda self: 'careful'")
    assert "warnings() gives no tuple of text" in refused()


def test_its_own_refusals_stay_as_they_are(module: Any):
    module("")
    assert refused(k=0).startswith("k is from 1 to")


def test_a_working_folder_that_was_deleted(module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="neither in the working folder nor installed"):
        drafter_class("no_such_module:Class")
