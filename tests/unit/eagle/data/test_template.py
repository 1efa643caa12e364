"""The target's own template and tokenizer, through transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from breakeven.eagle.data.chats import Chat
from breakeven.eagle.data.masks import DROPPED, REFUSED, Masked, of_text
from breakeven.eagle.data.template import TargetTemplate, TemplateRefused, no_marks
from breakeven.eagle.data.turns import assistant, user
from breakeven.errors import UsageError
from tests.unit.eagle.data.plain import chat

pytest.importorskip("transformers")
pytestmark = pytest.mark.eagle

SPECIAL = ("<pad>", "<|turn|>", "<|end|>")
END = SPECIAL.index("<|end|>")
BYTE_0 = len(SPECIAL)
PLAIN = (
    "{% for one in messages %}<|turn|>{{ one.role }}\n"
    "{% if one.reasoning_content %}<think>{{ one.reasoning_content }}</think>{% endif %}"
    "{{ one.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
MARKED = (
    "{%- for one in messages -%}<|turn|>{{ one.role }}\n"
    "{% if one.role == 'assistant' %}{% generation %}"
    "{% if one.reasoning_content %}<think>{{ one.reasoning_content }}</think>{% endif %}"
    "{{ one.content }}<|end|>{% endgeneration %}{% else %}{{ one.content }}<|end|>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
ALTERNATES = (
    "{% if messages[0].role != 'user' %}{{ raise_exception('roles must alternate') }}{% endif %}" + PLAIN
)


def folder(path: Path, template: str | None) -> Path:
    """A tokenizer of one token per byte."""
    path.mkdir(exist_ok=True)
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    names = {byte: chr(byte) for byte in plain} | {byte: chr(256 + at) for at, byte in enumerate(others)}
    words = [*SPECIAL, *(names[byte] for byte in range(256))]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [{"id": at, "content": name} | flags for at, name in enumerate(SPECIAL)],
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": {word: at for at, word in enumerate(words)}, "merges": []},
    }
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", "pad_token": "<pad>"}
    (path / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": len(words)}))
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    if template is not None:
        (path / "chat_template.jinja").write_text(template)
    return path


def learned(found: Masked | str) -> str:
    """The text that is learned from; special tokens by their names."""
    assert isinstance(found, Masked), found
    said = b""
    for token in found.ids[found.mask].tolist():
        said += SPECIAL[token].encode() if token < BYTE_0 else bytes([token - BYTE_0])
    return said.decode()


@pytest.mark.parametrize(("template", "marks"), [(PLAIN, False), (MARKED, True)])
def test_both_ways_learn_the_same(template: str, marks: bool, tmp_path: Path) -> None:
    own = TargetTemplate(folder(tmp_path, template))
    assert own.has_marks == marks
    one = chat("Hi", "Grüße", "And?", "Bye", reasoning="Hm.", several=True)
    assert learned(of_text(one, own, {END})) == "Grüße<|end|><think>Hm.</think>Bye<|end|>"
    cut = chat("Hi", "Hel", ended=False)
    assert learned(of_text(cut, own, {END})) == "Hel"
    context = chat("Hi", "Hello", "And?", "Bye")
    assert learned(of_text(context, own, {END})) == "Bye<|end|>"


def test_ids_are_those_of_the_tokenizer(tmp_path: Path) -> None:
    own = TargetTemplate(folder(tmp_path, PLAIN))
    text = own.text([user("é")], [], prompt=True)
    assert text == "<|turn|>user\né<|end|>\n<|turn|>assistant\n"
    words = [b"user\n\xc3\xa9", b"\n", b"assistant\n"]
    user_turn, line, assistant_turn = ([BYTE_0 + byte for byte in word] for word in words)
    assert own.ids(text) == [1, *user_turn, END, *line, 1, *assistant_turn]


def test_a_template_that_refuses_leaves_the_chat_out(tmp_path: Path) -> None:
    own = TargetTemplate(folder(tmp_path, ALTERNATES))
    with pytest.raises(TemplateRefused, match="roles must alternate"):
        own.text([{"role": "system", "content": "x"}], [], prompt=False)
    asked = ({"role": "system", "content": "x"}, user("Hi"))
    assert of_text(Chat("w", "c", asked, assistant("Hello")), own, {END}) == REFUSED


def test_a_template_without_reasoning_is_told(tmp_path: Path) -> None:
    own = TargetTemplate(folder(tmp_path, PLAIN.replace("{{ one.reasoning_content }}", "")))
    assert of_text(chat("Hi", "Hello", reasoning="Hm."), own, {END}) == DROPPED


def test_no_template_and_no_tokenizer_say_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no chat template: put the model's chat_template\.jinja"):
        TargetTemplate(folder(tmp_path / "a", None))
    (tmp_path / "b").mkdir()
    (tmp_path / "b/config.json").write_text("{}")
    with pytest.raises(UsageError, match=r"cannot be used .*regenerate = true"):
        TargetTemplate(tmp_path / "b")
    assert "{% generation %}" in str(no_marks(tmp_path))
