"""Plan files: what they say, and how each kind of mistake is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError
from breakeven.trial.plan_file import PlanFile, read_plan_file

KNOWN = {"server": False, "start-limit": False, "yes": False, "fail-if": False, "extra": True}
WHOLE = """
server = "systemd:vllm.service"
start-limit = 7200
yes = true
extra = ["a=1", "b=2"]
command = ["vllm", "serve", "x y"]

[[candidate]]
method = "ngram"
k = 5
min-n = 2
max-n = 4

[[candidate]]
method = "eagle3"
draft = "org/head"
set = { draft_tensor_parallel_size = 1 }
"""


def read(folder: Path, text: str) -> PlanFile:
    path = folder / "plan.toml"
    path.write_text(text)
    return read_plan_file(path, KNOWN)


def test_it_says_options_as_they_would_be_typed(tmp_path: Path):
    found = read(tmp_path, WHOLE)
    assert found.options == {
        "server": "systemd:vllm.service",
        "start-limit": "7200",
        "yes": "true",
        "extra": ("a=1", "b=2"),
    }
    assert found.command == ("vllm", "serve", "x y")


def test_it_says_candidates_in_their_order(tmp_path: Path):
    assert read(tmp_path, WHOLE).candidates == (
        SpeculationConfig("ngram", 5, 2, 4),
        SpeculationConfig("eagle3", draft="org/head", options={"draft_tensor_parallel_size": 1}),
    )


def test_one_value_is_enough_for_an_option_that_may_be_given_again(tmp_path: Path):
    assert read(tmp_path, 'extra = "a=1"').options == {"extra": ("a=1",)}


def test_an_empty_file_says_nothing(tmp_path: Path):
    assert read(tmp_path, "") == PlanFile({}, (), ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("servr = 'x'", "servr is not known: did you mean server?"),
        ("start_limit = 3", "did you mean start-limit?"),
        ("zzz = 1", "zzz is not known: there are "),
        ("k = 5", r"k is of a candidate: write it below a line  \[\[candidate\]\]"),
        ("yes = [true]", "yes takes one value, not a list"),
        ("server = { a = 1 }", "server is neither text"),
        ("server = 2026-01-01", "server is neither text"),
        ("extra = [[1]]", "extra is neither text"),
        ("[candidate]\nmethod = 'ngram'", "candidate is a list of tables"),
        ("candidate = [1]", "candidate is a list of tables"),
        ("[[candidate]]\nk = 5", 'a candidate has no method: write  method = "ngram"'),
        ("[[candidate]]\nmethod = 'ngram'\nk = '5'", "k of a candidate is a whole number, not '5'"),
        ("[[candidate]]\nmethod = 'ngram'\nk = true", "k of a candidate is a whole number, not True"),
        ("[[candidate]]\nmethod = 'ngram'\nk = 0", "k 0: give at least 1"),
        ("[[candidate]]\nmethod = 'ngram'\nmin_n = 2", "min_n is not known: did you mean min-n?"),
        ("[[candidate]]\nmethod = 'ngram'\nset = 'x'", "set of a candidate is a table"),
        ("command = 'vllm serve'", "command is a list of words"),
        ("server = ", "is no TOML"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_write(tmp_path: Path, text: str, said: str):
    with pytest.raises(UsageError, match=said) as refused:
        read(tmp_path, text)
    if "give at least" not in said:
        assert str(tmp_path / "plan.toml") in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"nothing\.toml cannot be read"):
        read_plan_file(tmp_path / "nothing.toml", KNOWN)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path):
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is no TOML"):
        read_plan_file(tmp_path / "plan.toml", KNOWN)
