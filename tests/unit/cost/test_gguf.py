import struct
from pathlib import Path

import pytest

from breakeven.cost.attention import Latent
from breakeven.cost.geometry import Sliding
from breakeven.cost.gguf_geometry import geometry_from_gguf, part_of
from breakeven.cost.gguf_header import BLOCKS, Length, read_header
from breakeven.errors import UsageError
from breakeven.models.cache import path_of
from breakeven.models.catalog import MODELS
from tests.unit.cost.gguf_files import F32, Q4_1, Q8_0, tiny_metadata, tiny_tensors, write


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write(tmp_path / "tiny.gguf", tiny_metadata(), tiny_tensors())


def test_sizes_of_types_are_those_of_the_gguf_package():
    gguf = pytest.importorskip("gguf")
    theirs = {int(kind): size for kind, size in gguf.GGML_QUANT_SIZES.items()}
    assert {kind: theirs[kind] for kind in BLOCKS} == BLOCKS


def test_header(tiny: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("breakeven.cost.gguf_header._KEPT_ITEMS", 10)
    header = read_header(tiny)
    assert header.metadata["general.architecture"] == "llama"
    assert header.metadata["x.epsilon"] == pytest.approx(1e-5)
    assert header.metadata["tokenizer.ggml.tokens"] == Length(256)
    assert header.tensors[0].shape == (64, 256)
    assert header.tensors[0].n_bytes == 64 * 256 // 32 * 34


def test_bytes_are_those_of_the_tensors(tiny: Path):
    geometry = geometry_from_gguf(tiny)
    tensors = read_header(tiny).tensors
    assert geometry.tied and geometry.vocab == 256
    assert geometry.parameters_total() == sum(tensor.n_weights for tensor in tensors)
    assert geometry.weight_bytes() == sum(tensor.n_bytes for tensor in tensors)
    assert geometry.weights.attention.bits_per_weight == pytest.approx(8.5)
    assert geometry.weights.other.bits_per_weight == 32


def test_biases_are_bytes_but_no_parameters(tmp_path: Path):
    with_bias = tiny_tensors() | {"blk.0.attn_q.bias": ((64,), F32)}
    geometry = geometry_from_gguf(write(tmp_path / "b.gguf", tiny_metadata(), with_bias))
    plain = geometry_from_gguf(write(tmp_path / "p.gguf", tiny_metadata(), tiny_tensors()))
    assert geometry.parameters_total() == plain.parameters_total()
    assert geometry.weight_bytes() == plain.weight_bytes() + 256


def test_a_mixture(tmp_path: Path):
    metadata = tiny_metadata(expert_count=4, expert_used_count=2)
    geometry = geometry_from_gguf(write(tmp_path / "moe.gguf", metadata, tiny_tensors(kind=Q4_1, experts=4)))
    assert geometry.experts is not None
    assert (geometry.experts.count, geometry.experts.top_k, geometry.experts.ff) == (4, 2, 96)
    assert geometry.dense_layers == 0
    assert geometry.weights.routed.bits_per_weight == pytest.approx(5)


def test_layers_for_multi_token_prediction_are_left_out(tmp_path: Path):
    metadata = tiny_metadata("glm4moe", block_count=3, nextn_predict_layers=1)
    geometry = geometry_from_gguf(write(tmp_path / "mtp.gguf", metadata, tiny_tensors(layers=3)))
    assert (geometry.layers, geometry.mtp_layers) == (2, 1)
    two = write(tmp_path / "two.gguf", tiny_metadata("glm4moe"), tiny_tensors())
    assert geometry.weight_bytes() == geometry_from_gguf(two).weight_bytes()


def test_every_other_layer_of_gpt_oss_slides(tmp_path: Path):
    metadata = tiny_metadata("gpt-oss", **{"attention.sliding_window": 128})
    geometry = geometry_from_gguf(write(tmp_path / "oss.gguf", metadata, tiny_tensors()))
    assert geometry.sliding == Sliding(1, 128)


def test_sizes_listed_for_each_layer(tmp_path: Path):
    same = tiny_metadata(feed_forward_length=[96, 96])
    assert geometry_from_gguf(write(tmp_path / "same.gguf", same, tiny_tensors())).dense_ff == 96
    other = tiny_metadata(feed_forward_length=[96, 64])
    with pytest.raises(UsageError, match="another feed_forward_length in each layer"):
        geometry_from_gguf(write(tmp_path / "other.gguf", other, tiny_tensors()))


def test_latent_attention(tmp_path: Path):
    latent = {
        "attention.q_lora_rank": 16,
        "attention.kv_lora_rank": 32,
        "attention.key_length": 48,
        "attention.key_length_mla": 24,
        "attention.value_length_mla": 16,
        "rope.dimension_count": 8,
    }
    tensors = {name: info for name, info in tiny_tensors().items() if "attn_" not in name or "norm" in name}
    for n in range(2):
        shapes = {
            "q_a": (64, 16),
            "q_b": (16, 96),
            "kv_a_mqa": (64, 40),
            "kv_b": (32, 128),
            "output": (64, 64),
        }
        tensors |= {f"blk.{n}.attn_{name}.weight": (shape, F32) for name, shape in shapes.items()}
    geometry = geometry_from_gguf(write(tmp_path / "mla.gguf", tiny_metadata("deepseek2", **latent), tensors))
    assert geometry.attention == Latent(heads=4, q_rank=16, kv_rank=32, nope_dim=16, rope_dim=8, v_dim=16)


@pytest.mark.parametrize("name", ["m-00001-of-00000.gguf", "m-00003-of-00002.gguf"])
def test_a_part_that_the_name_does_not_count(tmp_path: Path, name: str):
    path = write(tmp_path / name, tiny_metadata(), tiny_tensors())
    with pytest.raises(UsageError, match="which it is not"):
        geometry_from_gguf(path)


def test_parts_of_a_split_file(tmp_path: Path):
    tensors = tiny_tensors()
    names = list(tensors)
    first, second = tmp_path / "m-00001-of-00002.gguf", tmp_path / "m-00002-of-00002.gguf"
    write(first, tiny_metadata(), {name: tensors[name] for name in names[:9]})
    with pytest.raises(UsageError, match=r"m-00002-of-00002\.gguf is not beside it"):
        geometry_from_gguf(first)
    write(second, {}, {name: tensors[name] for name in names[9:]})
    whole = geometry_from_gguf(write(tmp_path / "whole.gguf", tiny_metadata(), tensors))
    assert geometry_from_gguf(first).weight_bytes() == whole.weight_bytes()
    assert geometry_from_gguf(second).weight_bytes() == whole.weight_bytes()


@pytest.mark.parametrize("name", [model.name for model in MODELS])
def test_the_models_of_the_catalog(name: str):
    path = path_of(next(model for model in MODELS if model.name == name))
    if not path.exists():
        pytest.skip(f"{name} is not in the cache")
    geometry = geometry_from_gguf(path)
    tensors = read_header(path).tensors
    assert geometry.parameters_total() == sum(tensor.n_weights for tensor in tensors)
    assert geometry.weight_bytes() == sum(tensor.n_bytes for tensor in tensors)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("blk.3.attn_q.weight", "attention"),
        ("blk.3.attn_norm.weight", "other"),
        ("blk.3.ffn_gate_exps.weight", "routed"),
        ("blk.3.ffn_gate_inp.weight", "other"),
        ("blk.3.ffn_up_shexp.weight", "shared"),
        ("blk.3.ffn_down.weight", "dense"),
        ("output_norm.weight", "other"),
        ("output.weight", "output"),
    ],
)
def test_parts_by_name(name: str, part: str):
    assert part_of(name) == part


def test_every_truncation_is_said_to_be_one(tiny: Path, tmp_path: Path):
    whole = tiny.read_bytes()
    cut = tmp_path / "cut.gguf"
    for end in (*range(200), *range(200, len(whole), 997), len(whole) - 64):
        cut.write_bytes(whole[:end])
        with pytest.raises(UsageError, match=r"damaged|not whole|no GGUF"):
            geometry_from_gguf(cut)


def test_damage_anywhere_in_the_header_is_no_crash(tiny: Path, tmp_path: Path):
    whole = tiny.read_bytes()
    bad = tmp_path / "bad.gguf"
    for at in range(4, 1200):
        bad.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        try:
            geometry_from_gguf(bad)
        except UsageError as error:
            assert str(bad) in str(error) or "impossible geometry" in str(error)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"general.architecture": "mamba"}, "'mamba', which is not known here: known are llama"),
        ({"llama.attention.head_count_kv": 3}, "4 heads cannot share 3"),
        ({"llama.embedding_length": 0}, "embedding_length"),
        ({"llama.feed_forward_length": 9600}, "damaged, or of a kind that is not known"),
        ({"llama.block_count": 100_000}, "block_count"),
    ],
)
def test_metadata_that_cannot_be(tmp_path: Path, change: dict[str, object], said: str):
    path = write(tmp_path / "x.gguf", tiny_metadata() | change, tiny_tensors())
    with pytest.raises(UsageError, match=said):
        geometry_from_gguf(path)


def test_a_type_that_is_not_known(tiny: Path):
    raw = tiny.read_bytes()
    info = raw.index(b"token_embd.weight") + len("token_embd.weight")
    at = info + 4 + 16
    assert struct.unpack_from("<I", raw, at) == (Q8_0,)
    tiny.write_bytes(raw[:at] + struct.pack("<I", 77) + raw[at + 4 :])
    with pytest.raises(UsageError, match="ggml type 77"):
        geometry_from_gguf(tiny)


def test_without_an_embedding_table(tmp_path: Path):
    tensors = tiny_tensors()
    del tensors["token_embd.weight"]
    with pytest.raises(UsageError, match="no matrix token_embd"):
        geometry_from_gguf(write(tmp_path / "x.gguf", tiny_metadata(), tensors))
