"""A small Llama that has learned something: trained here in minutes, on text that every Python has.

    python -m tests.e2e.small_target [CACHE]

Heads, states and acceptance mean nothing on random weights. This one says what the standard library's
documentation would, or something like it: its loss is far below the entropy of single tokens.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.docstrings import Chat, chats

PAD, SYSTEM, USER, ASSISTANT, END = range(5)
SPECIAL = ("<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
"""The ids above, in their order."""
VOCABULARY, CONTEXT = 768, 1024
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "bos_token_id": None,
    "eos_token_id": END,
    "pad_token_id": PAD,
}
CHATS = 400
"""Of those that there are: few enough to be seen several times."""
ROW, BATCH, STEPS, RATE = 128, 8, 400, 5e-3
"""Tokens of a row, rows of a step, steps, and the highest learning rate."""
THREADS, SEED = 1, 0
"""One thread: two that wait for each other take ten times as long where the cores are shared."""
TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}"
    "{{ '<|assistant|>' }}{% generation %}{{ message['content'] + '<|end|>' }}{% endgeneration %}"
    "{% else %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
RECORD = "training.json"


def small_target(cache: Path | None = None) -> Path:
    """Its folder, in the Hugging Face format; trained if it is not in `cache`, which is $BREAKEVEN_CACHE or
    one for temporary files. RECORD in it has its loss and the entropy of single tokens, in nats."""
    named = os.environ.get("BREAKEVEN_CACHE")
    cache = cache or Path(named or Path(tempfile.gettempdir()) / "breakeven-tests")
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"small-target-{_content()}"
    with _alone(folder.with_suffix(".lock")):
        if not folder.exists():
            partial = Path(tempfile.mkdtemp(prefix=".small-target-", dir=cache))
            try:
                _make(partial)
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return folder


def prompt_text(prompt: str) -> str:
    """What the chat template makes of one question."""
    return f"{SPECIAL[USER]}{prompt}{SPECIAL[END]}{SPECIAL[ASSISTANT]}"


def reply_text(reply: str) -> str:
    """What the target is to write after it."""
    return f"{reply}{SPECIAL[END]}"


def _content() -> str:
    """Of all that it is made from."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    digest.update(json.dumps([[chat.prompt, chat.reply] for chat in chats()[:CHATS]]).encode())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Tests run in several processes; one of them trains, and the others wait."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(folder: Path) -> None:
    import torch

    threads, began = torch.get_num_threads(), time.monotonic()
    torch.set_num_threads(THREADS)
    try:
        texts = chats()[:CHATS]
        tokenizer = _tokenizer(folder, texts)
        stream = _stream(tokenizer, texts)
        model, loss = _train(torch.tensor(stream))
        model.save_pretrained(folder)
    finally:
        torch.set_num_threads(threads)
    record = {"loss": loss, "entropy": _entropy(stream), "tokens": len(stream)}
    (folder / RECORD).write_text(json.dumps({**record, "seconds": time.monotonic() - began}))


def _tokenizer(folder: Path, texts: Sequence[Chat]) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([f"{chat.prompt}\n{chat.reply}" for chat in texts], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": SPECIAL[END],
        "pad_token": SPECIAL[PAD],
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return tokenizer


def _stream(tokenizer: Any, texts: Sequence[Chat]) -> list[int]:
    """All chats, one after the other."""
    whole = [prompt_text(chat.prompt) + reply_text(chat.reply) for chat in texts]
    return [token for one in tokenizer.encode_batch(whole) for token in one.ids]


def _train(stream: Any) -> tuple[Any, float]:
    """The model, and the loss of its last tenth of steps, in nats."""
    import torch
    from torch.nn.functional import cross_entropy
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(SEED)
    model = LlamaForCausalLM(LlamaConfig(**SHAPE))
    optimizer = torch.optim.AdamW(model.parameters(), RATE, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, STEPS, pct_start=0.1)
    random = torch.Generator().manual_seed(SEED)
    losses = []
    for _ in range(STEPS):
        starts = torch.randint(len(stream) - ROW, (BATCH,), generator=random)
        rows = stream[starts[:, None] + torch.arange(ROW + 1)]
        logits = model(input_ids=rows[:, :-1], use_cache=False).logits
        loss = cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    last = losses[-STEPS // 10 :]
    return model.eval(), sum(last) / len(last)


def _entropy(stream: Sequence[int]) -> float:
    """Of single tokens, in nats: the loss of whoever knows only how often each occurs."""
    shares = [count / len(stream) for count in Counter(stream).values()]
    return -sum(share * math.log(share) for share in shares)


if __name__ == "__main__":
    made = small_target(*map(Path, sys.argv[1:2]))
    print(made, (made / RECORD).read_text())
