"""Classes of the user's own: found as module:Class, checked before anything is replayed with them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from breakeven.drafters.base import Drafter
from breakeven.drafters.settings import Settings
from breakeven.errors import UsageError

ATTRIBUTES = {
    "name": str,
    "engine": str,
    "summary": str,
    "learns": bool,
    "steps_matter": bool,
    "compiled": bool,
}
"""What a class says of itself, and as which type."""
_KINDS = {str: "text", bool: "True or False"}
_FAILURES = (Exception, SystemExit)


def own_class(module: str, attribute: str) -> type[Drafter[Any]]:
    """The class, of a module in the working folder or an installed one.

    Raises UsageError that says what is missing or wrong.
    """
    found = _attribute(_module(module, attribute), module, attribute)
    if not (isinstance(found, type) and issubclass(found, Drafter)):
        raise UsageError(f"{module}:{attribute} is no Drafter: derive it from breakeven.Drafter")
    wrong = next(_faults(found), None)
    if wrong:
        raise UsageError(f"{module}:{attribute} {wrong}")
    return found


def made(name: str, cls: type[Drafter[Any]], settings: Mapping[str, Any]) -> Drafter[Any]:
    """An instance, whose flags and warnings are text. Raises UsageError for whatever the class raises."""
    try:
        drafter = cls(cls.Config(**settings))
        flags, warnings = drafter.flags(), drafter.warnings()
    except UsageError:
        raise
    except _FAILURES as error:
        raise UsageError(f"{name} cannot be made ({_said(error)}): mend the class") from error
    if not isinstance(flags, str):
        raise UsageError(f"{name}: flags() gives {type(flags).__name__}: it must be text")
    if not (isinstance(warnings, tuple) and all(isinstance(one, str) for one in warnings)):
        raise UsageError(f"{name}: warnings() gives no tuple of text: mend it")
    return drafter


def _module(module: str, attribute: str) -> ModuleType:
    folder = _working_folder()
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(module)
    except _FAILURES as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and (module == missing or module.startswith(f"{missing}.")):
            raise UsageError(
                f"cannot load the drafter {module}:{attribute}: {module.replace('.', '/')}.py is neither in "
                "the working folder nor installed"
            ) from error
        raise UsageError(
            f"cannot load the drafter {module}:{attribute} ({_said(error)}): mend the module"
        ) from error


def _working_folder() -> str | None:
    """None if it was deleted."""
    try:
        return str(Path.cwd())
    except OSError:
        return None


def _attribute(module: ModuleType, name: str, attribute: str) -> Any:
    found = getattr(module, attribute, MISSING)
    if found is not MISSING:
        return found
    drafters = [key for key, value in vars(module).items() if _is_own(value, module)]
    has = f"its drafters are {', '.join(drafters)}" if drafters else "it has no class derived from Drafter"
    raise UsageError(f"cannot load the drafter {name}:{attribute}: {name} has no {attribute}, {has}")


def _is_own(value: Any, module: ModuleType) -> bool:
    return isinstance(value, type) and issubclass(value, Drafter) and value.__module__ == module.__name__


def _faults(cls: type[Drafter[Any]]) -> Iterator[str]:
    """What is missing or wrong, each as the rest of a sentence."""
    lacking = [part for part in ("Config", "name") if not hasattr(cls, part)]
    lacking += sorted(cls.__abstractmethods__)
    if lacking:
        yield f"has no {' nor '.join(lacking)}: define it in the class"
        return
    for attribute, kind in ATTRIBUTES.items():
        if not isinstance(getattr(cls, attribute), kind):
            yield f"has {getattr(cls, attribute)!r:.60} as its {attribute}: it must be {_KINDS[kind]}"
    yield from _config_faults(cls.Config)


def _config_faults(config: Any) -> Iterator[str]:
    if not (isinstance(config, type) and issubclass(config, Settings) and is_dataclass(config)):
        yield (
            "has a Config that is no class of settings: derive a dataclass from "
            "breakeven.drafters.settings.Settings"
        )
        return
    for field in fields(config):
        if field.default is MISSING and field.default_factory is MISSING:
            yield f"has a setting {field.name} without a default: give it one in {config.__name__}"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
