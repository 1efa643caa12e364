"""A trial through the real docker and a real daemon; containers are made, and removed again."""

import json
import os
import subprocess
import uuid
from typing import Any

import pytest

from breakeven.servers.docker.lifecycle import DockerLifecycle
from breakeven.servers.host import LocalHost
from breakeven.servers.operation_kinds import operation_from_json

IMAGE = os.environ.get("BREAKEVEN_DOCKER_IMAGE")
pytestmark = pytest.mark.skipif(
    IMAGE is None, reason="BREAKEVEN_DOCKER_IMAGE names no image, such as busybox, whose sleep may be run"
)
MOMENTARY = ("State", "NetworkSettings", "RestartCount", "Mounts")


def docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True).stdout.strip()


def inspected(name: str) -> dict[str, Any]:
    return json.loads(docker("container", "inspect", name))[0]


def lasting(name: str) -> dict[str, Any]:
    return {key: value for key, value in inspected(name).items() if key not in MOMENTARY}


def volumes(name: str) -> dict[str, str]:
    """By where they are mounted."""
    return {mount["Destination"]: mount["Name"] for mount in inspected(name)["Mounts"]}


@pytest.fixture
def name():
    name = f"breakeven-test-{uuid.uuid4().hex[:8]}"
    settings = ("--network", "none", "--restart", "always", "--memory", "64m", "--shm-size", "32m")
    variables = ("--env", "HF_TOKEN=hf_notarealtoken", "--env", "NCCL_P2P_DISABLE=1", "--stop-timeout", "2")
    volumes = ("--volume", "/anonymous", "--tmpfs", "/scratch", "--label", "team=infra")
    run = ("run", "--detach", "--name", name, *settings, *variables, *volumes, "--entrypoint", "sleep")
    docker(*run, str(IMAGE), "1000")
    yield name
    for left in (name, f"{name}-breakeven-baseline"):
        subprocess.run(["docker", "rm", "--force", "--volumes", left], capture_output=True, check=False)


async def test_there_and_back(name: str):
    host = LocalHost()
    before, mounted = lasting(name), volumes(name)
    life = DockerLifecycle(host, name)
    await life.check_rights()
    found = await life.inspect()
    assert "hf_notarealtoken" not in repr(found)
    entries = []
    for operation in life.change(found, (*found.argv, "1")):
        entries.append(json.dumps(operation.to_json()))
        await operation.do(host)
    await life.restart()
    assert (await life.state()).condition == "running"
    copied = inspected(name)
    assert copied["Config"]["Cmd"] == ["1000", "1"]
    assert copied["Config"]["Env"] == before["Config"]["Env"]
    changed = {k for k, v in before["HostConfig"].items() if copied["HostConfig"][k] != v}
    assert changed == {"RestartPolicy"}
    assert volumes(name) == mounted
    for _ in range(2):
        for entry in reversed(entries):
            await operation_from_json(json.loads(entry)).undo(host)
        assert lasting(name) == before
        assert inspected(name)["State"]["Running"]
