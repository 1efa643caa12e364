"""Where the callback is found in llama.cpp's defaults, and what is refused."""

from __future__ import annotations

import ctypes.util
import struct

import pytest

from breakeven.engines.llamacpp_capi import callback_offset, load
from breakeven.errors import UsageError

DEFAULTS = struct.pack(
    "<7I7i6fIfQQiiQQQ6?2xQQQ",
    *(512, 2048, 512, 1, 0, 0, 1),
    *(4, 4, 0, -1, -1, -1, -1),
    *(0, 0, -1, -1, -1, -1, 0, -1),
    *(0, 0, 1, 1, 0, 0, 0),
    *(False, True, True, True, True, False, 0, 0, 0),
)
"""llama_context_default_params of llama.cpp 0.6.0 (xllamacpp 2026.10.11549), 168 bytes."""
AT = 88


def test_the_callback_of_the_known_version() -> None:
    assert len(DEFAULTS) == 168
    assert callback_offset(DEFAULTS) == AT
    assert callback_offset(DEFAULTS + b"\xa5" * 856) == AT


@pytest.mark.parametrize(("more", "at"), [(4, AT + 8), (8, AT + 8), (12, AT + 16)])
def test_fields_put_before_it_move_it(more: int, at: int) -> None:
    padding = bytes(-more % 8)
    assert callback_offset(DEFAULTS[:16] + bytes(more) + DEFAULTS[16:AT] + padding + DEFAULTS[AT:]) == at


@pytest.mark.parametrize(
    ("at", "field"),
    [
        (0, struct.pack("<I", 4096)),
        (12, struct.pack("<I", 4)),
        (AT - 4, struct.pack("<f", 0)),
        (AT, struct.pack("<Q", 0x7F0000000000)),
        (AT + 16, struct.pack("<i", 8)),
        (104, DEFAULTS[AT - 12 : AT]),
    ],
)
def test_other_defaults_are_refused(at: int, field: bytes) -> None:
    changed = DEFAULTS[:at] + field + DEFAULTS[at + len(field) :]
    assert callback_offset(changed) is None


def test_a_library_without_the_functions_is_refused_by_its_version() -> None:
    libc = ctypes.util.find_library("c")
    if libc is None:
        pytest.skip("no C library is found by name")
    with pytest.raises(UsageError, match=r"xllamacpp 1\.2\.3, it has no llama_version: type  pip install"):
        load(libc, "1.2.3")
