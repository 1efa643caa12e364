"""Constants of multiplicative hashing in 63 bits, so that no product is negative."""

from __future__ import annotations

LOW = (1 << 63) - 1
"""Keeps the lowest 63 bits of a product."""
FACTOR = 0x1E3779B97F4A7C15
"""Odd, and near 2**61 times the golden ratio, so that the high bits of products spread (Knuth, TAOCP 6.4)."""
