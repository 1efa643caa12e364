"""`breakeven models routing` on the embedded engine: a tiny MoE, and the refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from breakeven.cost.routing import load_routing
from breakeven.models.upcycle import upcycle
from tests.e2e.command import breakeven, without
from tests.tiny_gguf import LAYERS

pytest.importorskip("xllamacpp")
PROMPTS = ("one two three", "water is wet", "the sky")
TOKENS = 20


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prompts") / "prompts.txt"
    path.write_text("\n".join(PROMPTS))
    return path


@pytest.fixture(scope="module")
def moe(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    return upcycle(tiny_model, tmp_path_factory.mktemp("moe") / "moe.gguf", 16, 3)


def test_what_is_read_is_routing(moe: Path, prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "routing.npz"
    words = ("models", "routing", moe, "--prompts", prompts, "--tokens", TOKENS, "--out", out)
    shown = breakeven(*words, "--json").succeeded().json()
    trace = load_routing(out)
    assert trace.experts.shape[1:] == (LAYERS, 3) and trace.count == 16 and trace.random_router
    assert max(trace.lengths) <= TOKENS
    assert shown["tokens"] == sum(trace.lengths) and shown["top_k"] == 3 and shown["random_router"]
    assert "random, not learned" in shown["warnings"][0]
    assert shown["reuse"]["estimate"] == trace.reuse().estimate
    again = tmp_path / "again.npz"
    breakeven(*words[:-1], again).succeeded()
    assert np.array_equal(load_routing(again).experts, trace.experts)


def test_the_router_decides(moe: Path, prompts: Path, tiny_model: Path, tmp_path: Path) -> None:
    """Another seed routes the same text otherwise."""
    other = upcycle(tiny_model, tmp_path / "other.gguf", 16, 3, seed=1)
    found = []
    for model in (moe, other):
        out = tmp_path / f"{model.stem}.npz"
        breakeven("models", "routing", model, "--prompts", prompts, "--tokens", 4, "--out", out).succeeded()
        found.append(load_routing(out).experts[0])
    assert not np.array_equal(*found)


def test_a_table(moe: Path, prompts: Path) -> None:
    done = breakeven("models", "routing", moe, "--prompts", prompts, "--tokens", TOKENS).succeeded()
    assert "3 of 16 experts, 2 layers" in done.out and "Reuse that fits neighbours best" in done.out
    assert "random, not learned" in done.out


def test_refusals(moe: Path, prompts: Path, tiny_model: Path, tmp_path: Path) -> None:
    def refused(model: Path, *more: object, code: int = 2, **how: object) -> str:
        words = ("models", "routing", model, "--prompts", prompts, *more)
        return breakeven(*words, **how).refused(code)

    said = refused(tiny_model)
    assert f"{tiny_model} has no experts" in said and "such as smollm2-moe" in said
    assert "it holds 512 tokens" in refused(moe, "--tokens", 600)
    one = tmp_path / "one.txt"
    one.write_text("only one")
    assert "holds one prompt" in refused(moe, "--prompts", one)
    for kept in (prompts, moe):
        before = kept.read_bytes()
        assert f"--out {kept}: it is {kept} itself: type --out routing.npz" in refused(moe, "--out", kept)
        assert kept.read_bytes() == before
    assert "there is no folder" in refused(moe, "--out", tmp_path / "none" / "routing.npz")
    assert "breakeven[local]" in refused(moe, env=without("xllamacpp", tmp_path / "none"))
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(moe.read_bytes()[:2000])
    assert "llama.cpp cannot load it" in breakeven("models", "routing", broken, "--prompts", prompts).err
