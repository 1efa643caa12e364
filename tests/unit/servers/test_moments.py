from datetime import UTC, datetime, timedelta

import pytest

from breakeven.servers.moments import seconds_since


@pytest.mark.parametrize("ending", ["Z", ".1Z", ".123456789Z", "+00:00"])
def test_moments_of_docker_and_kubernetes_are_read(ending):
    then = datetime.now(UTC) - timedelta(hours=1)
    seconds = seconds_since(then.strftime("%Y-%m-%dT%H:%M:%S") + ending)
    assert 3599 <= seconds <= 3660


@pytest.mark.parametrize("moment", [None, "", "0001-01-01T00:00:00Z"])
def test_never_is_no_moment(moment):
    assert seconds_since(moment) is None


def test_a_clock_that_is_ahead_gives_no_negative_time():
    assert seconds_since("2999-01-01T00:00:00Z") == 0.0
