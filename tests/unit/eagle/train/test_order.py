"""What an optimizer step sees follows from the seed and the step, for any number of processes."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from breakeven.eagle.train.order import Order

orders = st.builds(
    Order,
    documents=st.integers(1, 40),
    batch=st.integers(1, 12),
    epochs=st.integers(1, 4),
    seed=st.integers(0, 1 << 62),
)


@given(orders)
def test_an_epoch_sees_every_document_once(order: Order):
    each = order.steps_per_epoch
    assert each == math.ceil(order.documents / order.batch)
    for epoch in range(order.epochs):
        steps = range(epoch * each, (epoch + 1) * each)
        seen = [place for step in steps for place in order.batch_after(step)]
        assert sorted(seen) == list(range(order.documents))
        assert {order.epoch(step) for step in steps} == {epoch}


@given(orders, st.integers(1, 5), st.data())
def test_processes_share_a_batch_and_go_on_anywhere(order: Order, processes: int, data: st.DataObject):
    done = data.draw(st.integers(0, order.steps))
    streams = [list(order.stream(done, rank, processes)) for rank in range(processes)]
    for step in range(done, order.steps):
        dealt = [order.dealt_after(step, rank, processes) for rank in range(processes)]
        assert sorted(place for part in dealt for place in part) == sorted(order.batch_after(step))
        for rank, part in enumerate(dealt):
            assert streams[rank][: len(part)] == part
            del streams[rank][: len(part)]
    assert not any(streams)


def test_epochs_and_seeds_differ():
    order = Order(documents=50, batch=50, epochs=2, seed=0)
    assert order.batch_after(0) != order.batch_after(1)
    assert order.batch_after(0) != Order(50, 50, 2, seed=1).batch_after(0)
