from dataclasses import replace

import pytest

from breakeven.eagle.export.tensors import Found, differences, refuse_others, slots
from breakeven.errors import UsageError
from tests.unit.eagle.export.heads import SHAPE

WANTED = slots(SHAPE, with_embedding=False)


def found(**changed: tuple[tuple[int, ...], str] | None) -> Found:
    """Tensors as they should be, but for these."""
    types = {"weight": "bfloat16", "ids": "int64", "mask": "bool"}
    good = {name: (slot.shape, types[slot.kind]) for name, slot in WANTED.items()}
    return {name: one for name, one in {**good, **changed}.items() if one is not None}


def test_every_tensor_has_its_place():
    sizes = {name: slot.shape for name, slot in WANTED.items()}
    assert sizes["fc.weight"] == (32, 96)
    assert sizes["layers.0.self_attn.q_proj.weight"] == (32, 64)
    assert sizes["layers.0.self_attn.k_proj.weight"] == (16, 64)
    assert sizes["layers.0.mlp.down_proj.weight"] == (32, 48)
    assert (sizes["lm_head.weight"], sizes["d2t"], sizes["t2d"]) == ((30, 32), (30,), (64,))
    assert len(sizes) == 15
    assert list(differences(found(), WANTED, "bfloat16")) == []


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"fc_norm": True}, {"fc_norm.0.weight", "fc_norm.1.weight", "fc_norm.2.weight"}),
        ({"norm_before_fc": True}, {"input_norm.weight"}),
        ({"norm_output": True}, set()),
        ({"decoder": "qwen3"}, {f"layers.0.self_attn.{name}_norm.weight" for name in "qk"}),
        ({"attention_bias": True}, {f"layers.0.self_attn.{name}_proj.bias" for name in "qkvo"}),
        ({"mlp_bias": True}, {f"layers.0.mlp.{name}_proj.bias" for name in ("gate", "up", "down")}),
    ],
)
def test_what_a_setting_adds(change: dict, more: set[str]):
    assert set(slots(replace(SHAPE, **change), with_embedding=False)) - set(WANTED) == more


def test_a_vocabulary_of_the_target_has_no_map():
    assert not {"d2t", "t2d"} & set(slots(replace(SHAPE, draft_vocabulary=64), with_embedding=False))


def test_the_embedding_where_it_is_wanted():
    assert slots(SHAPE, with_embedding=True)["embed_tokens.weight"].shape == (64, 32)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"fc.weight": None}, "fc.weight is missing"),
        ({"fc.weight": ((32, 64), "bfloat16")}, r"fc.weight is \[32, 64\] and should be \[32, 96\]"),
        ({"fc.weight": ((32, 96), "float32")}, "fc.weight is float32 and should be bfloat16"),
        ({"d2t": ((30,), "bfloat16")}, "d2t is bfloat16 and should be int64"),
        ({"midlayer.x": ((1,), "bfloat16")}, "midlayer.x is no tensor of this head"),
    ],
)
def test_what_is_wrong_is_named(change: dict, says: str):
    with pytest.raises(UsageError, match=says):
        refuse_others(found(**change), WANTED, "bfloat16", "head.safetensors")


def test_all_that_is_wrong_is_counted():
    with pytest.raises(UsageError, match=r"fc.weight is missing, and 1 more"):
        refuse_others(
            found(**{"fc.weight": None, "norm.weight": None}), WANTED, "bfloat16", "head.safetensors"
        )
