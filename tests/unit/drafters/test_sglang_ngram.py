import os
import subprocess
import sys

import numpy as np
import pytest

from breakeven.drafters.base import Limits, Tree
from breakeven.drafters.registry import make_drafter
from breakeven.drafters.sglang_ngram import SglangNgram, SglangNgramSettings
from breakeven.errors import UsageError
from breakeven.replay.steps import accepted_of

ROOM = 2**31 - 1


def ids(*tokens: int) -> np.ndarray:
    return np.array(tokens, np.int32)


def start(prompt: np.ndarray, max_tokens: int | None = None, **settings: object) -> SglangNgram:
    drafter = SglangNgram(SglangNgramSettings(**settings))
    drafter.begin(prompt, Limits(max_tokens))
    return drafter


def real(draft: Tree) -> list[int]:
    return [token for token in draft.tokens if token]


def test_every_step_drafts_eleven_tokens_the_padding_last_and_acceptable():
    drafter = start(ids(7, 8))
    draft = drafter.propose(ids(7, 8, 9), ROOM)
    assert draft == Tree((0,) * 11, (-1,) * 11)
    assert accepted_of(draft, [0, 0, 0]) == 1
    assert accepted_of(draft, [5]) == 0


def test_a_step_inserts_what_it_drafted_from_only_after_its_draft():
    drafter = start(ids(1, 2, 3, 1))
    assert real(drafter.propose(ids(1, 2, 3, 1, 2), ROOM)) == []
    assert real(drafter.propose(ids(1, 2, 3, 1, 2, 3), ROOM)) == [1, 2]


def test_a_prompt_is_indexed_only_in_the_window_of_the_first_step():
    drafter = start(ids(5, 6, *range(20, 40)))
    drafter.propose(ids(5, 6, *range(20, 41)), ROOM)
    assert real(drafter.propose(ids(5, 6, *range(20, 41), 5), ROOM)) == []
    assert real(drafter.propose(ids(5, 6, *range(20, 41), 5, 30), ROOM))[:3] == [31, 32, 33]


def test_bfs_takes_the_most_recent_and_prob_the_most_frequent():
    seen = ids(1, 2, 9, 1, 2, 9, 1, 3, 9)
    first = {}
    for match_type in ("BFS", "PROB"):
        drafter = start(seen, match_type=match_type, k=1)
        drafter.propose(seen, ROOM)
        first[match_type] = drafter.propose(np.append(seen, ids(7, 1)), ROOM).tokens
    assert first == {"BFS": (3,), "PROB": (2,)}


def test_requests_share_the_trie():
    drafter = start(ids(1, 2, 3))
    drafter.propose(ids(1, 2, 3, 4), ROOM)
    drafter.begin(ids(8, 2), Limits())
    assert real(drafter.propose(ids(8, 2, 3), ROOM)) == [4]


@pytest.mark.parametrize(
    ("overlap", "max_tokens", "learned"),
    [(True, None, [6]), (True, 3, [6]), (True, 2, []), (False, None, [])],
)
def test_the_step_more_of_the_overlap_schedule(overlap: bool, max_tokens: int | None, learned: list[int]):
    drafter = start(ids(4), max_tokens, overlap=overlap)
    drafter.propose(ids(4, 5), ROOM)
    drafter.end(ids(4, 5, 6))
    drafter.begin(ids(9), Limits())
    assert real(drafter.propose(ids(9, 5), ROOM)) == learned


def test_a_full_trie_forgets_the_least_recently_used():
    drafter = start(ids(1), max_trie_depth=2, capacity=4, overlap=False)
    drafter.propose(ids(1, 2), ROOM)
    drafter.begin(ids(3), Limits())
    drafter.propose(ids(3, 4), ROOM)
    drafter.begin(ids(1), Limits())
    assert real(drafter.propose(ids(1), ROOM)) == []
    drafter.begin(ids(3), Limits())
    assert real(drafter.propose(ids(3), ROOM)) == []


def test_an_empty_context_drafts_padding():
    assert real(start(ids()).propose(ids(), ROOM)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"match_type": "DFS"},
        {"min_bfs_breadth": 5, "max_bfs_breadth": 4},
        {"capacity": 18},
        {"k": -1},
        {"max_trie_depth": 1},
    ],
)
def test_settings_that_the_engine_refuses(wrong: dict[str, object]):
    with pytest.raises(UsageError, match="type"):
        make_drafter("sglang-ngram", wrong)


def test_flags():
    assert make_drafter("sglang-ngram", {}).flags() == (
        "--speculative-algorithm NGRAM --speculative-num-draft-tokens 12"
    )
    assert make_drafter("sglang-ngram", {"match_type": "PROB", "overlap": False}).flags() == (
        "--speculative-algorithm NGRAM --speculative-num-draft-tokens 12"
        " --speculative-ngram-match-type PROB --disable-overlap-schedule"
    )


SCRIPT = """
import numpy as np
from breakeven.drafters.compiler import COMPILED
from breakeven.drafters.base import Limits
from breakeven.drafters.registry import make_drafter
text = np.random.default_rng(3).integers(0, 4, 160).astype(np.int32)
for match_type in ("BFS", "PROB"):
    drafter = make_drafter("sglang-ngram", {"match_type": match_type, "capacity": 90})
    drafter.begin(text[:5], Limits())
    print([drafter.propose(text[:end], 99) for end in range(6, 160)])
print(COMPILED)
"""


def test_without_compiled_loops_the_drafts_are_the_same():
    printed = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT],
            env={**os.environ, "BREAKEVEN_COMPILED": compiled},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for compiled in ("0", "1")
    ]
    assert printed[0][-1] == "False"
    assert printed[0][:-1] == printed[1][:-1]
