"""What the command does where no terminal is."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_streams_that_are_closed(closed: str):
    command = f"{sys.executable} -m breakeven models describe llama-3.1-8b {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
