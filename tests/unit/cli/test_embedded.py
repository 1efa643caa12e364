"""The embedded engine as a baseline to calibrate."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.cli.embedded import LOG, has_experts, leaving_no_empty, settings_of
from breakeven.engines.llamacpp import baseline_settings
from breakeven.errors import ServerError, UsageError
from breakeven.models.upcycle import upcycle


def test_each_slot_has_the_context_of_a_trials_baseline():
    plain, eight = baseline_settings(), settings_of(None, 8)
    assert eight.parallel == 8 and eight.ctx_size == 8 * plain.ctx_size
    assert (eight.threads, eight.spec_types) == (plain.threads, ())
    assert eight.kv_unified
    own = settings_of("-t 2 -c 512", 3)
    assert (own.threads, own.parallel, own.ctx_size) == (2, 3, 1536)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--spec-type ngram-simple", "a calibration needs the baseline: leave out --spec-type"),
        ("--parallel 4", "--flags say --parallel 4: type  --slots 4"),
    ],
)
def test_flags_of_no_such_baseline(flags: str, said: str):
    with pytest.raises(UsageError, match=said):
        settings_of(flags, 8)


def test_the_weights_say_whether_there_are_experts(tiny_model: Path, tmp_path: Path):
    moe = tmp_path / "moe.gguf"
    upcycle(tiny_model, moe, 4, 2, 0)
    for model, has, wrong, right in ((tiny_model, False, True, "--dense"), (moe, True, False, "--moe")):
        assert has_experts("mine", model) is has_experts("mine", model, has) is has
        with pytest.raises(UsageError, match=f"mine has .*experts: type {right}, or leave it out"):
            has_experts("mine", model, wrong)


@pytest.mark.parametrize("said", [True, False, None])
def test_weights_that_cannot_be_read_leave_it_to_the_user(tmp_path: Path, said: bool | None):
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    assert has_experts("x", tmp_path / "x.gguf", said) is said


@pytest.mark.parametrize(("log", "is_left"), [(None, False), ("", False), ("why\n", True)])
def test_a_failure_leaves_no_empty_folder(tmp_path: Path, log: str | None, is_left: bool):
    folder = tmp_path / "out"
    with pytest.raises(ServerError), leaving_no_empty(folder):
        folder.mkdir()
        if log is not None:
            (folder / LOG).write_text(log)
        raise ServerError("no")
    assert folder.exists() == is_left


def test_a_folder_that_was_there_stays(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt), leaving_no_empty(tmp_path):
        raise KeyboardInterrupt
    assert tmp_path.is_dir()
