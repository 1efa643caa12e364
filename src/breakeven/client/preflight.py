"""Preflight: the errors that would make every request pointless, found before the first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from breakeven.client.advice import list_models, without_key
from breakeven.client.endpoint import Endpoint
from breakeven.client.errorbody import is_html, loads
from breakeven.client.fetch import get_text
from breakeven.client.metrics import NO_SUCH_PATH
from breakeven.client.transport import Pool
from breakeven.errors import HttpError, ProtocolError, UsageError

_NOT_FOR_THIS_KEY = 403
"""Keys exist that may ask a model, but not list what there is."""


async def preflight(pool: Pool, endpoint: Endpoint) -> Endpoint:
    """The endpoint with its model known.

    Raises ConnectFailed for a dead server, ProtocolError where no OpenAI-compatible server answers,
    HttpError for a refused key, UsageError that lists the models if none was named among several, or one
    that is not there.
    """
    try:
        models = await list_served(pool, endpoint)
    except HttpError as error:
        if error.status in NO_SUCH_PATH or (error.status == _NOT_FOR_THIS_KEY and endpoint.model):
            return _without_list(endpoint)
        raise
    return replace(endpoint, model=_choose(endpoint.model, models))


async def list_served(pool: Pool, endpoint: Endpoint) -> tuple[str, ...]:
    """Ids of the models at GET /v1/models. Raises ProtocolError if that is no list of models."""
    text = await get_text(pool, endpoint, "/v1/models")
    if is_html(text.encode()):
        raise ProtocolError(f"{endpoint.models_url} answers with a web page, not JSON: check the URL")
    value = loads(text.encode())
    entries = value.get("data", value.get("models")) if isinstance(value, dict) else value
    if not isinstance(entries, list):
        said = f"{endpoint.models_url} answers with no list of models ({text[:100]!r})"
        raise without_key(endpoint, ProtocolError(f"{said}: check the URL"))
    names = (_name(entry) for entry in entries)
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def _name(entry: Any) -> Any:
    """Of an entry as OpenAI has it, as Ollama has it, or of a bare name."""
    return entry.get("id") or entry.get("name") if isinstance(entry, dict) else entry


def _choose(named: str | None, models: tuple[str, ...]) -> str:
    if named is None:
        if len(models) == 1:
            return models[0]
        if not models:
            raise UsageError("the server lists no model: load one, or type --model NAME")
        raise UsageError(f"the server has several models: type --model with one of {list_models(models)}")
    if models and named not in models:
        raise UsageError(f"the server has no model {named!r}: type --model with one of {list_models(models)}")
    return named


def _without_list(endpoint: Endpoint) -> Endpoint:
    if endpoint.model is None:
        raise UsageError(
            f"{endpoint.models_url} does not exist: check the URL, or name the model with --model NAME"
        )
    return endpoint
