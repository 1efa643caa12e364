"""Twins of llama.cpp's drafters that learn, as slow and as plain as they can be: all is scanned anew."""

from __future__ import annotations

from collections.abc import Sequence


class MapTwin:
    """ngram-map-k (min_hits None) and ngram-map-k4v: each place is asked for its n-gram again every time."""

    def __init__(self, n: int, m: int, min_hits: int | None) -> None:
        self.n, self.m, self.min_hits = n, m, min_hits
        self.bucket_of: dict[int, int] = {}
        self.keys: list[dict[str, object]] = []
        self.indexed = self.prompt_tokens = self.checked = 0
        self.used: dict[str, int] | None = None

    def begin(self, prompt: Sequence[int]) -> None:
        if len(prompt) < self.checked:
            first = self.prompt_tokens
            if first > len(prompt):
                first = max(len(prompt) - self.n - self.m, 0)
            self.bucket_of = {bucket: place for bucket, place in self.bucket_of.items() if place < first}
            self.indexed = max(first - 1, 0)
            self.keys = [key for key in self.keys if key["place"] < first]
            if self.min_hits is not None:
                for key in self.keys:
                    key["values"] = [value for value in key["values"] if value["place"] < first]
                self.keys = [key for key in self.keys if key["values"]]
        self.prompt_tokens = self.checked = len(prompt)

    def propose(self, context: Sequence[int], room: int) -> list[int]:
        n, m, known = self.n, self.m, len(context) - 1
        self.used = None
        if known < 2 * n + m:
            return []
        self.checked = known
        last = known - n - m - 1
        new = [*range(self.prompt_tokens - n - m - 1, self.indexed, -1)]
        new += range(last, max(self.prompt_tokens, self.indexed), -1)
        wanted = context[-n:]
        found = self.bucket_of.get(self._hash(wanted), 0)
        if not (0 < found < last and context[found : found + n] == wanted):
            found = next((place for place in new if context[place : place + n] == wanted), 0)
        for place in new:
            self.bucket_of.setdefault(self._hash(context[place : place + n]), place)
        self.indexed = max(self.indexed, last)
        if found == 0:
            return []
        limit = self._limit(context, wanted, found)
        return context[found + n : found + n + min(limit, room)]

    def accept(self, accepted: int) -> None:
        if self.used is not None:
            self.used["most"] = accepted

    def _hash(self, ngram: Sequence[int]) -> int:
        found = 0
        for token in ngram:
            found = (found * 2654435761 + token) % 2**32
        return found % 262144

    def _limit(self, context: Sequence[int], wanted: Sequence[int], found: int) -> int:
        same = (key for key in self.keys if context[key["place"] : key["place"] + self.n] == wanted)
        key = next(same, None)
        if key is None:
            values = [] if self.min_hits is not None else [{"place": found, "most": self.m, "seen": 0}]
            key = {"place": found, "hits": 0, "counted": 0, "values": values}
            self.keys.append(key)
        key["hits"] = min(key["hits"] + 1, 16380)
        if self.min_hits is None:
            self.used = key["values"][0]
            return self.used["most"]
        if key["hits"] < self.min_hits:
            return 0
        self._count(key, context, wanted, found)
        ranked = sorted(key["values"], key=lambda value: -value["seen"])
        if ranked[0]["seen"] < 2 * sum(value["seen"] for value in ranked[1:]):
            return 0
        self.used = ranked[0]
        return self.used["most"]

    def _count(self, key: dict, context: Sequence[int], wanted: Sequence[int], found: int) -> None:
        for place in range(key["counted"], found + 1):
            if context[place : place + self.n] != wanted:
                continue
            follows = context[place + self.n : place + self.n + self.m]
            for value in key["values"]:
                if context[value["place"] : value["place"] + self.m] == follows:
                    value["seen"] = min(value["seen"] + 1, 16380)
                    break
            else:
                if len(key["values"]) < 4:
                    key["values"].append({"place": place + self.n, "most": self.m, "seen": 1})
        key["counted"] = found


class ModTwin:
    """ngram-mod with each n-gram hashed anew in 64 bits."""

    def __init__(self, n: int, n_min: int, n_max: int) -> None:
        self.n, self.n_min, self.n_max = n, n_min, n_max
        self.table: dict[int, int] = {}
        self.learned = self.drafted = self.low = 0

    def begin(self, prompt: Sequence[int]) -> None:
        self.learned = 0
        if len(prompt) >= self.n:
            self._learn(prompt)
            if len(self.table) / 4194304 > 0.25:
                self.table = {}

    def propose(self, context: Sequence[int], room: int) -> list[int]:
        known = context[:-1]
        self.drafted = 0
        if len(known) < self.n:
            return []
        if self.learned + 32 < len(known):
            self._learn(known)
        draft: list[int] = []
        while len(draft) < self.n_max:
            token = self.table.get(self._hash([*context, *draft][-self.n :]))
            if token is None:
                if len(draft) < self.n_min:
                    return []
                break
            draft.append(token)
        self.drafted = len(draft)
        return draft[:room]

    def accept(self, accepted: int) -> None:
        self.low = self.low + 1 if accepted / self.drafted < 0.25 else 0
        if self.low == 5:
            self.table, self.low, self.learned = {}, 0, 0

    def _learn(self, known: Sequence[int]) -> None:
        for i in range(self.learned, len(known) - self.n):
            self.table[self._hash(known[i : i + self.n])] = known[i + self.n]
        self.learned = len(known) - self.n

    def _hash(self, ngram: Sequence[int]) -> int:
        found = 0
        for token in ngram:
            found = (found * 6364136223846793005 + token) % 2**64
        return found % 4194304


class CacheTwin:
    """ngram-cache as the list of all (n-gram, next token) pairs that were learned."""

    def __init__(self) -> None:
        self.pairs: dict[tuple[int, ...], list[int]] = {}
        self.learned = 0

    def begin(self, prompt: Sequence[int]) -> None:
        pass

    def accept(self, accepted: int) -> None:
        pass

    def propose(self, context: Sequence[int], room: int) -> list[int]:
        new = context[self.learned :]
        for n in (1, 2, 3, 4):
            for i in range(n, len(new)):
                self.pairs.setdefault(tuple(new[i - n : i]), []).append(new[i])
        self.learned = max(self.learned, len(context))
        draft: list[int] = []
        while len(context) >= 2 and len(draft) < min(8, room):
            token = self._next([*context, *draft])
            if token is None:
                break
            draft.append(token)
        return draft

    def _next(self, context: Sequence[int]) -> int | None:
        for n, times, percent in ((4, 1, 50), (3, 1, 50), (2, 2, 50), (1, 2, 66)):
            follows = self.pairs.get(tuple(context[-n:]), []) if n <= len(context) else []
            if len(follows) < max(times, 1):
                continue
            latest_first = sorted(set(follows), key=follows.index, reverse=True)
            best = max(latest_first, key=follows.count)
            if 100 * follows.count(best) >= percent * len(follows):
                return best
        return None
