"""The lines of an undo journal, as far as they say who writes it and what was found."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from breakeven.secrets import masked_argv
from breakeven.servers.lifecycle import Found
from breakeven.servers.state_folder import name_of
from breakeven.servers.undo_record import VERSION, Verification


def opened_entry(
    kind: str, found: Found, verify: Verification | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Of the environment the names; of what was read the fingerprint: values of secrets are in both."""
    return {
        "entry": "opened",
        "version": VERSION,
        "id": name_of(found.target),
        "target": found.target,
        "kind": kind,
        "node": platform.node(),
        "at": now(),
        "holder": holder(),
        "found": {
            "argv": list(masked_argv(found.argv)),
            "environment": sorted(found.environment),
            "sha256": {name: _digest(text) for name, text in found.evidence.items()},
        },
        "verify": None if verify is None else asdict(verify),
        "options": dict(options),
    }


def holder() -> dict[str, Any]:
    """This process."""
    return {"pid": os.getpid(), "began": now()}


def now() -> str:
    """ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
