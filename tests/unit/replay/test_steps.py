from typing import Any

import numpy as np
import pytest

from breakeven.drafters.base import Draft, Limits, Table, TableDrafter, Tree
from breakeven.drafters.tokens import flat
from breakeven.errors import UsageError
from breakeven.replay.steps import accepted_of, step_through, table_of, walk_table
from tests.unit.replay.small import CountUp, CountUpSettings


def rows(steps: Any) -> list[tuple[int, int, int]]:
    return list(zip(steps.at.tolist(), steps.drafted.tolist(), steps.accepted.tolist(), strict=True))


def test_a_step_emits_what_was_accepted_and_one_token_more():
    """Prefill gives 5; then 6 7 | 8 (accepted 6 7), then 1 is wrong at once, then 2 3 to the end."""
    tokens = flat([([4], [5, 6, 7, 8, 1, 2, 3])])
    steps = step_through(CountUp(CountUpSettings(k=2)), tokens, first=1)
    assert rows(steps) == [(1, 2, 2), (4, 2, 0), (5, 2, 2)]
    assert steps.counts.tolist() == [3]


def test_without_a_prefill_token_the_first_step_stands_before_the_output():
    tokens = flat([([4], [5, 6, 7])])
    assert rows(step_through(CountUp(CountUpSettings(k=1)), tokens, first=0)) == [(0, 1, 1), (2, 1, 1)]


def test_requests_follow_one_another_in_one_count_of_positions():
    tokens = flat([([1], [9, 10]), ([1, 2], [7]), ([3], [4, 4, 4])])
    steps = step_through(CountUp(CountUpSettings(k=1)), tokens, first=1)
    assert steps.counts.tolist() == [1, 0, 2]
    assert rows(steps) == [(1, 1, 1), (4, 1, 0), (5, 1, 0)]


def test_the_last_draft_is_clipped_where_the_record_ends():
    tokens = flat([([1], [2, 3, 4])])
    assert rows(step_through(CountUp(CountUpSettings(k=9)), tokens, first=1)) == [(1, 9, 2)]


def test_a_draft_is_cut_to_the_room_that_the_engine_leaves():
    class Cramped(CountUp):
        def room(self, context_tokens: int, output_tokens: int, limits: Limits) -> int:
            return (limits.max_tokens or 99) - output_tokens - 1

    tokens = flat([([1], [2, 3, 4])], max_tokens=[3])
    assert rows(step_through(Cramped(CountUpSettings(k=9)), tokens, first=1)) == [(1, 1, 1)]
    assert rows(step_through(Cramped(CountUpSettings(k=9)), tokens, first=0)) == [(0, 2, 2)]


def test_a_drafter_is_told_of_beginnings_acceptance_and_ends():
    told: list[Any] = []

    class Telling(CountUp):
        def begin(self, prompt: Any, limits: Limits) -> None:
            told.append(("begin", prompt.tolist(), limits.max_tokens))

        def accept(self, accepted: int) -> None:
            told.append(("accept", accepted))

        def end(self, context: Any) -> None:
            told.append(("end", context.tolist()))

    step_through(Telling(CountUpSettings(k=1, after=5)), flat([([4], [5, 6, 1, 2])], max_tokens=[7]), 1)
    assert told == [("begin", [4], 7), ("accept", 1), ("end", [4, 5, 6, 1, 2])]


def failing(**methods: Any) -> CountUp:
    return type("Failing", (CountUp,), methods)(CountUpSettings())


def writing(self: Any, context: Any, room: int) -> Draft:
    context[0] = 7
    return []


def raising(*args: Any) -> Any:
    raise KeyError("lost")


def leaving(*args: Any) -> Any:
    raise SystemExit(7)


def giving(draft: Any) -> Any:
    return lambda self, context, room: draft


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"propose": writing}, r"ValueError: .*read-only"),
        ({"propose": raising}, "KeyError: 'lost'"),
        ({"propose": leaving}, "SystemExit: 7"),
        ({"begin": raising}, "KeyError"),
        ({"accept": raising}, "KeyError"),
        ({"end": raising}, "KeyError"),
        ({"propose": giving(None)}, "TypeError: propose gave None, not a list of token ids"),
        ({"propose": giving("67")}, "TypeError: propose gave '67'"),
        ({"propose": giving(["6"])}, "TypeError"),
        ({"propose": giving([6.5])}, "TypeError"),
        ({"propose": giving(7)}, "TypeError"),
        ({"propose": giving(Tree((6, 7), (-1,)))}, "ValueError: its Tree has another number of parents"),
        (
            {"propose": giving(Tree((6, 7), (1, -1)))},
            "ValueError: a node of its Tree stands before its parent",
        ),
        ({"propose": giving(Tree((6, 7), (-1, -2)))}, "ValueError"),
    ],
)
def test_what_goes_wrong_in_a_drafter_of_ones_own_is_said_in_a_line(methods: dict[str, Any], message: str):
    tokens = flat([([4], [5, 6, 7, 1])])
    with pytest.raises(UsageError, match=rf"count-up failed \({message}.*\): mend the class"):
        step_through(failing(**methods), tokens, 1)


def test_a_draft_may_be_any_sequence_of_whole_numbers():
    tokens = flat([([4], [5, 6, 7, 1])])
    for draft in ([6, 7], (6, 7), np.array([6, 7]), np.array([6, 7], np.uint16), iter([6, 7])):
        assert rows(step_through(failing(propose=giving(draft)), tokens, 1))[0] == (1, 2, 2)


def test_an_engines_own_drafter_that_fails_is_our_fault():
    with pytest.raises(KeyError, match="lost"):
        step_through(failing(engine="vllm", propose=raising), flat([([4], [5, 6])]), 1)


def test_of_a_tree_no_more_is_accepted_than_there_is_room_for():
    chain = Tree((6, 7, 8), (-1, 0, 1))
    tokens = flat([([4], [5, 6, 7, 8])])
    drafter = failing(propose=giving(chain), room=lambda self, context, output, limits: 2)
    assert rows(step_through(drafter, tokens, 1))[0] == (1, 3, 2)


@pytest.mark.parametrize(
    ("following", "accepted"),
    [([7, 9], 2), ([8, 9], 1), ([8, 6, 5], 3), ([7, 6], 1), ([9], 0), ([], 0), ([8, 6], 2)],
)
def test_of_a_tree_the_path_that_the_output_takes_is_accepted(following: list[int], accepted: int):
    tree = Tree(tokens=(7, 8, 9, 6, 5), parents=(-1, -1, 0, 1, 3))
    assert accepted_of(tree, following) == accepted


def test_a_table_drafts_at_every_position_whatever_the_steps():
    tokens = flat([([4], [5, 6, 1, 2]), ([7], [8])])
    table = table_of(CountUp(CountUpSettings(k=2, after=2)), tokens)
    assert table.drafted.tolist() == [2, 2, 2, 0, 2]
    assert table.accepted.tolist() == [2, 1, 0, 0, 1]


def test_walking_a_table_takes_the_same_steps():
    rng = np.random.default_rng(0)
    requests = [
        (rng.integers(0, 4, 3).tolist(), rng.integers(0, 4, n).tolist()) for n in (1, 2, 30, 9, 1, 50)
    ]
    tokens = flat(requests)
    for first in (0, 1):
        for k in (1, 2, 5):
            drafter = CountUp(CountUpSettings(k=k, after=1))
            walked = walk_table(table_of(drafter, tokens), tokens, first)
            stepped = step_through(drafter, tokens, first)
            assert rows(walked) == rows(stepped)
            assert walked.counts.tolist() == stepped.counts.tolist()


def test_emitted_tokens_are_the_output_whatever_is_accepted():
    rng = np.random.default_rng(1)
    lengths = [1, 5, 40, 3]
    tokens = flat([([0], rng.integers(0, 3, n).tolist()) for n in lengths])
    accepted = np.minimum(rng.integers(0, 4, sum(lengths)), 3).astype(np.int32)
    for r, end in enumerate(tokens.positions[1:]):
        for p in range(int(tokens.positions[r]), int(end)):
            accepted[p] = min(accepted[p], end - p)
    steps = walk_table(Table(accepted, accepted), tokens, 0)
    request = np.repeat(np.arange(4), steps.counts)
    ends = np.append(steps.at[1:], tokens.positions[-1])
    assert np.array_equal(
        np.minimum(steps.accepted + 1, tokens.positions[request + 1] - steps.at), ends - steps.at
    )


def tabling(drafted: Any, accepted: Any) -> Any:
    methods = {
        "name": "tabling",
        "Config": CountUpSettings,
        "propose": giving([]),
        "table": lambda self, tokens: Table(np.array(drafted), np.array(accepted)),
    }
    return type("Tabling", (TableDrafter,), methods)(CountUpSettings())


@pytest.mark.parametrize(
    ("drafted", "accepted"),
    [
        ([1, 1], [0, 0]),
        ([1, 1, 1], [-1, 0, 0]),
        ([0, 0, 0], [1, 0, 0]),
        ([9, 9, 9], [0, 0, 2]),
        ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
    ],
)
def test_a_table_that_cannot_be_is_refused(drafted: list[int], accepted: list[int]):
    with pytest.raises(UsageError, match=r"tabling failed \(ValueError: its Table .*mend the class"):
        step_through(tabling(drafted, accepted), flat([([4], [5, 6, 7])]), 1)


def test_a_table_of_ones_own_is_walked():
    assert rows(step_through(tabling([0, 2, 2], [0, 2, 1]), flat([([4], [5, 6, 7])]), 1)) == [(1, 2, 2)]
