"""Hidden states on disk, beside published sizes."""

import pytest

from breakeven.eagle.plan.storage import storage_of
from tests.unit.eagle.plan.builders import data


def test_published_sizes():
    """268 MB for 8,192 tokens of Llama-8B and 13 TB for 50,000 such; about 1.6 TB with 1,024 tokens on
    average (speculators' offline tutorial); about 7 GB for 128 thousand tokens of Kimi-K2.5 (TorchSpec)."""
    long = storage_of(4096, data(50_000, 8192.0), None)
    assert long.per_sample.estimate == pytest.approx(268e6, rel=0.01)
    assert long.whole.estimate == pytest.approx(13.4e12, rel=0.01)
    assert storage_of(4096, data(50_000, 1024.0), None).whole.estimate == pytest.approx(1.6e12, rel=0.05)
    kimi = storage_of(7168, data(1, 128e3), None)
    assert kimi.per_token == 57_344
    assert kimi.whole.estimate == pytest.approx(7.3e9, rel=0.01)


def test_samples_that_a_disk_holds():
    assert storage_of(4096, data(), None).samples_that_fit is None
    found = storage_of(4096, data(10, 1000.0), 32_768 * 1000 * 7)
    assert found.samples_that_fit is not None
    assert found.samples_that_fit.estimate == pytest.approx(7)
