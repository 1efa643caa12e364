from dataclasses import dataclass, field
from typing import Any

import pytest
from click.testing import CliRunner

from breakeven.cli.drafters import described, drafters
from breakeven.drafters import registry
from breakeven.drafters.base import Draft, Drafter, Ids
from breakeven.drafters.settings import Settings, setting


@dataclass(frozen=True, slots=True)
class Config(Settings):
    k: int = setting(5, "draft length", 1)
    share: float = setting(0.5, "a share", 0, 1)
    word: str = setting("bfs", "an order")
    limit: int | None = setting(None, "unset is no limit", 1, kind=int)


class Mine(Drafter[Config]):
    name = "mine"
    engine = "vllm"
    summary = "looks things up"
    Config = Config
    learns = True

    def propose(self, context: Ids, room: int) -> Draft:
        return ()

    def flags(self) -> str:
        return f"--mine {self.settings.k}"


@dataclass(frozen=True, slots=True)
class Made(Settings):
    path: str = field(default_factory=lambda: "a/b")


class Other(Drafter[Made]):
    name = "other"
    Config = Made
    steps_matter = True

    def propose(self, context: Ids, room: int) -> Draft:
        return ()


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "BUILT_IN", {"mine": "", "other": ""})
    monkeypatch.setattr(registry, "drafter_class", lambda name: {"mine": Mine, "other": Other}[name])


def said(*words: str) -> str:
    done = CliRunner().invoke(drafters, words, catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_a_drafter_with_its_settings_in_plain_types():
    body = described("mine")
    assert (body["name"], body["engine"], body["summary"]) == ("mine", "vllm", "looks things up")
    assert (body["learns"], body["steps_matter"], body["flags"]) == (True, False, "--mine 5")
    by_name: dict[str, Any] = {each["name"]: each for each in body["settings"]}
    assert (by_name["k"]["default"], by_name["k"]["low"], by_name["k"]["high"]) == (5, 1, 1_048_576)
    assert by_name["k"]["absent"] == {}
    assert by_name["word"]["absent"] == {"low": "no limit", "high": "no limit"}
    assert by_name["share"]["absent"] == {}
    assert by_name["limit"]["default"] is None and "default" in by_name["limit"]["absent"]


def test_one_without_flags_says_so():
    body = described("other")
    assert body["flags"] is None and body["absent"]["flags"] == "it names none that turn it on in an engine"


def test_a_default_that_is_made_is_shown():
    (setting,) = described("other")["settings"]
    assert (setting["default"], setting["absent"]) == ("a/b", {"low": "no limit", "high": "no limit"})


def test_the_list_has_defaults_and_limits():
    text = said()
    assert "mine (vLLM)" in text and "other (your own)" in text
    line = "k=5 (1 to 1048576), share=0.5 (0 to 1), word=bfs, limit=none (1 to 1048576)"
    assert line in " ".join(text.split())


def test_one_is_shown_with_what_its_settings_mean():
    text = said("mine")
    for words in ("k=5 (1 to 1048576): draft length", "the order of the record matters", "Flags: --mine 5"):
        assert words in text
    other = said("other")
    assert "path=a/b" in other and "no --per-position" in other
    assert "Flags: none (it names none that turn it on in an engine)" in other
