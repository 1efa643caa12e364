"""What only `pip install 'breakeven[eagle]'` brings: asked for before any module that imports it."""

from __future__ import annotations

from importlib import import_module

from breakeven.errors import MissingExtra

EXTRA = "eagle"


def require(*modules: str) -> None:
    """Imports them, so that a module which imports them at its top can be imported next.

    Raises MissingExtra, with what to type, for the first that is missing or lacks something itself.
    """
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            raise MissingExtra((error.name or module).partition(".")[0], EXTRA) from error
