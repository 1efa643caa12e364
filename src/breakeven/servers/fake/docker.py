"""FakeDocker: the `docker` command and its daemon in memory, as far as a trial uses them."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from breakeven.servers.fake.host import FakeHost
from breakeven.servers.operations import Completed

_NO_CONTAINER = "Error response from daemon: No such container: {}\n"
_COMPOSE = "com.docker.compose."
_OPTIONS_WITH_VALUE = ("--project-name", "--project-directory", "--env-file", "--file")


class FakeDocker:
    """Containers as `docker container inspect` shows them, which commands change. `host` runs the commands.

    A Compose file here is the JSON of one, with an image and a command for each service.
    """

    def __init__(
        self,
        containers: Iterable[Mapping[str, Any]] = (),
        images: Mapping[str, str] | None = None,
        files: dict[str, bytes] | None = None,
        api_version: str = "1.47",
    ) -> None:
        """`images`: ids by name; those of the containers are there anyway."""
        self.containers: list[dict[str, Any]] = [copy.deepcopy(dict(each)) for each in containers]
        self.images = {each["Config"]["Image"]: each["Image"] for each in self.containers} | dict(
            images or {}
        )
        self.api_version = api_version
        self.logs: dict[str, str] = {}
        """By the container's id."""
        self.host = FakeHost(self, files)
        self.read_only: set[str] = set()
        """Folders that may not be written to."""
        self._made = 0
        self._clock = 0

    def __call__(self, argv: tuple[str, ...], stdin: bytes | None) -> Completed:
        commands: dict[str, Callable[[list[str]], Completed]] = {
            "container": lambda words: self._inspect(words[-1]),
            "image": lambda words: self._image(words[-1]),
            "version": lambda words: _said(self.api_version),
            "ps": self._ps,
            "start": lambda words: self._on(words[-1], self._start),
            "stop": lambda words: self._on(words[-1], self._stop),
            "rename": lambda words: self._rename(*words),
            "update": lambda words: self._on(words[-1], lambda found: self._update(found, words[1])),
            "rm": lambda words: self._on(words[-1], self.containers.remove),
            "logs": lambda words: self._logs(words[-1]),
            "system": lambda words: self._api(stdin or b""),
            "compose": self._compose,
        }
        if argv[:2] == ("test", "-w"):
            return Completed(int(argv[2] in self.read_only), "", "")
        if argv[0] != "docker" or argv[1] not in commands:
            raise AssertionError(f"the fake has no command {argv}")
        return commands[argv[1]](list(argv[2:]))

    def snapshot(self) -> dict[str, tuple[Any, ...]]:
        """By name: id, configuration and whether it runs."""
        return {
            each["Name"]: (each["Id"], each["Config"], each["HostConfig"], each["State"]["Running"])
            for each in copy.deepcopy(self.containers)
        }

    def find(self, name: str) -> dict[str, Any] | None:
        """By id or name."""
        return next((each for each in self.containers if name in (each["Id"], each["Name"][1:])), None)

    def _on(self, name: str, act: Callable[[dict[str, Any]], object]) -> Completed:
        found = self.find(name)
        if found is None:
            return Completed(1, "", _NO_CONTAINER.format(name))
        act(found)
        return _said(name)

    def _inspect(self, name: str) -> Completed:
        found = self.find(name)
        if found is None:
            return Completed(1, "[]\n", _NO_CONTAINER.format(name))
        return _said(json.dumps([found]))

    def _image(self, name: str) -> Completed:
        if name not in self.images:
            return Completed(1, "\n", f"Error response from daemon: No such image: {name}\n")
        return _said(self.images[name])

    def _ps(self, words: list[str]) -> Completed:
        wanted = [word.removeprefix("label=").split("=", 1) for word in words if word.startswith("label=")]
        found = (
            each["Id"]
            for each in self.containers
            if all((each["Config"]["Labels"] or {}).get(name) == value for name, value in wanted)
        )
        return _said("\n".join(found))

    def _start(self, container: dict[str, Any]) -> None:
        if not container["State"]["Running"]:
            container["State"] = {
                **container["State"],
                "Status": "running",
                "Running": True,
                "ExitCode": 0,
                "StartedAt": self._now(),
            }

    def _stop(self, container: dict[str, Any]) -> None:
        container["State"] = {
            **container["State"],
            "Status": "exited",
            "Running": False,
            "ExitCode": 0,
            "FinishedAt": self._now(),
        }

    def _update(self, container: dict[str, Any], policy: str) -> None:
        container["HostConfig"]["RestartPolicy"] = {"Name": policy, "MaximumRetryCount": 0}

    def _rename(self, name: str, new: str) -> Completed:
        container = self.find(name)
        if container is None:
            return Completed(1, "", _NO_CONTAINER.format(name))
        if container["Name"] == f"/{new}":
            said = "Renaming a container with the same name as its current name"
            return Completed(1, "", f"Error response from daemon: {said}\n")
        if self.find(new) is not None:
            said = f'Conflict. The container name "/{new}" is already in use'
            return Completed(1, "", f"Error response from daemon: {said}\n")
        container["Name"] = f"/{new}"
        return _said("")

    def _logs(self, name: str) -> Completed:
        return self._on(name, lambda _: None) if self.find(name) is None else self._log_of(name)

    def _log_of(self, name: str) -> Completed:
        found = self.find(name)
        return _said(self.logs.get(found["Id"], "") if found else "")

    def _api(self, request: bytes) -> Completed:
        """One request of the Engine API: GET /_ping or POST /containers/create."""
        head, _, body = request.partition(b"\r\n\r\n")
        path = head.split(b" ")[1].decode()
        if path == f"/v{self.api_version}/_ping":
            return _reply(200, {})
        version, _, name = path.partition("/containers/create?name=")
        if version != f"/v{self.api_version}":
            return _reply(400, {"message": f"client version {version} is not supported"})
        asked = json.loads(body)
        if self.find(name) is not None:
            return _reply(409, {"message": f'Conflict. The container name "/{name}" is already in use'})
        ids = {*self.images.values()}
        image_id = asked["Image"] if asked["Image"] in ids else self.images.get(asked["Image"])
        if image_id is None:
            return _reply(404, {"message": f"No such image: {asked['Image']}"})
        config = {key: value for key, value in asked.items() if key not in ("HostConfig", "NetworkingConfig")}
        networks = asked.get("NetworkingConfig", {}).get("EndpointsConfig", {})
        return _reply(201, {"Id": self._make(name, image_id, config, asked["HostConfig"], networks)})

    def _make(
        self, name: str, image_id: str, config: dict[str, Any], host: dict[str, Any], networks: dict[str, Any]
    ) -> str:
        self._made += 1
        identity = hashlib.sha256(f"container {self._made}".encode()).hexdigest()
        state = dict.fromkeys(("Running", "Paused", "Restarting", "OOMKilled", "Dead"), False)
        times = {"StartedAt": "0001-01-01T00:00:00Z", "FinishedAt": "0001-01-01T00:00:00Z"}
        container = {
            "Id": identity,
            "Name": f"/{name}",
            "Image": image_id,
            "State": {"Status": "created", "ExitCode": 0, "Error": "", **state, **times},
            "RestartCount": 0,
            "Config": {"Hostname": identity[:12], **config},
            "HostConfig": host,
            "Mounts": [],
            "NetworkSettings": {"Networks": networks},
        }
        self.containers.append(container)
        return identity

    def _compose(self, words: list[str]) -> Completed:
        options: dict[str, list[str]] = {name: [] for name in _OPTIONS_WITH_VALUE}
        while words[0] in options:
            options[words[0]].append(words[1])
            words = words[2:]
        missing = next((file for file in options["--file"] if file not in self.host.files), None)
        if missing is not None:
            return Completed(14, "", f"open {missing}: no such file or directory\n")
        settings = self._settings(options["--file"], words[-1])
        if words[0] == "config":
            return _said(f"{words[-1]} {_hash(settings)}")
        self._up(options, words[-1], settings)
        return _said("")

    def _settings(self, files: list[str], service: str) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        for file in files:
            settings |= json.loads(self.host.files[file])["services"].get(service, {})
        return settings

    def _up(self, options: dict[str, list[str]], service: str, settings: dict[str, Any]) -> None:
        project = options["--project-name"][0]
        labels = {
            f"{_COMPOSE}project": project,
            f"{_COMPOSE}service": service,
            f"{_COMPOSE}oneoff": "False",
            f"{_COMPOSE}config-hash": _hash(settings),
            f"{_COMPOSE}project.working_dir": options["--project-directory"][0],
            f"{_COMPOSE}project.config_files": ",".join(options["--file"]),
        }
        name = f"{project}-{service}-1"
        old = self.find(name)
        if old is not None and old["Config"]["Labels"][f"{_COMPOSE}config-hash"] == _hash(settings):
            self._start(old)
            return
        config = {
            "Image": settings["image"],
            "Entrypoint": settings.get("entrypoint"),
            "Cmd": [word.replace("$$", "$") for word in settings["command"]],
            "Env": [f"{key}={value}" for key, value in settings.get("environment", {}).items()],
            "Labels": labels,
        }
        if old is not None:
            self.containers.remove(old)
        identity = self._make(name, self.images[settings["image"]], config, {}, {})
        self._on(identity, self._start)

    def _now(self) -> str:
        self._clock += 1
        return f"2026-01-01T00:{self._clock // 60:02}:{self._clock % 60:02}.123456789Z"


def _hash(settings: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _said(text: str) -> Completed:
    return Completed(0, f"{text}\n" if text else "", "")


def _reply(status: int, answer: dict[str, Any]) -> Completed:
    body = json.dumps(answer)
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return Completed(0, f"{head}Connection: close\r\n\r\n{body}", "")
