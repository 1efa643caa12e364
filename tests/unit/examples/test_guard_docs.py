"""What the guard's chapters tell to type is taken as it stands, and does what they say."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from breakeven.cli import breakeven
from breakeven.guard.config import CONFIG, MODE, GuardConfig, config_of
from breakeven.guard.reasons import Reason
from breakeven.guard.settings import GuardSettings
from breakeven.guard.simulate.next_steps import TRIAL
from breakeven.servers.systemd.effective import EffectiveUnit

ROOT = Path(__file__).parents[3]
CHAPTERS = ("README.md", "docs/guard.md", "docs/guard-vllm.md")
IN_VLLM = (ROOT / "docs/guard-vllm.md").read_text()
ONE_PERCENT = GuardConfig(GuardSettings(epsilon=0.01))
CONTINUED = re.compile(r"\\\n\s*")


def commands() -> list[str]:
    """Of breakeven, in the blocks."""
    text = "\n".join(CONTINUED.sub("", (ROOT / name).read_text()) for name in CHAPTERS)
    blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S))
    lines = [line.removeprefix("$ ") for line in blocks.splitlines()]
    return [line for line in lines if line.startswith("breakeven ")]


@pytest.mark.parametrize("line", dict.fromkeys(commands()))
def test_the_options_of_each_command_are_known(line: str):
    words = shlex.split(line, comments=True)[1:]
    command: click.Command = breakeven
    while isinstance(command, click.Group):
        command, words = command.commands[words[0]], words[1:]
    command.make_context(command.name, words)


def test_what_vllm_config_prints_is_shown():
    told = CliRunner().invoke(breakeven, ["guard", "vllm-config"], catch_exceptions=False)
    assert f"```\n{told.stdout}```" in IN_VLLM


def test_the_variable_of_each_kind_of_server():
    """Each way to set it in a trial comes to ε = 1 %."""
    rows = re.findall(r"^\| `[a-z]+:.*\|$", IN_VLLM, re.M)
    assert len(rows) == 6
    shell = re.findall(rf"{CONFIG}='([^']*)'", "\n".join(rows))
    assert len(shell) == 3
    (unit,) = re.findall(r"`(Environment=[^`]*)`", rows[1])
    (entry,) = re.findall(rf"`({CONFIG}: [^`]*)`", rows[3])
    of_unit = EffectiveUnit({"x.conf": f"[Service]\n{unit}\n".encode()}).environment[CONFIG]
    for text in (*shell, of_unit, yaml.safe_load(entry)[CONFIG]):
        assert config_of({CONFIG: text}) == ONE_PERCENT


def test_each_field_has_a_row():
    table = IN_VLLM.partition("| field |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", "\n".join(row.split("|")[1] for row in table.splitlines()[2:])))
    own = {one.name for one in fields(GuardConfig)} - {"settings"}
    assert named == own | {one.name for one in fields(GuardSettings)}


def test_ray_hands_the_variables_on():
    (prefix,) = re.findall(r"VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY=(\S+)", IN_VLLM)
    assert CONFIG.startswith(prefix) and MODE.startswith(prefix)


def test_the_readme_quotes_the_example():
    """Line for line, so that a new output is copied to both."""
    readme = (ROOT / "README.md").read_text()
    (quoted,) = [block for block in re.findall(r"```text\n(.*?)```", readme, re.S) if "guard, ε" in block]
    whole = (ROOT / "docs/guard.md").read_text()
    assert all(part in whole for part in quoted.split("…\n"))


def test_the_example_ends_with_commands_that_are_printed():
    whole = (ROOT / "docs/guard.md").read_text()
    assert f"Next: breakeven guard vllm-config\nNext: {TRIAL}\n(… are your own options" in whole


def test_a_vllm_without_speculation_is_not_told_to_count_it():
    """It does not start then: the two flags are left out together, with the last two lines."""
    recipe = (ROOT / "docs/vllm-on-cpu.md").read_text().partition("HF_HUB_OFFLINE=1")[2].partition("\n```")[0]
    *baseline, counted, speculative = recipe.split(" \\\n")
    assert counted.split()[0] == "--per-request-spec-decode-metrics" and len(counted.split()) == 2
    assert speculative.split()[0] == "--speculative-config"
    assert "spec" not in " ".join(baseline).replace("--enable-per-request-metrics", "")


def test_each_reason_has_a_row():
    table = IN_VLLM.partition("### Reasons")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.M)
    assert rows == [(reason.name.lower(), reason.sentence) for reason in Reason]


@pytest.mark.parametrize("name", CHAPTERS)
def test_links_lead_somewhere(name: str):
    for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / name).read_text()):
        path, _, anchor = target.partition("#")
        if path.startswith("https:"):
            continue
        page = (ROOT / name).parent / path if path else ROOT / name
        assert page.exists(), target
        heads = re.findall(r"^#+ (.*)$", page.read_text(), re.M) if anchor else []
        slugs = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
        assert not anchor or anchor in slugs, target
