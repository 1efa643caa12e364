import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from breakeven.errors import EndpointError, UsageError
from breakeven.replay.cluster import Cluster
from breakeven.replay.workers import Here, Processes, Threads, workers


def square(x: int) -> int:
    return x * x


def slower_when_small(x: int) -> int:
    time.sleep(0.02 if x < 2 else 0)
    return x


def fail_at_three(x: int) -> int:
    if x == 3:
        raise ValueError("three")
    return x


KINDS = [Here(), Threads(2), Processes(2)]


@pytest.mark.parametrize("kind", KINDS, ids=["here", "threads", "processes"])
def test_results_come_in_the_order_of_the_items(kind):
    assert list(kind.map(square, range(20))) == [x * x for x in range(20)]
    assert list(kind.map(slower_when_small, range(6))) == list(range(6))
    assert list(kind.map(square, [])) == []


@pytest.mark.parametrize("kind", KINDS, ids=["here", "threads", "processes"])
def test_a_failure_comes_to_the_caller(kind):
    results = kind.map(fail_at_three, range(10))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)


def end_the_process(x: int) -> int:
    os._exit(1)


def test_a_worker_that_is_killed_ends_the_work_with_a_line():
    with pytest.raises(UsageError, match=r"a worker process ended .*--jobs 1"):
        list(Processes(2).map(end_the_process, range(4)))


@pytest.mark.parametrize("kind", KINDS[:2], ids=["here", "threads"])
def test_items_are_taken_only_a_few_ahead(kind):
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield 1

    results = kind.map(square, endless())
    next(results)
    results.close() if hasattr(results, "close") else None
    assert len(taken) <= 2 * 2 + 1


def test_one_job_needs_no_pool():
    assert isinstance(workers(1, threads=True), Here)
    assert isinstance(workers(2, threads=True), Threads)


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    pytest.importorskip("ray")
    return Cluster("local")


def test_a_ray_cluster_gives_the_same_in_order_until_one_fails(cluster: Cluster):
    results = cluster.map(fail_at_three, range(5))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)


def test_where_no_cluster_is_the_error_says_what_to_type():
    pytest.importorskip("ray")
    with pytest.raises(EndpointError, match=r"no Ray cluster at 127\.0\.0\.1:1 .*--ray local"):
        list(Cluster("127.0.0.1:1").map(square, range(3)))


PARENT = """
import os, sys, time
from breakeven.replay.workers import Processes

def work(x):
    os.write(2, b"at work\\n")
    time.sleep(60)

if __name__ == "__main__":
    try:
        list(Processes(2).map(work, range(2)))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.fixture
def parent(tmp_path: Path):
    """A process whose two workers are at work; they print to standard error."""
    script = tmp_path / "script.py"
    script.write_text(PARENT)
    process = subprocess.Popen(
        [sys.executable, script], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    assert [process.stderr.readline() for _ in range(2)] == ["at work\n"] * 2
    yield process
    process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent(parent: subprocess.Popen[str], number: signal.Signals):
    """The pipe is at its end once the last of them is gone."""
    parent.send_signal(number)
    assert parent.stderr is not None
    parent.communicate(timeout=20)
    assert parent.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)


def test_an_interrupted_parent_says_nothing_for_its_workers(parent: subprocess.Popen[str]):
    os.killpg(parent.pid, signal.SIGINT)
    _, said = parent.communicate(timeout=20)
    assert (parent.returncode, said) == (130, "")
