"""The oracle and the test-and-set policy against naive twins."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from breakeven.guard.simulate._walks import best_windows, try_and_set

COSTS = st.lists(st.floats(0.01, 0.8), min_size=1, max_size=4).map(lambda rises: 1 + np.cumsum([0, *rises]))
RIGHT = st.lists(st.integers(0, 5), min_size=1, max_size=9)
"""Right tokens of the draft at each position, before the end of the record cuts them."""


def cut(right: list[int]) -> list[int]:
    return [min(r, len(right) - p) for p, r in enumerate(right)]


def fastest(right: list[int], costs: np.ndarray) -> float:
    """The time of the best windows, over all of them, wrong tokens included."""

    @cache
    def of(p: int) -> float:
        if p >= len(right):
            return 0.0
        return min(costs[k] + of(p + min(right[p], k) + 1) for k in range(len(costs)))

    return of(0)


@given(RIGHT, RIGHT, COSTS)
def test_no_windows_are_faster_than_the_oracles(one: list[int], other: list[int], costs: np.ndarray):
    requests = [cut(one), cut(other)]
    agreed = np.array([*requests[0], *requests[1]], np.int32)
    begins = np.array([0, len(one), len(one) + len(other)])
    window = np.zeros(len(agreed), np.int32)
    best_windows(agreed, begins, 0, costs, np.zeros(len(agreed)), window)
    assert (window <= agreed).all()
    for begin, right in zip(begins, requests, strict=False):
        p, time = 0, 0.0
        while p < len(right):
            k = int(window[begin + p])
            time += costs[k]
            p += k + 1
        assert time <= fastest(right, costs) + 1e-9


class Naive:
    """The test-and-set policy of one request, as its description says it."""

    def __init__(self, most: int, start: int) -> None:
        self.most, self.start = most, min(start, most)
        self.off = 0
        self.test(self.start)

    def test(self, entry: int) -> None:
        self.testing, self.entry, self.window, self.way = True, entry, entry, +1
        self.utilities: dict[int, float] = {}
        self.begin(4)

    def begin(self, steps: int) -> None:
        self.left, self.tokens, self.time = steps, 0.0, 0.0

    def told(self, tokens: int, time: float) -> None:
        self.tokens += tokens
        self.time += time
        self.left -= 1
        if self.left:
            return
        if not self.testing:
            self.test(self.window or self.start)
            return
        self.utilities[self.window] = self.tokens / self.time
        following = self.next_window()
        if following is None:
            self.set()
        else:
            self.window = following
            self.begin(4)

    def next_window(self) -> int | None:
        """Uphill by ones, first up, then down from where the test began; None where the hill ends."""
        tried = list(self.utilities.items())
        window, utility = tried[-1]
        before = max((u for w, u in tried[:-1]), default=0.0)
        if tried[0][1] < 1 or len(tried) == 4:
            return None
        following = window + self.way
        if utility > before and 1 <= following <= self.most:
            return following
        best_is_entry = max(tried, key=lambda one: one[1])[0] == self.entry
        if self.way == +1 and best_is_entry and self.entry > 1:
            self.way = -1
            return self.entry - 1
        return None

    def set(self) -> None:
        paying = {w: u for w, u in self.utilities.items() if u >= 1}
        self.window = max(paying, key=lambda w: paying[w]) if paying else 0
        self.off = 0 if self.window else self.off + 1
        self.testing = False
        self.begin(16 * 2 ** min(max(self.off - 1, 0), 3))


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=400),
    st.lists(st.floats(0.0, 0.5), min_size=2, max_size=6),
    st.integers(1, 5),
)
def test_test_and_set_does_what_its_description_says(
    drafts: list[tuple[int, int]], rises: list[float], start: int
):
    available = np.array([a for a, _ in drafts], np.int32)
    right = np.array(cut([min(a, r) for a, r in drafts]), np.int32)
    times = 1 + np.cumsum([0, *rises])
    at, drafted = np.empty(len(drafts), np.int64), np.empty(len(drafts), np.int32)
    counts = np.empty(1, np.int64)
    n = try_and_set(
        available, right, np.array([0, len(drafts)]), 0, times, start, 4, 16, 4, 3, at, drafted, counts
    )
    naive, p, steps = Naive(len(rises), start), 0, []
    while p < len(drafts):
        k = min(naive.window, int(available[p]))
        emitted = min(int(right[p]), k) + 1
        steps.append((p, k))
        naive.told(emitted, float(times[k]))
        p += emitted
    assert counts.tolist() == [n]
    assert list(zip(at[:n].tolist(), drafted[:n].tolist(), strict=True)) == steps


def test_speculation_that_does_not_pay_is_off_for_ever_longer():
    """No draft is ever right: trials of 4 steps, between them 16, 32, 64, 128 and 128 plain ones."""
    size = 600
    at, drafted = np.empty(size, np.int64), np.empty(size, np.int32)
    nothing = np.zeros(size, np.int32)
    try_and_set(
        nothing + 5, nothing, np.array([0, size]), 0, np.array([1.0, 1.2, 1.4, 1.6]),
        *(3, 4, 16, 4, 3), at, drafted, np.empty(1, np.int64),
    )  # fmt: skip
    tried = np.flatnonzero(drafted)
    assert set(drafted[tried]) == {3}
    begins = tried[np.diff(tried, prepend=-2) > 1]
    assert begins.tolist() == [0, 20, 56, 124, 256, 388, 520]
