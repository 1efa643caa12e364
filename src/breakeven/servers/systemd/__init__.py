"""Servers that are systemd services: units read and changed by systemd's own rules."""

from __future__ import annotations

from breakeven.servers.systemd.lifecycle import SystemdLifecycle
from breakeven.servers.systemd.second_unit import SecondUnit

__all__ = ["SecondUnit", "SystemdLifecycle"]
