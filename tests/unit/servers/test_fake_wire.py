"""However the bytes travel, they say the same."""

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven.servers.fake import Script, Wire, timeline
from breakeven.servers.fake.chunks import Chunk, chunks
from breakeven.servers.fake.reply import resolve
from breakeven.servers.fake.wire import body_writes

SCRIPT = Script(n_tokens=40, usage="always")


def spoken() -> list[Chunk]:
    reply = resolve(SCRIPT, {"prompt": "Hello"}, chat=True, index=0, model="m")
    return chunks(reply, timeline(SCRIPT, reply.n_tokens, reply.key))


def unchunked(data: bytes) -> bytes:
    out = b""
    while True:
        size, data = data.split(b"\r\n", 1)
        length = int(size, 16)
        out, data = out + data[:length], data[length + 2 :]
        if length == 0:
            return out


def payloads(data: bytes, wire: Wire) -> list[bytes]:
    if wire.transfer == "chunked":
        data = unchunked(data)
    if wire.gzip:
        data = zlib.decompress(data, 31)
    end = wire.line_end.encode()
    lines = [event.split(end) for event in data.split(end * 2)]
    found = [b"\n".join(line[6:] for line in event if line.startswith(b"data: ")) for event in lines]
    return [event.replace(b"\n", b"") for event in found if event]


wires = st.builds(
    Wire,
    events_per_write=st.integers(1, 5),
    split=st.sampled_from(["none", "utf8", "anywhere"]),
    split_gap_s=st.sampled_from([0.0, 0.004]),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    multi_line=st.booleans(),
    comments=st.booleans(),
    ping_s=st.none() | st.just(0.005),
    transfer=st.sampled_from(["chunked", "close"]),
    gzip=st.booleans(),
    done=st.booleans(),
)


@settings(deadline=None, max_examples=60)
@given(wires)
def test_every_wire_carries_the_same_events(wire: Wire):
    writes = body_writes(spoken(), wire)
    expected = [chunk.payload for chunk in spoken()] + [b"[DONE]"] * wire.done
    assert payloads(b"".join(write.data for write in writes), wire) == expected
    assert sum(write.n_tokens for write in writes) == SCRIPT.n_tokens
    dues = [write.due_s for write in writes]
    assert dues == sorted(dues)


def test_merged_events_come_when_the_last_is_due():
    writes = body_writes(spoken(), Wire(events_per_write=4))
    assert writes[1].n_tokens == 4
    assert writes[1].data.count(b"data: ") == 4
    assert writes[1].due_s == spoken()[7].due_s


def test_utf8_split_cuts_inside_a_character():
    halves = body_writes(spoken(), Wire(split="utf8", split_gap_s=0.1, transfer="close"))
    cut = 0
    for write in halves:
        try:
            write.data.decode()
        except UnicodeDecodeError:
            cut += 1
    assert cut > 10
    assert b"".join(write.data for write in halves).decode()


def test_a_broken_body_lacks_its_end():
    writes = body_writes(spoken(), Wire(), whole=False)
    data = b"".join(write.data for write in writes)
    assert b"[DONE]" not in data
    assert not data.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("ping_s", [0.001, 0.01])
def test_pings_fill_the_wait_for_the_first_token(ping_s: float):
    writes = body_writes(spoken(), Wire(ping_s=ping_s, transfer="close"))
    before = [write for write in writes if write.due_s < SCRIPT.ttft_s]
    assert len(before) == pytest.approx(SCRIPT.ttft_s / ping_s, abs=1)
    assert all(write.data == b": ping\n\n" for write in before)
