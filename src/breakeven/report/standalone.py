"""One self-contained page from a template: it loads nothing, opens from disk, and trusts no text it shows."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from breakeven.report.text import clean, line
from breakeven.trace.files import storing, write_atomically


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """One of the large figures at the head of a page."""

    key: str
    """Of its definition; empty where the name says all."""
    name: str
    value: str
    note: str = ""


def render(template: str, variables: Mapping[str, Any], data: Any) -> str:
    """The page's HTML, with `data` in it as JSON; the template extends `base.html.j2`."""
    style, script = _asset("style.css"), _asset("script.js")
    return (
        _environment()
        .get_template(template)
        .render(
            variables,
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            style_hash=Markup(_csp_hash(style)),  # noqa: S704
            script_hash=Markup(_csp_hash(script)),  # noqa: S704
            data=embedded(data),
        )
    )


def write_page(page: str, path: Path) -> None:
    """Write the page, whole or not at all. Raises StorageError if the disk does not take it."""
    with storing(path.parent):
        write_atomically(path, lambda partial: _write(partial, page))


def _write(path: Path, page: str) -> None:
    path.write_text(page, encoding="utf-8", newline="\n")


def embedded(data: Any) -> Markup:
    """JSON in ASCII that cannot end the script element around it: `<`, `>` and `&` are escaped."""
    text = json.dumps(data, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704


def _csp_hash(content: str) -> str:
    """The source expression that lets exactly this inline style or script run (CSP level 3, 2.3.1)."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _asset(name: str) -> str:
    return files("breakeven.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("breakeven.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_harmless,
    )
    environment.filters["line"] = line
    return environment


def _harmless(value: Any) -> Any:
    """Text loses its control characters before it is escaped; what the templates made is kept."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
