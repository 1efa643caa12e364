"""Upcycling on tiny models: shapes, bytes, metadata, refusals. The text is in tests of the server."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.errors import StorageError, UsageError
from breakeven.models.upcycle import upcycle, writable_types
from tests.tiny_gguf import FF, LAYERS, WIDTH, write_tiny


def tensors(path: Path) -> dict[str, Any]:
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


def value(path: Path, key: str) -> Any:
    field = gguf.GGUFReader(path).get_field(key)
    return None if field is None else field.contents()


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 12), st.data())
def test_every_expert_is_the_dense_block(
    tmp_path_factory: Any, tiny_model: Path, experts: int, data: Any
) -> None:
    top_k = data.draw(st.integers(1, experts))
    target = tmp_path_factory.mktemp("moe") / "moe.gguf"
    upcycle(tiny_model, target, experts, top_k)
    dense, moe = tensors(tiny_model), tensors(target)
    assert value(target, "llama.expert_count") == experts
    assert value(target, "llama.expert_used_count") == top_k
    for layer in range(LAYERS):
        router = moe.pop(f"blk.{layer}.ffn_gate_inp.weight")
        assert router.data.shape == (experts, WIDTH) and router.data.dtype == np.float32
        for part in ("gate", "up", "down"):
            block = dense.pop(f"blk.{layer}.ffn_{part}.weight").data
            copies = moe.pop(f"blk.{layer}.ffn_{part}_exps.weight").data
            assert copies.shape == (experts, *block.shape)
            assert all(np.array_equal(copy, block) for copy in copies)
    assert moe.keys() == dense.keys()
    assert all(np.array_equal(moe[name].data, dense[name].data) for name in dense)


def test_metadata_is_kept_and_says_that_routing_is_random(tmp_path: Path, tiny_model: Path) -> None:
    target = upcycle(tiny_model, tmp_path / "moe.gguf", 4, 2)
    assert value(target, "general.name") == "tiny 4x top-2, random routing"
    assert "Routing is random, not learned." in value(target, "general.description")
    for key, field in gguf.GGUFReader(tiny_model).fields.items():
        if not key.startswith(("GGUF.", "general.name")):
            assert value(target, key) == field.contents(), key


def test_quantised_bytes_are_repeated_untouched(tmp_path: Path) -> None:
    source = write_tiny(tmp_path / "q4_1.gguf", "Q4_1")
    target = upcycle(source, tmp_path / "moe.gguf", 3, 1)
    dense, moe = tensors(source), tensors(target)
    copies = moe["blk.1.ffn_down_exps.weight"]
    assert copies.tensor_type == gguf.GGMLQuantizationType.Q4_1
    assert copies.shape.tolist() == [FF, WIDTH, 3]
    assert all(np.array_equal(copy, dense["blk.1.ffn_down.weight"].data) for copy in copies.data)


@pytest.mark.parametrize(("kind", "error"), [("f16", 1e-3), ("q8_0", 0.01), ("q4_0", 0.2), ("bf16", 0.01)])
def test_quantising_stays_close_to_the_source(
    tmp_path: Path, tiny_model: Path, kind: str, error: float
) -> None:
    target = upcycle(tiny_model, tmp_path / "moe.gguf", 2, 1, quantise=kind)
    dense, moe = tensors(tiny_model), tensors(target)
    for name, of in (("blk.0.ffn_up_exps.weight", "blk.0.ffn_up.weight"), ("token_embd.weight",) * 2):
        tensor = moe[name]
        assert tensor.tensor_type.name == kind.upper()
        read = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.abs(read - dense[of].data).max() < error
    assert moe["output_norm.weight"].tensor_type.name == "F32"
    assert moe["blk.0.ffn_gate_inp.weight"].tensor_type.name == "F32"
    assert value(target, "general.file_type") == gguf.LlamaFileType[f"MOSTLY_{kind.upper()}"]


def test_seeds_make_the_router(tmp_path: Path, tiny_model: Path) -> None:
    one = upcycle(tiny_model, tmp_path / "1.gguf", 4, 1, seed=1).read_bytes()
    assert upcycle(tiny_model, tmp_path / "1b.gguf", 4, 1, seed=1).read_bytes() == one
    assert upcycle(tiny_model, tmp_path / "2.gguf", 4, 1, seed=2).read_bytes() != one


def test_memory_is_about_one_tensor(tmp_path: Path, tiny_model: Path) -> None:
    """With all tensors held at once the peak would be the size of the file."""
    upcycle(tiny_model, tmp_path / "warm.gguf", 1, 1)
    tracemalloc.start()
    target = upcycle(tiny_model, tmp_path / "moe.gguf", 256, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    one = 256 * FF * WIDTH * 4
    assert target.stat().st_size > 6 * one
    assert peak < 2 * one


def test_progress_ends_at_the_whole(tmp_path: Path, tiny_model: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    upcycle(tiny_model, tmp_path / "moe.gguf", 2, 1, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]


@pytest.mark.parametrize(
    ("experts", "top_k", "message"),
    [
        (0, 1, "--experts must be from 1"),
        (513, 1, "512"),
        (4, 5, "--top-k must be from 1 to the 4"),
        (4, 0, "k"),
    ],
)
def test_numbers_that_do_not_fit(
    tmp_path: Path, tiny_model: Path, experts: int, top_k: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        upcycle(tiny_model, tmp_path / "moe.gguf", experts, top_k)


def test_sources_that_cannot_be_used(tmp_path: Path, tiny_model: Path) -> None:
    def refused(source: Path, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            upcycle(source, tmp_path / "out.gguf", 2, 1)
        assert not (tmp_path / "out.gguf").exists()

    refused(tmp_path / "absent.gguf", "does not exist")
    (tmp_path / "text").write_text("hello")
    refused(tmp_path / "text", "not a whole GGUF")
    (tmp_path / "empty").write_bytes(b"")
    refused(tmp_path / "empty", "not a whole GGUF")
    refused(tmp_path, "not a whole GGUF")
    refused(upcycle(tiny_model, tmp_path / "moe.gguf", 2, 1), "mixture of experts already")
    refused(write_tiny(tmp_path / "qwen.gguf", arch="qwen2"), "architecture qwen2: only llama")
    refused(write_tiny(tmp_path / "split.gguf", split__count=2), "llama-gguf-split --merge")


@settings(max_examples=40, deadline=None)
@given(cut=st.floats(0, 0.999))
def test_a_cut_file_is_refused_wherever_it_ends(tmp_path_factory: Any, tiny_model: Path, cut: float) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole = tiny_model.read_bytes()
    (folder / "cut.gguf").write_bytes(whole[: int(len(whole) * cut)])
    with pytest.raises(UsageError):
        upcycle(folder / "cut.gguf", folder / "moe.gguf", 2, 1)


def test_text_that_is_no_text_is_refused(tmp_path: Path, tiny_model: Path) -> None:
    data = tiny_model.read_bytes()
    at = data.index(b"llama", data.index(b"general.architecture"))
    (tmp_path / "odd.gguf").write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    with pytest.raises(UsageError, match="damaged"):
        upcycle(tmp_path / "odd.gguf", tmp_path / "moe.gguf", 4, 2)


def test_types_that_cannot_be_written_are_refused_with_those_that_can(
    tmp_path: Path, tiny_model: Path
) -> None:
    with pytest.raises(UsageError, match=r"--quantise takes f32, f16, q4_0, .*, not 'q4_k'"):
        upcycle(tiny_model, tmp_path / "moe.gguf", 2, 1, quantise="q4_k")
    with pytest.raises(UsageError, match="multiple of 256 numbers"):
        upcycle(tiny_model, tmp_path / "moe.gguf", 2, 1, quantise="tq1_0")
    assert {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1"} <= set(writable_types())
    assert "q4_k" not in writable_types()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, tiny_model: Path) -> None:
    target = tmp_path / "moe.gguf"
    target.write_text("old")
    (tmp_path / "moe.gguf.part").symlink_to("/dev/full")
    with pytest.raises(StorageError, match="No space left"):
        upcycle(tiny_model, target, 2, 1)
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]
