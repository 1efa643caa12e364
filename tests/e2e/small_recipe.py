"""A recipe for a head of the small target, and its data, without a server: for tests of the later stages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from breakeven.eagle.data.samples import SAMPLES, Sample, write_samples
from breakeven.eagle.data.vocabulary import VOCABULARY, choose, write_vocabulary
from breakeven.eagle.recipe_file import read_recipe
from breakeven.eagle.stage import Stage
from tests.e2e.docstrings import Chat, chats
from tests.e2e.small_target import END, SPECIAL, prompt_text, reply_text
from tests.e2e.small_target import VOCABULARY as TARGET_SIZE

DRAFT_VOCABULARY = 512
HELD_OUT_EVERY = 5
"""Of five chats, one is held out."""
TOGETHER = 32
"""Replies that are generated at once."""
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "data": {
        "sources": ["chats.jsonl"],
        "regenerate": False,
        "max_length": 256,
        "max_tokens": 96,
        "held_out": 0.2,
        "draft_vocabulary": DRAFT_VOCABULARY,
    },
    "states": {"dtype": "float32", "batch": 4, "top": 8, "tokens_per_shard": 2048},
    "train": {
        "steps": 3,
        "epochs": 1,
        "batch": 4,
        "learning_rate": 1e-3,
        "checkpoint_every": 10,
        "validate_every": 10,
        "validation": 0.1,
    },
    "evaluate": {"k": 4, "max_tokens": 48, "prompts": 16},
}


def write_recipe(folder: Path, target: Path, /, **changes: Mapping[str, Any]) -> Path:
    """recipe.toml in `folder`; `changes` by section, such as states={"batch": 2} or target={"url": …}."""
    folder.mkdir(parents=True, exist_ok=True)
    sections = {"target": {"model": str(target)}, **SETTINGS}
    merged = {name: {**sections.get(name, {}), **changes.get(name, {})} for name in {**sections, **changes}}
    lines = [
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in section.items())
        for name, section in merged.items()
    ]
    path = folder / "recipe.toml"
    path.write_text("\n".join(lines))
    return path


def write_chats(path: Path, n: int, first: int = 0) -> Path:
    """Chats as JSON lines of messages, as the data stage reads them."""
    lines = [
        json.dumps(
            {
                "id": chat.id,
                "category": chat.category,
                "messages": [
                    {"role": "user", "content": chat.prompt},
                    {"role": "assistant", "content": chat.reply},
                ],
            }
        )
        for chat in chats()[first : first + n]
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_data(recipe: Path, n: int = 40, *, own: bool = False) -> Path:
    """The finished data stage of a recipe, with n chats: as they are documented, or with `own` as the target
    itself answers them, greedily. One in HELD_OUT_EVERY is held out. Returns the stage's folder."""
    read = read_recipe(recipe)
    folder = read.stage("data")
    stage = Stage(folder, "data", {"n": n, "own": own}, {})
    samples = _samples(read.beside(read.target.model), chats()[:n], read.data.max_tokens, own)
    write_samples(folder / SAMPLES, samples)
    learned = [one.input_ids[one.loss_mask] for one in samples if one.split == "train"]
    counts = np.bincount(np.concatenate(learned), minlength=TARGET_SIZE)
    vocabulary = choose(counts, read.data.draft_vocabulary, range(len(SPECIAL)))
    write_vocabulary(folder / VOCABULARY, vocabulary)
    stage.finish([folder / SAMPLES, folder / VOCABULARY], {"samples": n, "coverage": vocabulary.coverage})
    return folder


def _samples(target: Path, asked: Sequence[Chat], most: int, own: bool) -> list[Sample]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(target / "tokenizer.json"))
    prompts = [tokenizer.encode(prompt_text(chat.prompt)).ids for chat in asked]
    if own:
        replies = own_replies(target, prompts, most)
    else:
        replies = [tokenizer.encode(reply_text(chat.reply)).ids[:most] for chat in asked]
    return [
        Sample(
            f"{number:04x}",
            chat.category,
            "held_out" if number % HELD_OUT_EVERY == HELD_OUT_EVERY - 1 else "train",
            len(prompt),
            np.array([*prompt, *reply], np.int32),
            np.array([False] * len(prompt) + [True] * len(reply)),
        )
        for number, (chat, prompt, reply) in enumerate(zip(asked, prompts, replies, strict=True))
    ]


def own_replies(target: Path, prompts: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    """What the target answers greedily, with the token that ends it; at most `most` tokens each."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(target)
    replies: list[list[int]] = []
    for start in range(0, len(prompts), TOGETHER):
        replies += _generated(model, prompts[start : start + TOGETHER], most)
    return replies


def _generated(model: Any, prompts: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    import torch

    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    whole = model.generate(
        input_ids=ids, attention_mask=mask, max_new_tokens=most, do_sample=False, pad_token_id=0
    )
    return [_until_end(row) for row in whole[:, longest:].tolist()]


def _until_end(reply: list[int]) -> list[int]:
    return reply[: reply.index(END) + 1] if END in reply else reply
