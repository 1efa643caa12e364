"""Natural text and code as token ids, from this repository's own files."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PATTERNS = {"text": "docs/*.md", "code": "src/breakeven/client/*.py"}


def requests_of(kind: str, files: int, tokens: int) -> list[tuple[list[int], list[int]]]:
    """The first tokens of some files, a token for each word, space or sign; 40 of each are the prompt."""
    known: dict[str, int] = {}
    requests = []
    for path in sorted(REPOSITORY.glob(PATTERNS[kind]))[:files]:
        words = re.findall(r"\w+|\s+|[^\w\s]", path.read_text(encoding="utf-8"))[:tokens]
        ids = [known.setdefault(word, len(known)) for word in words]
        requests.append((ids[:40], ids[40:]))
    return requests
