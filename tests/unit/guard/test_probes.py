"""When one draft is due for what it tells."""

from __future__ import annotations

from breakeven.guard.probes import FIRST_REST, MOST_REST, Probes


def due_at(probes: Probes, since: int, most: int = 1) -> int:
    """The first step from `since` on that has a probe due."""
    return next(step for step in range(since, since + 2 * MOST_REST) if probes.due(step, 1, most))


def test_sizes_never_told_come_first_the_smallest_of_them():
    probes = Probes(100, known=0)
    assert probes.due(FIRST_REST - 1, 1, 10) == 0
    step = FIRST_REST
    for rung in (1, 2, 4, 8):
        assert probes.due(step, 1, 10) == rung
        probes.told(step, 1, rung, surprised=False)
        assert probes.due(step + 1, 1, 10) == 0
        step += FIRST_REST
    assert probes.due(FIRST_REST, 1, 0) == 0


def test_then_the_one_told_longest_ago_of_those_that_can_be_paid():
    probes = Probes(100, known=0)
    for step, drafted in ((1, 8), (2, 1), (3, 4), (4, 2)):
        probes.told(step, 1, drafted, surprised=False)
    assert probes.due(FIRST_REST + 4, 1, 10) == 8
    assert probes.due(FIRST_REST + 4, 1, 7) == 1
    assert probes.due(FIRST_REST + 4, 1, 0) == 0


def test_a_measured_size_counts_as_told_at_the_start():
    probes = Probes(100, known=5)
    assert probes.due(FIRST_REST, 1, 4) == 1
    assert probes.due(FIRST_REST, 1, 10) == 8


def test_sizes_between_rungs_tell_of_the_rung_above():
    probes = Probes(100, known=0)
    probes.told(1, 1, 1, surprised=False)
    probes.told(2, 1, 2, surprised=False)
    assert probes.due(3 + FIRST_REST, 1, 4) == 4
    probes.told(3, 1, 3, surprised=False)
    assert probes.due(3 + FIRST_REST, 1, 4) == 1


def test_rests_double_while_nothing_is_new_and_begin_again_when_something_is():
    probes, step, rests = Probes(100, known=99), 0, []
    for _ in range(8):
        due = due_at(probes, step)
        rests.append(due - step)
        step = due
        probes.told(step, 1, 1, surprised=False)
    assert rests == [32, 64, 128, 256, 512, 1024, 1024, 1024]
    probes.told(step + MOST_REST, 1, 1, surprised=True)
    assert due_at(probes, step + MOST_REST) == step + MOST_REST + FIRST_REST
    probes.told(step + MOST_REST + FIRST_REST, 1, 1, surprised=False)
    probes.hurry()
    assert due_at(probes, step + MOST_REST + FIRST_REST) == step + MOST_REST + 2 * FIRST_REST


def test_drafts_made_for_their_own_sake_are_no_probes():
    probes = Probes(100, known=99)
    for step in range(1, 200):
        probes.told(step, 1, 1, surprised=False)
        assert probes.due(step, 1, 1) == 0
    assert due_at(probes, 200) == 199 + FIRST_REST


def test_no_probe_reaches_beyond_the_sizes():
    assert Probes(10, known=9).due(FIRST_REST, 9, 10) == 0
    assert Probes(10, known=9).due(FIRST_REST, 7, 10) == 1
