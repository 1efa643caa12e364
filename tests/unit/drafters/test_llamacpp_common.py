"""What llama.cpp's drafters share, and that the engine takes the flags of each."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from breakeven.drafters import llamacpp_common
from breakeven.drafters.base import Limits
from breakeven.drafters.registry import BUILT_IN, make_drafter
from breakeven.drafters.tokens import UNLIMITED
from breakeven.engines.llamacpp import LlamaSettings
from breakeven.errors import UsageError

NAMES = {
    "ngram-simple": llamacpp_common.SIZES,
    "ngram-map-k": llamacpp_common.SIZES,
    "ngram-map-k4v": llamacpp_common.SIZES,
    "ngram-mod": {"n": "n_match", "min_k": "n_min", "k": "n_max"},
    "ngram-cache": {},
}
LLAMA = [name for name in BUILT_IN if name.startswith("llamacpp-") and name != "llamacpp-ngram-simple"]


@pytest.mark.parametrize(
    ("context", "output", "limits", "expected"),
    [
        (100, 10, Limits(), UNLIMITED - 101),
        (100, 10, Limits(max_tokens=20), 9),
        (100, 19, Limits(max_tokens=20), 0),
        (100, 10, Limits(max_model_len=512), 411),
        (511, 10, Limits(max_model_len=512), 0),
        (505, 10, Limits(max_tokens=400, max_model_len=512), 6),
        (505, 10, Limits(max_tokens=13, max_model_len=512), 2),
    ],
)
def test_room_leaves_a_token_for_the_step_itself(
    context: int, output: int, limits: Limits, expected: int
) -> None:
    assert llamacpp_common.room(context, output, limits) == expected


@pytest.mark.parametrize("name", LLAMA)
def test_the_engine_reads_the_flags_as_the_same_settings(name: str) -> None:
    defaults = asdict(make_drafter(name, {}).settings)
    drafter = make_drafter(name, dict.fromkeys(defaults, 2))
    parsed = LlamaSettings.parse(drafter.flags())
    kind = name.removeprefix("llamacpp-")
    assert parsed.spec_types == (kind,)
    for key, default in defaults.items():
        engines_own = NAMES[kind].get(key, key)
        assert getattr(getattr(parsed, kind.replace("-", "_")), engines_own) == 2
        assert getattr(getattr(LlamaSettings(), kind.replace("-", "_")), engines_own) == default


@pytest.mark.parametrize("name", LLAMA)
def test_a_step_without_room_is_not_asked(name: str) -> None:
    drafter = make_drafter(name, {})
    assert drafter.room(20, 8, Limits(max_tokens=9)) == 0


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("llamacpp-ngram-map-k", {"n": 0}),
        ("llamacpp-ngram-map-k", {"k": 1025}),
        ("llamacpp-ngram-map-k4v", {"min_hits": 0}),
        ("llamacpp-ngram-mod", {"n": 0}),
        ("llamacpp-ngram-mod", {"min_k": -1}),
        ("llamacpp-ngram-mod", {"k": 1025}),
        ("llamacpp-ngram-cache", {"n": 3}),
    ],
)
def test_settings_that_the_engine_refuses(name: str, settings: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        make_drafter(name, settings)
