"""What compiled loops give without numba."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def digest_in_plain_python(module: str, *given: str) -> Any:
    """What `digest` of a test's module gives there, as JSON has it."""
    words = ", ".join(map(repr, given))
    code = f"import json; from {module} import digest; print(json.dumps(digest({words})))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "BREAKEVEN_COMPILED": "0"},
        cwd=Path(__file__).parents[2],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(found.stdout)
