"""DockerLifecycle against containers that a real daemon described."""

import asyncio
import copy
import json
import math

import pytest

from breakeven.errors import ServerError, UsageError
from breakeven.servers.docker import container as container_module
from breakeven.servers.docker.container import CANDIDATE_OF, Container
from breakeven.servers.docker.lifecycle import DockerLifecycle
from breakeven.servers.fake.docker import FakeDocker
from breakeven.servers.operation_kinds import operation_from_json
from breakeven.servers.operations import Completed
from tests.unit.servers.containers import apply, candidate, container, golden, killed_everywhere, put_back

HOST_NETWORK, NETWORK = "docker-host-network.json", "docker-network.json"


def docker(name: str = HOST_NETWORK, **settings: object) -> FakeDocker:
    return FakeDocker(golden(name), **settings)


def lifecycle(fake: FakeDocker, name: str = "vllm") -> DockerLifecycle:
    return DockerLifecycle(fake.host, name)


async def test_a_container_is_read_whole():
    found = await lifecycle(docker()).inspect()
    assert found.target == "docker:vllm"
    assert found.argv[:3] == ("vllm", "serve", "Qwen/Qwen3-30B-A3B")
    assert found.argv[-2:] == ("--port", "8000")
    assert found.environment["NCCL_P2P_DISABLE"] == "1"
    assert found.warnings == ()


async def test_no_secret_is_kept_anywhere():
    fake = docker()
    journal: list[str] = []
    found = await apply(lifecycle(fake), fake.host, journal)
    assert "hf_notarealtoken" not in repr(found) + repr(journal) + repr(fake.host.commands)
    assert "hf_notarealtoken" in repr(fake.find("vllm"))


async def test_looking_touches_nothing():
    fake = docker()
    before = fake.snapshot()
    life = lifecycle(fake)
    found = await life.inspect()
    life.change(found, candidate(found))
    life.diff(found, candidate(found))
    await life.state()
    assert fake.snapshot() == before


@pytest.mark.parametrize("name", [HOST_NETWORK, NETWORK])
async def test_the_copy_differs_in_its_command_only(name):
    fake = docker(name)
    before = container(name)
    found = await apply(lifecycle(fake), fake.host, [])
    copied = fake.find("vllm")
    assert copied["State"]["Running"]
    assert copied["Config"]["Entrypoint"] == before["Config"]["Entrypoint"]
    assert tuple(copied["Config"]["Cmd"]) == candidate(found)[2:]
    own = ("Cmd", "Labels", "Hostname", "Domainname")
    kept = {key: value for key, value in before["Config"].items() if key not in own}
    assert {key: copied["Config"][key] for key in kept} == kept
    settings = {k: v for k, v in before["HostConfig"].items() if k not in ("RestartPolicy", "Mounts")}
    assert {key: copied["HostConfig"][key] for key in settings} == settings


async def test_the_users_container_waits_under_another_name():
    fake = docker()
    identity = fake.find("vllm")["Id"]
    await apply(lifecycle(fake), fake.host, [])
    aside = fake.find("vllm-breakeven-baseline")
    assert aside["Id"] == identity
    assert not aside["State"]["Running"]
    assert not any("rm" in command for command in fake.host.commands)


async def test_a_volume_without_a_name_is_mounted_again():
    fake = docker(NETWORK)
    await apply(lifecycle(fake), fake.host, [])
    volumes = {
        mount["Destination"]: mount["Name"] for mount in container(NETWORK)["Mounts"] if "Name" in mount
    }
    assert fake.find("vllm")["HostConfig"]["Mounts"] == [
        {"Type": "volume", "Source": volumes["/cache"], "Target": "/cache", "ReadOnly": False}
    ]


async def test_a_network_gets_what_was_asked_of_it_and_no_alias_of_the_old_id():
    fake = docker(NETWORK)
    await apply(lifecycle(fake), fake.host, [])
    end = fake.find("vllm")["NetworkSettings"]["Networks"]["back"]
    assert end == {"IPAMConfig": {"IPv4Address": "10.9.0.7"}, "Aliases": ["api", "llm1"]}


async def test_a_hostname_is_kept_where_the_user_chose_it():
    fake = docker(NETWORK)
    await apply(lifecycle(fake), fake.host, [])
    assert fake.find("vllm")["Config"]["Hostname"] == "llm1"


async def test_a_hostname_of_dockers_own_is_new():
    described = golden(NETWORK)
    described[0]["Config"]["Hostname"] = described[0]["Id"][:12]
    fake = FakeDocker(described)
    await apply(lifecycle(fake), fake.host, [])
    copied = fake.find("vllm")
    assert copied["Config"]["Hostname"] == copied["Id"][:12]


async def test_gpus_are_asked_for_again():
    described = golden("docker-gpus-created.json")
    described[0]["State"].update(Status="running", Running=True)
    fake = FakeDocker(described)
    await apply(lifecycle(fake, "gpu"), fake.host, [])
    requests = fake.find("gpu")["HostConfig"]["DeviceRequests"]
    assert requests == described[0]["HostConfig"]["DeviceRequests"]
    assert requests[0]["Capabilities"] == [["gpu"]]


async def test_the_image_stays_though_its_name_moved_on():
    fake = docker()
    fake.images = {"old": container(HOST_NETWORK)["Image"], "vllm/vllm-openai:v0.11.0": "sha256:new"}
    await apply(lifecycle(fake), fake.host, [])
    assert fake.find("vllm")["Config"]["Image"] == container(HOST_NETWORK)["Image"]


@pytest.mark.parametrize(("policy", "of_copy"), [("always", "no"), ("unless-stopped", "unless-stopped")])
async def test_after_a_reboot_one_server_starts(policy, of_copy):
    described = golden(HOST_NETWORK)
    described[0]["HostConfig"]["RestartPolicy"]["Name"] = policy
    fake = FakeDocker(described)
    await apply(lifecycle(fake), fake.host, [])
    assert fake.find("vllm")["HostConfig"]["RestartPolicy"]["Name"] == of_copy


async def test_a_winner_that_is_kept_starts_as_the_container_did_and_that_one_no_more():
    fake, journal = docker(), []
    before = fake.snapshot()
    life = lifecycle(fake)
    found = await life.inspect()
    for operation in life.keep(found, candidate(found)):
        journal.append(json.dumps(operation.to_json()))
        await operation.do(fake.host)
    policies = {
        name: settings["RestartPolicy"]["Name"] for name, (_, _, settings, _) in fake.snapshot().items()
    }
    assert policies == {"/vllm": "always", "/vllm-breakeven-baseline": "no"}
    await put_back(fake.host, journal)
    assert fake.snapshot() == before


async def test_undone_it_is_as_before_and_twice_does_no_harm():
    fake = docker()
    before = fake.snapshot()
    journal: list[str] = []
    await apply(lifecycle(fake), fake.host, journal)
    assert fake.snapshot() != before
    for _ in range(2):
        await put_back(fake.host, journal)
        assert fake.snapshot() == before


def test_killed_anywhere_it_is_put_back():
    def start():
        fake = docker()
        return lifecycle(fake), fake.host

    assert killed_everywhere(start, lambda fake: fake.snapshot()) == 2 * 9


async def test_a_container_of_somebody_else_under_that_name_is_not_removed():
    fake = docker()
    journal: list[str] = []
    await apply(lifecycle(fake), fake.host, journal)
    del fake.find("vllm")["Config"]["Labels"][CANDIDATE_OF]
    with pytest.raises(UsageError, match="neither"):
        await put_back(fake.host, journal)
    assert fake.find("vllm") is not None


async def test_a_refused_creation_says_why_and_shows_no_secret():
    fake = docker()
    life = lifecycle(fake)
    found = await life.inspect()
    operations = life.change(found, candidate(found))
    fake.images = {}
    with pytest.raises(ServerError, match=r"HTTP 404\): No such image") as error:
        for operation in operations:
            await operation.do(fake.host)
    assert "hf_" not in str(error.value)


async def test_whether_a_copy_can_be_made_is_seen_before_anything_is_touched():
    fake = docker()
    await lifecycle(fake).check_rights()
    assert fake.snapshot() == docker().snapshot()
    fake.host.answer = lambda argv, stdin: (
        Completed(1, "", "unknown command") if "dial-stdio" in argv else fake(argv, stdin)
    )
    with pytest.raises(UsageError, match="unknown command"):
        await lifecycle(fake).check_rights()


async def test_the_diff_shows_what_changes():
    life = lifecycle(docker())
    found = await life.inspect()
    changed = [line for line in life.diff(found, candidate(found)).splitlines() if line.startswith("+")]
    assert changed[1:] == [
        "+--speculative-config",
        '+{"method":"ngram","num_speculative_tokens":5,"prompt_lookup_min":2,"prompt_lookup_max":4}',
    ]


async def test_a_secret_on_the_command_line_is_not_shown():
    described = golden(HOST_NETWORK)
    described[0]["Config"]["Cmd"] += ["--api-key", "sk-mine"]
    fake = FakeDocker(described)
    life = lifecycle(fake)
    found = await life.inspect()
    journal = [json.dumps(operation.to_json()) for operation in life.change(found, candidate(found))]
    assert "sk-mine" not in life.diff(found, candidate(found)) + repr(journal) + repr(found.evidence)


async def test_a_shells_line_is_changed_in_place():
    described = golden(HOST_NETWORK)
    described[0]["Config"].update(Entrypoint=["/bin/bash", "-c"], Cmd=["exec vllm serve m --port 8000 2>&1"])
    fake = FakeDocker(described)
    found = await apply(lifecycle(fake), fake.host, [])
    assert found.argv == ("vllm", "serve", "m", "--port", "8000")
    config = fake.find("vllm")["Config"]
    assert config["Entrypoint"] == ["/bin/bash", "-c"]
    assert config["Cmd"][0].startswith("exec vllm serve m --port 8000 --speculative-config '{")
    assert config["Cmd"][0].endswith("}' 2>&1")


def changed(**sections: dict) -> FakeDocker:
    described = copy.deepcopy(golden(HOST_NETWORK))
    for section, values in sections.items():
        described[0][section] |= values
    return FakeDocker(described, api_version="1.43")


REFUSED = [
    (changed(HostConfig={"AutoRemove": True}), "--rm"),
    (changed(State={"Running": False, "Status": "exited"}), "docker start vllm"),
    (changed(State={"Paused": True, "Status": "paused"}), "does not run"),
    (
        changed(
            Config={
                "Labels": {
                    "com.docker.compose.project": "llm",
                    "com.docker.compose.service": "vllm",
                    "com.docker.compose.project.config_files": "/srv/compose.yaml,/srv/gpu.yaml",
                }
            }
        ),
        "--server compose:/srv/compose.yaml#vllm",
    ),
    (
        changed(Config={"Labels": {"io.kubernetes.pod.name": "x", "io.kubernetes.pod.namespace": "llm"}}),
        "--server kubernetes:llm/deployment/NAME",
    ),
    (changed(Config={"Labels": {"com.docker.swarm.service.name": "x"}}), "attached:URL"),
    (changed(NetworkSettings={"Networks": {"a": {}, "b": {}}}), "several networks"),
    (changed(Config={"Entrypoint": ["sh", "-c"], "Cmd": ["vllm serve $(cat model)"]}), "list of words"),
]


@pytest.mark.parametrize(("fake", "what"), REFUSED, ids=[what for _, what in REFUSED])
async def test_what_cannot_be_put_back_is_not_begun(fake, what):
    with pytest.raises(UsageError) as error:
        await lifecycle(fake).inspect()
    assert what in str(error.value)


async def test_there_is_no_such_container():
    with pytest.raises(UsageError, match="docker ps"):
        await lifecycle(docker(), "other").inspect()


async def test_an_earlier_trial_is_recovered_first():
    fake = docker()
    await apply(lifecycle(fake), fake.host, [])
    with pytest.raises(UsageError, match="breakeven recover"):
        await lifecycle(fake).inspect()
    with pytest.raises(UsageError, match="does not run"):
        await lifecycle(fake, "vllm-breakeven-baseline").inspect()


async def test_what_the_copy_lacks_is_warned_of():
    described = golden(HOST_NETWORK)
    described[0]["SizeRw"] = 61_000_000_000
    described[0]["HostConfig"]["PortBindings"] = {"8000/tcp": [{"HostIp": "", "HostPort": ""}]}
    found = await lifecycle(FakeDocker(described)).inspect()
    assert "61.0 GB" in found.warnings[0]
    assert "publish a fixed one" in found.warnings[1]


STATES = [
    ({"Status": "running", "Running": True}, 0, "running", ""),
    (
        {"Status": "running", "Running": True, "Health": {"Status": "starting"}},
        0,
        "starting",
        "health: starting",
    ),
    (
        {"Status": "running", "Running": True, "Health": {"Status": "unhealthy"}},
        0,
        "running",
        "health: unhealthy",
    ),
    (
        {"Status": "restarting", "Running": True, "Restarting": True, "ExitCode": 3},
        5,
        "failed",
        "exit code 3; Docker started it again 5 times",
    ),
    ({"Status": "exited", "OOMKilled": True, "ExitCode": 137}, 0, "failed", "OOMKilled, exit code 137"),
    ({"Status": "exited", "ExitCode": 0}, 0, "stopped", "exit code 0"),
    ({"Status": "created", "Error": "no GPU"}, 0, "failed", "no GPU"),
    ({"Status": "paused", "Running": True, "Paused": True}, 0, "stopped", "paused"),
]


@pytest.mark.parametrize(("state", "restarts", "condition", "detail"), STATES)
async def test_states(state, restarts, condition, detail):
    described = golden(HOST_NETWORK)
    described[0]["State"] |= {"Running": False, **state}
    described[0]["RestartCount"] = restarts
    now = await lifecycle(FakeDocker(described)).state()
    assert (now.condition, now.detail) == (condition, detail)


async def test_a_copy_that_docker_started_again_has_failed():
    fake = docker()
    life = lifecycle(fake)
    await apply(life, fake.host, [])
    assert (await life.state()).condition == "running"
    fake.find("vllm")["RestartCount"] = 1
    assert (await life.state()).condition == "failed"


async def test_a_container_that_docker_once_started_again_has_not():
    described = golden(HOST_NETWORK)
    described[0]["RestartCount"] = 1
    life = lifecycle(FakeDocker(described))
    await life.inspect()
    assert (await life.state()).condition == "running"


async def test_the_log_is_that_of_the_latest_start():
    fake = docker()
    await apply(lifecycle(fake), fake.host, [])
    copied = fake.find("vllm")
    fake.logs[copied["Id"]] = "INFO loading\nINFO ready"
    asked = []
    fake.host.answer = lambda argv, stdin: (asked.append(argv), fake(argv, stdin))[1]
    assert [line async for line in lifecycle(fake).logs()] == ["INFO loading", "INFO ready"]
    assert asked[-1] == ("docker", "logs", "--follow", "--since", copied["State"]["StartedAt"], "vllm")


async def undone_while_it_lasts(fake: FakeDocker, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial whose command `what` was cut off, as by a kill, and goes on in the daemon."""
    monkeypatch.setattr(container_module, "STOP_GRACE_S", 0.3)
    fake.host.lasts_s = lambda argv: 0.1 if what in argv else 0.0
    journal: list[str] = []
    trial = asyncio.ensure_future(apply(lifecycle(fake), fake.host, journal))
    while not fake.host.under_way:  # noqa: ASYNC110  the fake tells no event
        await asyncio.sleep(0)
    trial.cancel()
    await asyncio.wait({trial})
    fake.host.lasts_s = lambda argv: 0.0
    await put_back(fake.host, journal)
    while fake.host.under_way:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)


async def test_a_stop_that_goes_on_after_it_was_cut_off_is_waited_for(monkeypatch):
    fake = docker()
    before = fake.snapshot()
    await undone_while_it_lasts(fake, "stop", monkeypatch)
    assert fake.snapshot() == before and fake.find("vllm")["State"]["Running"]
    assert sum("start" in command for command in fake.host.commands) == 1


async def test_a_container_that_has_stopped_is_started_at_once(monkeypatch):
    monkeypatch.setattr(container_module, "STOP_GRACE_S", 3600.0)
    fake, journal = docker(), []
    await apply(lifecycle(fake), fake.host, journal)
    await put_back(fake.host, journal)
    assert fake.find("vllm")["State"]["Running"]


@pytest.mark.parametrize("where", ["before the look", "after the look"])
async def test_a_copy_that_is_made_after_whoever_asked_was_cut_off_goes(where):
    """It may take the name just before the container is to have it again."""
    fake = docker()
    before, journal = fake.snapshot(), []
    found = await lifecycle(fake).inspect()
    life = lifecycle(fake)
    await life.inspect()
    stop, aside, copied = life.change(found, candidate(found))
    for operation in (stop, aside, copied):
        journal.append(json.dumps(operation.to_json()))
        if operation is not copied:
            await operation.do(fake.host)
    if where == "after the look":
        await copied.undo(fake.host)
        journal.pop()
    await copied.do(fake.host)
    await put_back(fake.host, journal)
    assert fake.snapshot() == before


async def test_a_name_that_somebody_else_took_is_left_to_them():
    fake, journal = docker(), []
    await apply(lifecycle(fake), fake.host, journal)
    fake.find("vllm")["Config"]["Labels"].pop(CANDIDATE_OF)
    with pytest.raises(UsageError, match="neither the one that was there"):
        await operation_from_json(json.loads(journal[1])).undo(fake.host)
    assert fake.find("vllm") is not None


@pytest.mark.parametrize(("given", "grace_s"), [(None, 10.0), (600, 600.0), (-1, math.inf)])
def test_how_long_a_container_may_take_to_stop(monkeypatch, given, grace_s):
    monkeypatch.setattr(container_module, "STOP_GRACE_S", 10.0)
    described = golden(HOST_NETWORK)[0]
    described["Config"]["StopTimeout"] = given
    assert Container(described).stop_grace_s == grace_s


async def test_the_image_of_both_sides_is_the_same_by_its_id():
    fake = docker()
    life = lifecycle(fake)
    before = await life.made_of()
    assert before == {"image": container(HOST_NETWORK)["Image"]}
    fake.images = {"old": container(HOST_NETWORK)["Image"], "vllm/vllm-openai:v0.11.0": "sha256:new"}
    await apply(life, fake.host, [])
    assert await life.made_of() == before


async def test_what_comes_back_is_named_and_may_crash_on_the_way():
    fake = docker()
    life = lifecycle(fake)
    await life.inspect()
    named = f"container vllm, {container(HOST_NETWORK)['Id'][:12]}"
    now = await life.returning_state()
    assert (now.condition, now.detail) == ("running", named)
    fake.find("vllm")["State"].update(Status="restarting", Restarting=True, ExitCode=1)
    fake.find("vllm")["RestartCount"] = 3
    assert (await life.state()).condition == "failed"
    now = await life.returning_state()
    assert now.condition == "starting"
    assert now.detail == f"{named}: exit code 1; Docker started it again 3 times"
    fake.find("vllm")["State"].update(Status="exited", Restarting=False, Running=False)
    assert (await life.returning_state()).condition == "failed"
