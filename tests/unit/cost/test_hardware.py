from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.cost.hardware import Hardware, Link, hardware, hardware_names
from breakeven.errors import UsageError

LINK = Link("x", 1.0, {2: ((1000, 10.0), (2000, 20.0), (4000, 30.0))})
MEASURED = [name for name in hardware_names() if (link := hardware(name).link) and link.all_reduce_us]
VALUES = [field.name for field in fields(Hardware) if field.name not in ("name", "sources", "note")]


@pytest.mark.parametrize("name", hardware_names())
def test_every_value_has_its_source(name: str):
    device = hardware(name)
    given = {value for value in VALUES if getattr(device, value) is not None}
    if device.link and device.link.all_reduce_us:
        given.add("all_reduce_us")
    assert set(device.sources) == given
    assert all(len(source) > 10 for source in device.sources.values())


@pytest.mark.parametrize("name", hardware_names())
def test_values_are_of_their_order(name: str):
    device = hardware(name)
    assert 100 < device.bandwidth_gb_per_s < 20_000
    assert device.memory_gib is None or 16 <= device.memory_gib <= 1024
    peaks = [n for n in (device.bf16_tflops, device.fp8_tflops, device.fp4_tflops) if n is not None]
    assert peaks == sorted(peaks)


def test_what_is_not_verified_says_so():
    assert hardware("h100-sxm").unverified() == ()
    assert "bandwidth_gb_per_s" in hardware("h20").unverified()


def test_an_unknown_name_lists_what_is_known():
    with pytest.raises(UsageError, match=r"'h100': did you mean h\w+-sxm\? There are .*rtx-pro-6000-ws"):
        hardware("h100")


@pytest.mark.parametrize(
    ("n_bytes", "expected"), [(1, 10), (1000, 10), (1500, 15), (2000, 20), (3000, 25), (4000, 30), (6000, 40)]
)
def test_all_reduce_between_points_and_beyond(n_bytes: int, expected: float):
    assert LINK.all_reduce_s(n_bytes, 2) == pytest.approx(expected * 1e-6)


def test_nothing_is_made_up_for_a_count_of_devices_that_was_not_measured():
    assert LINK.all_reduce_s(1000, 3) is None
    assert Link("x", 1.0).all_reduce_s(1000, 2) is None


def test_all_reduce_of_the_seed_experiment():
    """NCCL over PCIe among eight: a message of one token of Kimi, and of six."""
    link = hardware("rtx-pro-6000-ws").link
    assert link is not None
    one, six = link.all_reduce_s(14_336, 8), link.all_reduce_s(6 * 14_336, 8)
    assert one == pytest.approx(27e-6, rel=0.05)
    assert six == pytest.approx(37e-6, rel=0.05)


@pytest.mark.parametrize("name", MEASURED)
def test_curves_ascend_in_bytes(name: str):
    link = hardware(name).link
    assert link is not None
    for curve in link.all_reduce_us.values():
        sizes = [n_bytes for n_bytes, _us in curve]
        assert sizes == sorted(set(sizes)) and len(sizes) >= 2
        assert all(1 < us < 20_000 for _n, us in curve)


@given(st.floats(1, 1e8))
def test_all_reduce_is_never_free(n_bytes: float):
    for name in MEASURED:
        link = hardware(name).link
        assert link is not None
        for devices in link.all_reduce_us:
            seconds = link.all_reduce_s(n_bytes, devices)
            assert seconds is not None and seconds > 1e-6
