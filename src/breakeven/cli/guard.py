"""`breakeven guard`: speculation in a live server that cannot cost more than a set loss."""

from __future__ import annotations

import click

from breakeven.cli.guard_simulate import simulate
from breakeven.cli.guard_vllm_config import vllm_config


@click.group()
def guard() -> None:
    """Decide in every step how much to draft, and lose no more than a set share of any request's time.

    \b
    breakeven guard simulate runs/measure-20260101-120000 --calibration runs/calibrate-20260101-121500
    breakeven guard simulate outputs.jsonl --model qwen3-30b-a3b --hardware h100-sxm --html guard.html
    breakeven guard vllm-config --calibration runs/calibrate-20260101-121500
    """


guard.add_command(simulate)
guard.add_command(vllm_config)
