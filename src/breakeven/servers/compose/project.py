"""Project: how a running service was started, so that it is started again in the same way."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.errors import UsageError
from breakeven.servers.docker.client import DOCKER
from breakeven.servers.docker.container import Container

_LABEL = "com.docker.compose."


@dataclass(frozen=True, slots=True)
class Project:
    """A Compose project and one service of it, by the labels that Compose gave its container."""

    name: str
    directory: str
    files: tuple[str, ...]
    env_files: tuple[str, ...]
    service: str

    @property
    def override(self) -> str:
        """Our file, beside the first of the user's."""
        return f"{self.directory}/compose.breakeven-{self.service}.yaml"

    def argv(self, *words: str, override: bool = False) -> tuple[str, ...]:
        """`docker compose` for this project."""
        files = (*self.files, self.override) if override else self.files
        return (
            *(DOCKER, "compose", "--project-name", self.name, "--project-directory", self.directory),
            *(word for env_file in self.env_files for word in ("--env-file", env_file)),
            *(word for file in files for word in ("--file", file)),
            *words,
        )

    def labels(self, hash_: str) -> tuple[str, ...]:
        """Those of a container of the service that was made from a configuration with this hash."""
        named = {"project": self.name, "service": self.service, "oneoff": "False", "config-hash": hash_}
        return tuple(f"{_LABEL}{name}={value}" for name, value in named.items())

    def up(self, override: bool) -> tuple[str, ...]:
        """Makes the service's container what its files say; one that is that already is left alone. Nothing
        is pulled or built: the image stays."""
        quiet = ("--detach", "--no-deps", "--no-build", "--pull", "never")
        return self.argv("up", *quiet, self.service, override=override)


def project_of(container: Container) -> Project:
    """Raises UsageError for a container of a Compose too old to say how it was started."""
    labels = container.labels
    try:
        return Project(
            name=labels[f"{_LABEL}project"],
            directory=labels[f"{_LABEL}project.working_dir"],
            files=tuple(labels[f"{_LABEL}project.config_files"].split(",")),
            env_files=tuple(filter(None, labels.get(f"{_LABEL}project.environment_file", "").split(","))),
            service=labels[f"{_LABEL}service"],
        )
    except KeyError as error:
        raise UsageError(
            f"{container.name} lacks the label {error}: start it with Docker Compose 2 or above first"
        ) from None


def config_hash(container: Container) -> str:
    """Of the configuration that the container was made from."""
    return container.labels.get(f"{_LABEL}config-hash", "")
