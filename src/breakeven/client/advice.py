"""HTTP errors, with what to type about each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from breakeven.client.endpoint import Endpoint
from breakeven.client.errorbody import detail_of
from breakeven.errors import BreakevenError, HttpError, ProtocolError

Error = TypeVar("Error", bound=BreakevenError)

MOST_MODELS_LISTED = 20
OWN_FIELDS = ("stream_options", "return_token_ids", "temperature", "top_p", "seed", "max_tokens")


def http_error(
    endpoint: Endpoint, url: str, status: int, body: bytes, models: Sequence[str] = ()
) -> HttpError:
    """The error of a status of 400 or above."""
    detail = detail_of(body)
    return HttpError(status, detail, _advice(endpoint, url, status, detail, models))


def without_key(endpoint: Endpoint, error: Error) -> Error:
    """The same error. The server's words in it are kept, the API key that it may quote in them is not."""
    if endpoint.api_key is not None:
        error.args = tuple(endpoint.api_key.redact(str(word)) for word in error.args)
        if isinstance(error, HttpError):
            error.detail = endpoint.api_key.redact(error.detail)
    return error


def redirect_error(url: str, status: int, location: str) -> ProtocolError:
    """A POST is not sent on to another address without being told to."""
    return ProtocolError(f"{url} redirects (HTTP {status}) to {location or 'nowhere'}: type that address")


def list_models(models: Sequence[str]) -> str:
    shown = ", ".join(models[:MOST_MODELS_LISTED])
    return shown + (
        f" and {len(models) - MOST_MODELS_LISTED} more" if len(models) > MOST_MODELS_LISTED else ""
    )


def _advice(endpoint: Endpoint, url: str, status: int, detail: str, models: Sequence[str]) -> str:
    if status in (400, 422):
        return _refused_field(detail)
    if status in (401, 403):
        given = "the API key was refused: check" if endpoint.api_key else "give an API key: type"
        return f"{given} --api-key-env NAME or --api-key-file FILE"
    if status == 404:
        return _not_found(endpoint, url, models)
    if status == 413:
        return "the prompt is too large for the server or a proxy before it"
    if status == 429:
        return "the server limits its rate: lower --concurrency or --rate"
    if status == 503:
        return "the server is loading or overloaded: wait until a request succeeds, then try again"
    return "see the server's log" if status >= 500 else "check the URL"


def _refused_field(detail: str) -> str:
    if "max_tokens" in detail and ("max_model_len" in detail or "maximum context length" in detail):
        return "prompt and reply do not fit into the model: lower --max-tokens or shorten the prompt"
    for name in OWN_FIELDS:
        if name in detail:
            return f"the server does not accept {name}: leave it out with --extra {name}=null"
    return "the server refused the request: see its message"


def _not_found(endpoint: Endpoint, url: str, models: Sequence[str]) -> str:
    if models and endpoint.model not in models:
        return f"there is no model {endpoint.model!r}: type --model with one of {list_models(models)}"
    if models:
        return f"there is nothing at {url}: try --api {'completions' if endpoint.api == 'chat' else 'chat'}"
    return f"there is nothing at {url}: check the URL and --model"
