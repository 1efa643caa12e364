"""The corpus of benchmarks/replay.py: source code, the same wherever the Python is the same.

Python's own standard library (its .py files by path, without tests and installed packages), file after file,
in the ids of a byte-level BPE of 8,000 entries that is trained on the same text; cut into requests of 2,048
tokens, of which the first 1,024 are the prompt. Kept in the temporary folder.
"""

from __future__ import annotations

import platform
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.tokens import Tokens, flat

VOCABULARY = 8_000
REQUEST_TOKENS = 2_048
PROMPT_TOKENS = 1_024
CACHE = Path(tempfile.gettempdir()) / f"breakeven-replay-corpus-{platform.python_version()}.npy"


def corpus(requests: int) -> Tokens:
    """The first requests of it."""
    if not CACHE.exists():
        np.save(CACHE, _encoded(_texts()))
    ids: NDArray[np.int32] = np.load(CACHE)
    cut = ids[: requests * REQUEST_TOKENS].reshape(requests, REQUEST_TOKENS)
    return flat([(request[:PROMPT_TOKENS], request[PROMPT_TOKENS:]) for request in cut])


def _texts() -> list[str]:
    library = Path(sysconfig.get_path("stdlib"))
    left_out = {"site-packages", "test", "tests", "idle_test"}
    files = [path for path in sorted(library.rglob("*.py")) if not left_out & {*path.parts}]
    return [path.read_text(encoding="utf-8", errors="replace") for path in files]


def _encoded(texts: list[str]) -> NDArray[np.int32]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return np.concatenate([np.array(text.ids, np.int32) for text in tokenizer.encode_batch(texts)])
