import pytest

from breakeven.errors import UsageError
from breakeven.replay.records import Replay
from breakeven.replay.run import replay_source
from tests.unit.replay.small import COUNT_UP, CountUp, Held, recorded


class Learning(CountUp):
    """Drafts only from the second request on."""

    name = "learning"
    learns = True
    seen = 0

    def propose(self, context, room):
        return super().propose(context, room) if self.seen else []

    def end(self, context) -> None:
        self.seen += 1


class Stepping(CountUp):
    name = "stepping"
    steps_matter = True


LEARNING = f"{__name__}:Learning"
STEPPING = f"{__name__}:Stepping"


def many(n: int = 40) -> Held:
    return Held(
        [recorded([i % 5], [i % 7 + j % 4 for j in range(1 + i % 9)], str(i), "xy"[i % 2]) for i in range(n)]
    )


def counts(found: Replay):
    return [
        (r.id, r.counters.steps, r.counters.accepted_tokens, r.histogram.tolist()) for r in found.requests
    ]


def test_a_replay_says_what_it_used():
    found = replay_source(Held([recorded([4], [5, 6, 7, 0])]), COUNT_UP, {"k": 3})
    assert found.settings == {"k": 3, "after": 0}
    assert (found.drafter, found.flags, found.first_token) == (COUNT_UP, "", "prefill")
    assert found.total.counters.steps == 1
    assert found.total.tokens_per_step == 3


def test_the_record_can_be_stepped_through_from_its_first_token():
    source = Held([recorded([4], [5, 6, 7, 0])])
    found = replay_source(source, COUNT_UP, {"k": 3}, first_token="replayed")
    assert (found.total.counters.steps, found.total.emitted_tokens) == (1, 4)


def test_cores_change_nothing_but_the_time():
    one = replay_source(many(), COUNT_UP, {}, jobs=1)
    two = replay_source(many(), COUNT_UP, {}, jobs=2)
    assert counts(one) == counts(two)
    assert one.total.counters == two.total.counters
    assert list(one.by_category) == list(two.by_category)


def test_a_ray_cluster_changes_nothing_either():
    pytest.importorskip("ray")
    one = replay_source(many(), COUNT_UP, {}, jobs=1)
    assert counts(replay_source(many(), COUNT_UP, {}, ray="local")) == counts(one)


def test_a_drafter_that_learns_sees_the_requests_in_their_order():
    source = Held([recorded([4], [5, 6, 7], str(i)) for i in range(3)])
    found = replay_source(source, LEARNING, {}, jobs=2)
    assert [r.counters.drafts for r in found.requests] == [0, 1, 1]


def test_a_drafter_that_learns_cannot_be_spread_over_a_cluster():
    with pytest.raises(UsageError, match="learns from one request for the next: leave out --ray"):
        replay_source(many(), LEARNING, {}, ray="local")


def test_accepted_lengths_are_given_for_each_position_if_asked_for():
    source = Held([recorded([4], [5, 6, 0, 1]), recorded([1], [2])])
    found = replay_source(source, COUNT_UP, {}, per_position=True)
    lengths = [r.accepted_lengths.tolist() for r in found.requests]
    assert lengths == [[2, 1, 0, 1], [1]]
    assert replay_source(many(), COUNT_UP, {}).requests[0].accepted_lengths is None


def test_where_steps_matter_a_position_alone_has_no_draft():
    with pytest.raises(UsageError, match=r"depend on where earlier steps ended.*leave out --per-position"):
        replay_source(many(), STEPPING, {}, per_position=True)


def test_what_was_left_out_is_counted():
    found = replay_source(Held([recorded([4], [5, 6]), recorded([4], [])]), COUNT_UP, {})
    assert found.skipped == {"empty output": 1}
    assert found.total.requests == 1


def test_a_record_without_requests_is_refused():
    with pytest.raises(UsageError, match=r"held holds no request to replay \(empty output: 1\)"):
        replay_source(Held([recorded([4], [])]), COUNT_UP, {})


def test_progress_adds_up_to_the_requests():
    done: list[int] = []
    replay_source(many(25), COUNT_UP, {}, progress=done.append)
    assert sum(done) == 25


def test_settings_are_checked_before_anything_is_read():
    with pytest.raises(UsageError, match="k is from 1 to 1048576, not -1: type --set k=2"):
        replay_source(Held([]), COUNT_UP, {"k": -1})
    with pytest.raises(UsageError, match=r"has no setting q: it has k, after"):
        replay_source(Held([]), COUNT_UP, {"q": 1})


def test_acceptance_that_nobody_recorded_is_refused_with_its_form():
    with pytest.raises(UsageError, match="acc_len"):
        replay_source(many(3), "recorded", {"source": "eagle"}, jobs=1)


def test_settings_that_surprise_are_said_beside_the_counts():
    found = replay_source(many(3), "llamacpp-ngram-simple", {"n": 4, "k": 2}, jobs=1)
    assert any("k 2 is below n 4" in warning for warning in found.warnings)
    assert found.total.counters.drafts == 0


def test_a_replay_says_whose_the_drafter_is_and_whether_it_learns():
    own, learning = (replay_source(many(2), name, {}, jobs=1) for name in (COUNT_UP, LEARNING))
    assert (own.engine, own.learns, learning.learns) == ("own", False, True)
    suffix = replay_source(many(2), "vllm-suffix", {"max_cached_requests": 0}, jobs=1)
    assert (suffix.engine, suffix.learns) == ("vllm", False)
