"""Samples of a Prometheus page: the lines whose names matter, and their sums over engines and ranks.

A page may be megabytes, most of it histograms that nobody asks for: a line is taken apart only if its name is
one of those wanted.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from breakeven.acceptance.counters import MAX_COUNT

MAX_LINE = 8192
"""Characters. A longer line is no engine's: its value is taken for unreadable."""
MAX_WINDOW = 4096
"""A draft position beyond any engine's window is not counted: a page that names one is not to be trusted."""
MAX_RANKS = 4096
"""No server has more engines or data-parallel ranks."""
MAX_SAMPLES = 1 << 17
"""What so many ranks tell; of a longer page, one more is read, and no further."""
COPIES = frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "moe_dp_rank"})
"""Labels of processes that work on the same batch, and tell the same of it."""

_LABEL = re.compile(r'[\s,{]*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"([^"\\]*(?:\\.[^"\\]*)*)"')
_END_OF_LABELS = re.compile(r"[\s,{]*\}")
_VALUE = re.compile(r"[ \t]+(\S+)")


class Sample(NamedTuple):
    """One line."""

    labels: Mapping[str, str]
    """As written, escapes included."""
    value: float
    """NaN where it cannot be read."""


Samples = Mapping[str, Sequence[Sample]]
"""By name, without the `_total` that counters end in."""


def parse(text: str, prefix: str, names: frozenset[str]) -> Samples:
    """The samples of `names`, all of which begin with `prefix`. Never raises."""
    samples: dict[str, list[Sample]] = defaultdict(list)
    for found in islice(_lines_of(prefix, names).finditer(f"\n{text}"), MAX_SAMPLES + 1):
        samples[found[1]].append(_sample(found[2]))
    return dict(samples)


@cache
def _lines_of(prefix: str, names: frozenset[str]) -> re.Pattern[str]:
    """Finds name and rest of their lines. That they begin alike is what makes it fast."""
    endings = "|".join(re.escape(name.removeprefix(prefix)) for name in sorted(names))
    return re.compile(rf"\n({re.escape(prefix)}(?:{endings}))(?:_total)?(?=[{{ \t])([^\n]*)")


def count(value: float) -> int | None:
    """A value as a count, or None where it cannot be one."""
    return int(value) if 0 <= value < MAX_COUNT else None


def total(samples: Samples, *names: str) -> int | None:
    """The sum of a counter under the first of its names that the page has. None where it has none, or where
    one of its values is no count: the sum is not known then."""
    values = [count(sample.value) for sample in _first(samples, names)]
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None


def seconds(samples: Samples, *names: str) -> float | None:
    """The sum of a counter that need not be whole."""
    values = [sample.value for sample in _first(samples, names)]
    return sum(values) if values and all(0 <= value < math.inf for value in values) else None


def gauge(samples: Samples, *names: str) -> float | None:
    """Summed over ranks."""
    ranks = list(gauges(samples, *names).values())
    known = [value for value in ranks if value is not None]
    return sum(known) if ranks and len(known) == len(ranks) else None


def gauges(samples: Samples, *names: str) -> dict[str, float | None]:
    """By rank, each of which several processes may tell alike; None where a rank gives no number."""
    ranks: dict[str, float | None] = {}
    for sample in _first(samples, names):
        rank = rank_of(sample.labels)
        told = [
            value for value in (ranks.get(rank), sample.value) if value is not None and 0 <= value < math.inf
        ]
        ranks[rank] = max(told, default=None)
    return ranks


def fullest(samples: Samples, *names: str) -> float | None:
    """The highest of shares from 0 to 1."""
    shares = [sample.value for sample in _first(samples, names) if 0 <= sample.value <= 1]
    return max(shares, default=None)


def counters(samples: Samples, *names: str) -> dict[str, float]:
    """The sum of a counter by rank; NaN where a value cannot be read."""
    ranks: dict[str, float] = {}
    for sample in _first(samples, names):
        rank = rank_of(sample.labels)
        ranks[rank] = ranks.get(rank, 0.0) + sample.value
    return ranks


def positions(samples: Samples, name: str, label: str) -> dict[str, tuple[float, ...]]:
    """A counter by rank and draft position, which `label` gives, from the first on."""
    ranks: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for sample in samples.get(name, ()):
        position = sample.labels.get(label, "")
        if position.isdecimal() and len(position) <= len(str(MAX_WINDOW)) and int(position) < MAX_WINDOW:
            ranks[rank_of(sample.labels, label)][int(position)] += sample.value
    return {rank: tuple(found[i] for i in range(max(found) + 1)) for rank, found in ranks.items()}


def rank_of(labels: Mapping[str, str], *but: str) -> str:
    """Which engine or data-parallel rank a sample is of: its labels, except some and COPIES."""
    kept = sorted((name, value) for name, value in labels.items() if name not in COPIES and name not in but)
    return ",".join(f"{name}={value}" for name, value in kept)


def _first(samples: Samples, names: Sequence[str]) -> Sequence[Sample]:
    return next((samples[name] for name in names if name in samples), ())


def _sample(rest: str) -> Sample:
    """Of what follows the name on its line."""
    if len(rest) > MAX_LINE:
        return Sample({}, math.nan)
    labels: dict[str, str] = {}
    place = 0
    if rest.startswith("{"):
        while match := _LABEL.match(rest, place):
            labels[match.group(1)] = match.group(2)
            place = match.end()
        end = _END_OF_LABELS.match(rest, place)
        if end is None:
            return Sample(labels, math.nan)
        place = end.end()
    value = _VALUE.match(rest, place)
    return Sample(labels, _number(value.group(1)) if value else math.nan)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
