"""TLS contexts, one for each way of verifying."""

from __future__ import annotations

import ssl
from functools import lru_cache
from pathlib import Path

from breakeven.errors import UsageError


@lru_cache(maxsize=16)
def tls_context(verify: bool, ca_file: Path | None) -> ssl.SSLContext:
    """Raises UsageError if the CA file cannot be used."""
    try:
        context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"the CA file {ca_file} cannot be used ({error}): check --ca-file") from error
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context
