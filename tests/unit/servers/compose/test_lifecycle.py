"""ComposeLifecycle against a Compose project in memory."""

import json
from typing import Any

import pytest

from breakeven.errors import ServerError, UsageError
from breakeven.servers.compose.lifecycle import ComposeLifecycle, override_text
from breakeven.servers.compose.project import Project
from breakeven.servers.fake.docker import FakeDocker
from tests.unit.servers.containers import GOLDEN, apply, candidate, container, killed_everywhere, put_back

FILE, GPU, ENV = "/srv/llm/compose.yaml", "/srv/llm/gpu.yaml", "/srv/llm/prod.env"
IMAGE = "vllm/vllm-openai:v0.11.0"
OVERRIDE = "/srv/llm/compose.breakeven-vllm.yaml"
PROJECT = Project("llm", "/srv/llm", (FILE, GPU), (), "vllm")


def project(**services: Any) -> FakeDocker:
    """A project of two files that is up, with a service that is not looked at."""
    text = json.loads((GOLDEN / "compose.json").read_text())
    text["services"]["vllm"] |= services
    files = {FILE: json.dumps(text).encode(), GPU: b'{"services": {"vllm": {"shm_size": "16g"}}}'}
    images = {IMAGE: container("docker-host-network.json")["Image"], "redis:8": "sha256:redis"}
    fake = FakeDocker(files=files, images=images)
    for service in ("vllm", "redis"):
        fake(Project("llm", "/srv/llm", (FILE, GPU), (), service).up(override=False), None)
    return fake


def lifecycle(fake: FakeDocker, service: str = "vllm", file: str = FILE) -> ComposeLifecycle:
    return ComposeLifecycle(fake.host, file, service)


def state_of(fake: FakeDocker) -> Any:
    """Of the project: files, and what runs; Compose gives a container made anew a new id."""
    running = {name: (config, runs) for name, (_, config, _, runs) in fake.snapshot().items()}
    running = {
        name: ({k: v for k, v in c.items() if k != "Hostname"}, runs) for name, (c, runs) in running.items()
    }
    return fake.host.snapshot(), running


async def test_a_service_is_read_with_the_files_it_was_started_with():
    fake = project()
    found = await lifecycle(fake).inspect()
    assert found.target == f"compose:{FILE}#vllm"
    assert found.argv[:3] == ("vllm", "serve", "Qwen/Qwen3-30B-A3B")
    assert "${HOME}/chat.jinja" in found.argv
    assert found.environment == {"HF_TOKEN": "***", "NCCL_P2P_DISABLE": "1"}
    assert found.evidence["files"] == f"{FILE}, {GPU}"


async def test_our_file_holds_the_command_and_nothing_else():
    fake = project()
    found = await apply(lifecycle(fake), fake.host, [])
    held = json.loads(fake.host.files[OVERRIDE])
    command = [word.replace("$", "$$") for word in candidate(found)[2:]]
    assert held == {"services": {"vllm": {"command": command}}}
    assert fake.host.modes[OVERRIDE] == 0o600
    assert tuple(fake.find("llm-vllm-1")["Config"]["Cmd"]) == candidate(found)[2:]


async def test_an_entrypoint_is_changed_where_the_change_is_in_it():
    assert json.loads(override_text("s", ("vllm", "serve", "--k", "1"), ("vllm", "serve", "m"))) == {
        "services": {"s": {"entrypoint": ["vllm"], "command": ["serve", "m"]}}
    }


async def test_nothing_else_is_started_pulled_or_built():
    fake = project()
    before = fake.find("llm-redis-1")
    await apply(lifecycle(fake), fake.host, [])
    ups = [command for command in fake.host.commands if "up" in command]
    for up in ups:
        assert up[-6:] == ("--detach", "--no-deps", "--no-build", "--pull", "never", "vllm")
    assert fake.find("llm-redis-1") == before


async def test_environment_files_of_the_start_are_given_again():
    given = Project("llm", "/srv/llm", (FILE,), (ENV,), "vllm").argv("config")
    assert given == (
        *("docker", "compose", "--project-name", "llm", "--project-directory", "/srv/llm"),
        *("--env-file", ENV, "--file", FILE, "config"),
    )


async def test_undone_it_is_as_before_and_twice_does_no_harm():
    fake = project()
    before, journal = state_of(fake), []
    await apply(lifecycle(fake), fake.host, journal)
    assert state_of(fake) != before
    for _ in range(2):
        await put_back(fake.host, journal)
        assert state_of(fake) == before


def test_killed_anywhere_it_is_put_back():
    def start():
        fake = project()
        fake.host.commands.clear()
        return lifecycle(fake), fake.host

    assert killed_everywhere(start, state_of) == 2 * 7


async def test_a_restart_without_a_change_leaves_it_alone():
    fake = project()
    identity = fake.find("llm-vllm-1")["Id"]
    life = lifecycle(fake)
    await life.inspect()
    await life.restart()
    assert fake.find("llm-vllm-1")["Id"] == identity


async def test_files_that_say_something_else_by_now_are_refused():
    fake = project()
    fake.host.files[GPU] = b'{"services": {"vllm": {"shm_size": "32g"}}}'
    with pytest.raises(UsageError, match="would change more than the command"):
        await lifecycle(fake).inspect()


async def test_an_image_that_moved_on_is_refused():
    fake = project()
    fake.images[IMAGE] = "sha256:new"
    with pytest.raises(UsageError, match="another one by now"):
        await lifecycle(fake).inspect()


async def test_a_file_of_ours_that_is_left_is_refused():
    fake = project()
    await apply(lifecycle(fake), fake.host, [])
    with pytest.raises(UsageError, match="breakeven recover"):
        await lifecycle(fake).inspect()


@pytest.mark.parametrize(("service", "file"), [("other", FILE), ("vllm", "/srv/other/compose.yaml")])
async def test_no_such_service_runs(service, file):
    with pytest.raises(UsageError, match="no container runs service"):
        await lifecycle(project(), service, file).inspect()


async def test_several_containers_are_refused():
    fake = project()
    second = {**fake.find("llm-vllm-1"), "Id": "2", "Name": "/llm-vllm-2"}
    fake.containers.append(second)
    with pytest.raises(UsageError, match="2 containers"):
        await lifecycle(fake).inspect()


async def test_a_stopped_service_is_refused():
    fake = project()
    await fake.host.run(("docker", "stop", "llm-vllm-1"))
    with pytest.raises(UsageError, match="does not run"):
        await lifecycle(fake).inspect()


async def test_what_is_written_outside_volumes_is_warned_of():
    fake = project()
    fake.find("llm-vllm-1")["SizeRw"] = 61_000_000_000
    found = await lifecycle(fake).inspect()
    assert "that is lost" in found.warnings[0]


async def test_change_comes_after_inspect():
    life = lifecycle(project())
    found = await lifecycle(project()).inspect()
    with pytest.raises(ServerError, match="inspect first"):
        life.change(found, found.argv)


async def test_state_and_log_are_the_containers():
    fake = project()
    fake.logs[fake.find("llm-vllm-1")["Id"]] = "INFO ready"
    assert (await lifecycle(fake).state()).condition == "running"
    assert [line async for line in lifecycle(fake).logs()] == ["INFO ready"]


async def test_it_is_not_brought_back_as_something_else():
    """Compose takes variables from the shell: in another one `up` may start another server."""
    fake = project()
    journal: list[str] = []
    await apply(lifecycle(fake), fake.host, journal)
    files = dict(fake.host.files)
    fake.host.files[GPU] = b'{"services": {"vllm": {"shm_size": "32g"}}}'
    running = state_of(fake)
    with pytest.raises(UsageError, match=r"would not come back as it was found.*breakeven recover"):
        await put_back(fake.host, journal)
    assert state_of(fake) == running
    fake.host.files[GPU] = files[GPU]
    await put_back(fake.host, journal)
    assert OVERRIDE not in fake.host.files


async def test_a_folder_that_may_not_be_written_to_is_told_before_anything_is_measured():
    fake = project()
    life = lifecycle(fake)
    await life.inspect()
    await life.check_rights()
    fake.read_only.add("/srv/llm")
    with pytest.raises(UsageError, match=r"may not write to /srv/llm: add --sudo"):
        await life.check_rights()


async def test_an_image_whose_tag_moved_between_the_sides_is_known_by_its_id():
    fake = project()
    life = lifecycle(fake)
    before = await life.made_of()
    found = await life.inspect()
    fake.images[IMAGE] = "sha256:moved"
    for operation in life.change(found, candidate(found)):
        await operation.do(fake.host)
    await life.restart()
    assert before == {"image": container("docker-host-network.json")["Image"]}
    assert await life.made_of() == {"image": "sha256:moved"}


async def test_what_comes_back_is_named_and_may_be_made_anew_on_the_way():
    fake = project()
    life = lifecycle(fake)
    await life.inspect()
    made = fake.find("llm-vllm-1")
    now = await life.returning_state()
    assert (now.condition, now.detail) == ("running", f"container llm-vllm-1, {made['Id'][:12]}")
    fake.containers.remove(made)
    now = await life.returning_state()
    assert (now.condition, now.detail) == ("starting", "service vllm has 0 containers now")
    again = {**made, "Id": "f" * 64, "RestartCount": 2}
    fake.containers.append(again)
    assert (await life.state()).condition == "failed"
    assert (await life.returning_state()).condition == "running"
    fake.containers.append(made)
    assert (await life.returning_state()).detail == "service vllm has 2 containers now"
