"""ApiKey: a secret that no repr, message or file can show."""

from __future__ import annotations

import os
from pathlib import Path

from breakeven.errors import UsageError

MOST_BYTES = 64 * 1024
"""Of a file that holds a key."""


class ApiKey:
    """Wraps the key; `reveal` is the only way to read it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        """Raises UsageError if the key is empty, or could not stand in an HTTP header."""
        stripped = value.strip()
        if not stripped or not stripped.isascii() or not stripped.isprintable() or " " in stripped:
            raise UsageError("the API key is empty or holds characters that no key has: check its source")
        self._value = stripped

    @classmethod
    def from_env_or_file(cls, env: str | None = None, file: str | Path | None = None) -> ApiKey | None:
        """The key named by an environment variable or kept in a file; None if neither is given.

        Raises UsageError if both are given, or the one given is missing or empty.
        """
        if env and file:
            raise UsageError("type either --api-key-env or --api-key-file, not both")
        if env:
            return cls(_from_env(env))
        return cls(_from_file(Path(file))) if file else None

    def reveal(self) -> str:
        return self._value

    def redact(self, text: str) -> str:
        """`text` without the key: servers quote a refused key in their error."""
        return text.replace(self._value, "[API key]")

    def __repr__(self) -> str:
        return "ApiKey(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ApiKey) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> str:
        raise TypeError("an ApiKey is never written anywhere")


def _from_env(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise UsageError(f"the environment variable {name} is not set: type  export {name}=YOUR_KEY")
    return value


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(f"the API key file {path} cannot be read ({error}): check --api-key-file") from error
    if len(data) > MOST_BYTES:
        raise UsageError(f"the API key file {path} has more than {MOST_BYTES:,} bytes: check --api-key-file")
    return text
