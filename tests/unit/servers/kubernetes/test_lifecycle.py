"""KubernetesLifecycle against workloads as the API server gives them."""

import json
from typing import Any

import pytest

from breakeven.errors import ServerError, UsageError
from breakeven.servers.fake.kubernetes import FakeCluster
from breakeven.servers.kubernetes import lifecycle as module
from breakeven.servers.kubernetes.lifecycle import KubernetesLifecycle
from breakeven.servers.kubernetes.workload import Workload
from breakeven.servers.operations import Completed
from tests.unit.servers.containers import apply, candidate, golden, killed_everywhere, put_back

SHELL = "kubernetes-deployment-shell.json"
SIDECAR = "kubernetes-deployment-sidecar.json"
STATEFUL = "kubernetes-statefulset.json"
ALL = (SHELL, SIDECAR, STATEFUL)


def cluster(name: str = SHELL, change: Any = None, **settings: Any) -> FakeCluster:
    workload = golden(name)
    if change is not None:
        change(workload)
    return FakeCluster(workload, **settings)


def lifecycle(fake: FakeCluster, **settings: Any) -> KubernetesLifecycle:
    return KubernetesLifecycle(fake.host, "llm", fake.resource, **settings)


def served(fake: FakeCluster, index: int = 0) -> dict[str, Any]:
    return fake.workload["spec"]["template"]["spec"]["containers"][index]


async def test_a_shells_line_is_read_and_changed_in_place():
    fake = cluster(SHELL)
    before = served(fake)["args"][0]
    found = await apply(lifecycle(fake), fake.host, [])
    assert found.argv[:3] == ("vllm", "serve", "Qwen/Qwen3-30B-A3B")
    assert "$MODEL_NAME" in found.argv
    config = '{"method":"ngram","num_speculative_tokens":5,"prompt_lookup_min":2,"prompt_lookup_max":4}'
    assert served(fake)["args"] == [before.replace("32768", f"32768 --speculative-config '{config}'")]
    assert served(fake)["command"] == ["/bin/sh", "-c"]


async def test_arguments_alone_are_those_of_the_images_server():
    fake = cluster(SIDECAR)
    found = await apply(lifecycle(fake), fake.host, [])
    assert found.argv[:4] == ("vllm", "serve", "--model", "Qwen/Qwen3-30B-A3B")
    assert tuple(served(fake, 1)["args"]) == candidate(found)[2:]
    assert "command" not in served(fake, 1)


async def test_a_command_alone_is_changed_as_a_whole():
    fake = cluster(STATEFUL)
    found = await apply(lifecycle(fake), fake.host, [])
    assert found.argv[0] == "/app/llama-server"
    assert tuple(served(fake)["command"]) == candidate(found)
    assert "args" not in served(fake)


@pytest.mark.parametrize("name", ALL)
async def test_nothing_else_is_changed(name):
    fake = cluster(name)
    before, index = fake.spec(), 1 if name == SIDECAR else 0
    await apply(lifecycle(fake), fake.host, [])
    after = fake.spec()
    for spec in (before, after):
        for field in ("args", "command"):
            spec["template"]["spec"]["containers"][index].pop(field, None)
    assert after == before


@pytest.mark.parametrize("name", ALL)
async def test_undone_it_is_as_before_and_twice_does_no_harm(name):
    fake, journal = cluster(name), []
    before = fake.spec()
    await apply(lifecycle(fake), fake.host, journal)
    assert fake.spec() != before
    for _ in range(2):
        await put_back(fake.host, journal)
        assert fake.spec() == before


@pytest.mark.parametrize("name", ALL)
def test_killed_anywhere_it_is_put_back(name):
    def start():
        fake = cluster(name)
        return lifecycle(fake), fake.host

    assert killed_everywhere(start, lambda fake: fake.spec()) == 2 * 5


async def test_one_patch_is_one_rollout():
    fake = cluster()
    generation = fake.workload["metadata"]["generation"]
    await apply(lifecycle(fake), fake.host, [])
    assert fake.workload["metadata"]["generation"] == generation + 1


@pytest.mark.parametrize("name", ALL)
async def test_no_secret_is_kept_anywhere(name):
    fake, journal = cluster(name), []
    life = lifecycle(fake)
    found = await apply(life, fake.host, journal)
    shown = repr(found.evidence) + repr(found.environment) + repr(journal) + life.diff(found, found.argv)
    assert "sk-notarealkey" not in shown + repr(fake.host.commands)


async def test_variables_from_elsewhere_have_no_value():
    found = await lifecycle(cluster()).inspect()
    hidden = {"HF_TOKEN": "(set elsewhere)", "VLLM_API_KEY": "***", "MODEL_NAME": "qwen3"}
    assert found.environment == {**hidden, "NCCL_P2P_DISABLE": "1"}


async def test_a_change_by_somebody_else_in_between_is_refused():
    fake = cluster()
    life = lifecycle(fake)
    found = await life.inspect()
    (patch,) = life.change(found, candidate(found))
    served(fake)["args"] = ["vllm serve other"]
    with pytest.raises(ServerError, match="somebody else"):
        await patch.do(fake.host)
    assert served(fake)["args"] == ["vllm serve other"]


async def test_a_change_between_look_and_patch_is_refused_by_the_cluster():
    fake = cluster()
    life = lifecycle(fake)
    found = await life.inspect()
    (patch,) = life.change(found, candidate(found))

    def meanwhile(argv, stdin):
        if "patch" in argv:
            served(fake)["args"] = ["vllm serve other"]
        return fake(argv, stdin)

    fake.host.answer = meanwhile
    with pytest.raises(ServerError, match="rejected our request"):
        await patch.do(fake.host)
    assert served(fake)["args"] == ["vllm serve other"]


async def test_undo_does_not_overwrite_what_somebody_else_wrote():
    fake, journal = cluster(), []
    await apply(lifecycle(fake), fake.host, journal)
    served(fake)["args"] = ["vllm serve other"]
    with pytest.raises(UsageError, match="recover --forget"):
        await put_back(fake.host, journal)
    assert served(fake)["args"] == ["vllm serve other"]


async def test_the_cluster_stays_the_one_that_was_looked_at():
    fake, journal = cluster(), []
    before = fake.spec()
    await apply(lifecycle(fake), fake.host, journal)
    asked = []
    fake.host.answer = lambda argv, stdin: (asked.append(argv), fake(argv, stdin))[1]
    await put_back(fake.host, journal)
    assert all(argv[:3] == ("kubectl", "--context", "gpu-cluster") for argv in asked)
    assert fake.spec() == before


async def test_without_a_cluster_the_last_line_says_why():
    tries = 'E1129 23:00:00.000000 1 memcache.go:265] "Unhandled Error" err="connection refused"\n' * 5
    why = "The connection to the server localhost:8080 was refused - did you specify the right host or port?"
    fake = cluster()
    fake.host.answer = lambda argv, stdin: Completed(1, "", f"{tries}{why}\n")
    with pytest.raises(ServerError) as raised:
        await lifecycle(fake).inspect()
    assert str(raised.value).endswith(f"failed with status 1: {why}")


async def test_in_a_pod_there_is_no_context():
    fake, journal = cluster(context=None), []
    before = fake.spec()
    await apply(lifecycle(fake), fake.host, journal)
    assert not any("--context" in command for command in fake.host.commands)
    await put_back(fake.host, journal)
    assert fake.spec() == before


async def test_the_container_is_the_one_that_runs_an_engine():
    assert (await lifecycle(cluster(SIDECAR)).inspect()).evidence["container"] == "server"


async def test_or_the_one_that_is_named():
    found = await lifecycle(cluster(SIDECAR), container="gateway").inspect()
    assert found.argv[0] == "/bin/gateway"
    with pytest.raises(UsageError, match="one of gateway, server"):
        await lifecycle(cluster(SIDECAR), container="other").inspect()


async def test_two_servers_in_a_pod_must_be_told_apart():
    def two(workload):
        containers = workload["spec"]["template"]["spec"]["containers"]
        containers.append({**containers[0], "name": "second"})

    with pytest.raises(UsageError, match="--container  and one of vllm, second"):
        await lifecycle(cluster(SHELL, two)).inspect()


def changing(*path, **values):
    def change(workload):
        held = workload
        for part in path:
            held = held[part]
        held.update(values)

    return change


POD = ("spec", "template", "spec", "containers", 0)
REFUSED = [
    (
        SHELL,
        changing("metadata", ownerReferences=[{"kind": "Model", "name": "x", "controller": True}]),
        "Model/x",
    ),
    (SHELL, changing("spec", replicas=0), "0 replicas"),
    (SHELL, changing("spec", paused=True), "kubectl rollout resume"),
    (SHELL, changing(*POD, command=None, args=None, image="registry/own:1"), "is in its image"),
    (SHELL, changing(*POD, args=["vllm serve $(cat model)"]), "list of words"),
    (STATEFUL, changing("spec", updateStrategy={"type": "OnDelete"}), "updateStrategy"),
    (
        STATEFUL,
        changing("spec", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
        "updateStrategy",
    ),
]


@pytest.mark.parametrize(("name", "change", "what"), REFUSED)
async def test_what_cannot_be_put_back_is_not_begun(name, change, what):
    with pytest.raises(UsageError, match=what.replace("(", r"\(")):
        await lifecycle(cluster(name, change)).inspect()


async def test_a_rollout_under_way_is_waited_for():
    fake = cluster()
    fake.workload["status"]["updatedReplicas"] = 0
    with pytest.raises(UsageError, match="rollout"):
        await lifecycle(fake).inspect()


async def test_rights_are_looked_at_first():
    fake = cluster()
    fake.may_patch = False
    with pytest.raises(UsageError, match="may not patch"):
        await lifecycle(fake).check_rights()


async def test_there_is_no_such_workload():
    with pytest.raises(UsageError, match="get deployments"):
        await KubernetesLifecycle(cluster().host, "llm", "deployment/other").inspect()


async def test_flags_in_the_command_of_a_container_with_arguments_are_refused():
    speculating = ["vllm", "serve", "m", "--speculative-config", '{"method":"ngram"}']
    fake = cluster(SHELL, changing(*POD, command=speculating, args=["--port", "1"]))
    life = lifecycle(fake)
    found = await life.inspect()
    with pytest.raises(UsageError, match="`args`"):
        life.change(found, candidate(found))


async def test_warnings_of_a_busy_production():
    fake = cluster(SIDECAR, scalers=golden("kubernetes-hpa.json")["items"])
    found = await lifecycle(fake).inspect()
    starts = (
        "Argo CD manages",
        "HorizontalPodAutoscaler chat",
        "chat has 2 replicas",
        "chat starts the new pod",
    )
    assert len(found.warnings) == 5
    for warning, start in zip(found.warnings, starts, strict=False):
        assert warning.startswith(start)
    assert "about 1200 s" in found.warnings[4]


async def test_a_single_replica_that_is_recreated_has_its_probe_only():
    found = await lifecycle(cluster(SHELL)).inspect()
    assert len(found.warnings) == 1
    assert "about 630 s" in found.warnings[0]


async def test_state_of_a_server_that_is_ready():
    now = await lifecycle(cluster()).state()
    assert now.condition == "running"
    assert now.since_s > 0


STATES = [
    ("OOMKilled", "failed", "OOMKilled, exit code 137; started again 2 times"),
    ("Unschedulable", "starting", "Unschedulable: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu."),
    ("ImagePull", "failed", "ImagePullBackOff: Back-off pulling image"),
]


@pytest.mark.parametrize(("name", "condition", "detail"), STATES)
async def test_states_of_a_pod(name, condition, detail):
    fake = cluster()
    statuses = {item["name"]: item["status"] for item in golden("kubernetes-pod-statuses.json")["items"]}
    fake.pods[0]["status"] = statuses[name]
    fake.workload["status"]["readyReplicas"] = 0
    now = await lifecycle(fake).state()
    assert now.condition == condition
    assert now.detail.startswith(detail)


@pytest.mark.parametrize(("name", "detail"), [(name, detail) for name, _, detail in STATES])
async def test_what_comes_back_as_it_was_found_may_crash_on_the_way(name, detail):
    """The cluster starts it again, or pulls its image again, without being asked."""
    fake = cluster()
    statuses = {item["name"]: item["status"] for item in golden("kubernetes-pod-statuses.json")["items"]}
    fake.pods[0]["status"] = statuses[name]
    fake.workload["status"]["readyReplicas"] = 0
    now = await lifecycle(fake).returning_state()
    assert now.condition == "starting"
    assert now.detail.startswith(detail)


async def test_a_pod_that_is_not_ready_shows_how_far_the_rollout_is():
    fake = cluster()
    fake.pods[0]["status"]["containerStatuses"][0]["ready"] = False
    now = await lifecycle(fake).state()
    assert (now.condition, now.detail[:24]) == ("starting", "Waiting for rollout to f")


async def test_a_pod_of_the_old_template_does_not_count():
    fake = cluster()
    old = json.loads(json.dumps(fake.pods[0]))
    served(fake)["args"] = ["vllm serve other"]
    assert (await lifecycle(fake).state()).detail == "no pod of the changed template yet"
    new = json.loads(json.dumps(old))
    new["spec"]["containers"][0]["args"] = ["vllm serve other"]
    new["metadata"]["name"] = "new"
    fake.pods = [old, new]
    assert (await lifecycle(fake).state()).condition == "running"


async def test_the_log_waits_for_the_new_pod(monkeypatch):
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    fake = cluster()
    pods, fake.pods, fake.log = fake.pods, [], "INFO ready"
    looks = []

    def answer(argv, stdin):
        if "pods" in argv:
            looks.append(argv)
            fake.pods = pods if len(looks) == 3 else []
        return fake(argv, stdin)

    fake.host.answer = answer
    assert [line async for line in lifecycle(fake).logs()] == ["INFO ready"]
    assert len(looks) == 3


async def test_an_old_pod_that_still_serves_is_no_end_of_a_rollout():
    """A URL may reach either of them."""
    fake = cluster(STATEFUL)
    assert Workload(fake.workload).rolled_out()
    fake.workload["status"]["replicas"] = 2
    assert not Workload(fake.workload).rolled_out()


EXPRESSIONS = [
    ({"key": "app", "operator": "In", "values": ["a", "b"]}, "app in (a,b)"),
    ({"key": "tier", "operator": "NotIn", "values": ["test"]}, "tier notin (test)"),
    ({"key": "gpu", "operator": "Exists"}, "gpu"),
    ({"key": "canary", "operator": "DoesNotExist"}, "!canary"),
]


async def test_pods_are_found_by_the_whole_selector():
    selector = {"matchLabels": {"z": "1", "a": "2"}, "matchExpressions": [given for given, _ in EXPRESSIONS]}
    fake = cluster(SHELL, changing("spec", selector=selector))
    life = lifecycle(fake)
    await life.inspect()
    await life.state()
    (asked,) = {command[-3] for command in fake.host.commands if "pods" in command}
    assert asked == "a=2,z=1,app in (a,b),tier notin (test),gpu,!canary"


@pytest.mark.parametrize("selector", [{}, {"matchLabels": {}}, {"matchExpressions": []}, None])
async def test_a_selector_of_nothing_is_refused(selector):
    """It would take the pods of all the namespace for its own."""
    with pytest.raises(UsageError, match="selects its pods by no label"):
        await lifecycle(cluster(SHELL, changing("spec", selector=selector))).inspect()


async def test_an_expression_of_no_known_kind_is_refused():
    selector = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}
    with pytest.raises(UsageError, match="operator 'Gt'"):
        await lifecycle(cluster(SHELL, changing("spec", selector=selector))).inspect()


@pytest.mark.parametrize(
    ("image", "policy", "warned"),
    [
        ("vllm/vllm-openai:latest", "Always", True),
        ("vllm/vllm-openai:v0.11.0", "Always", True),
        ("vllm/vllm-openai:v0.11.0", "IfNotPresent", False),
        ("vllm/vllm-openai@sha256:ab", "Always", False),
    ],
)
async def test_an_image_that_each_start_pulls_anew_may_have_moved(image, policy, warned):
    fake = cluster(SHELL, changing(*POD, image=image, imagePullPolicy=policy))
    found = await lifecycle(fake).inspect()
    assert any(f"pulls {image} anew" in warning for warning in found.warnings) is warned


async def test_the_image_of_each_side_is_known_by_its_id():
    fake = cluster(SHELL, changing(*POD, image="vllm/vllm-openai:latest", imagePullPolicy="Always"))
    life = lifecycle(fake)
    before = await life.made_of()
    fake.image_ids["vllm/vllm-openai:latest"] = "vllm/vllm-openai@sha256:0b"
    await apply(life, fake.host, [])
    assert (before, await life.made_of()) == (
        {"image": "vllm/vllm-openai:latest@sha256:0a"},
        {"image": "vllm/vllm-openai@sha256:0b"},
    )


@pytest.mark.parametrize(("image", "known"), [("a:1", None), ("a@sha256:ab", "a@sha256:ab")])
async def test_an_image_without_an_id_is_known_by_its_digest_only(image, known):
    fake = cluster(SHELL, changing(*POD, image=image))
    life = lifecycle(fake)
    del fake.pods[0]["status"]["containerStatuses"][0]["imageID"]
    assert await life.made_of() == {"image": known}
