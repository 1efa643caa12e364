from pathlib import Path

import numpy as np

from tests.unit.guard.simulate.texts import looked


def longest_match(ids: list[int], least: int, most: int) -> tuple[int, int]:
    """Length of the longest of the last n tokens that stood before, and where it first ended; 0 without."""
    for n in range(min(most, len(ids) - 1), least - 1, -1):
        for end in range(n, len(ids)):
            if ids[end - n : end] == ids[-n:]:
                return n, end
    return 0, 0


def test_every_position_has_the_longest_match_its_draft_and_what_is_right_of_it(tmp_path: Path):
    found = looked(tmp_path, least_match=2, most_match=6, most_tokens=5)
    at = 0
    for ids, prompt in found.tokens.contexts():
        every = ids.tolist()
        for end in range(prompt, len(every)):
            n, first_end = longest_match(every[:end], 2, 6)
            assert found.length[at] == n
            if n:
                draft = every[first_end:end][:5]
                rest = every[end:]
                right = next((i for i, (a, b) in enumerate(zip(draft, rest, strict=False)) if a != b), None)
                right = min(len(draft), len(rest)) if right is None else right
                assert found.period[at] == end - first_end
                assert (found.available[at], found.agreed[at]) == (len(draft), right)
            else:
                assert (found.available[at], found.agreed[at]) == (0, 0)
            at += 1
    assert at == len(found.length) and np.count_nonzero(found.length) > 100


def test_the_first_token_of_an_output_is_the_prefills(tmp_path: Path):
    assert looked(tmp_path).first == 1
