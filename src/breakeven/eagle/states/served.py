"""The target's passes by a vLLM server that was started to hand out hidden states (flags.py says how).

Asking for them and fetching them is the trainer library's own code. The server writes each sample's states
into a folder that both see; they are removed once read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import torch
from hs_connectors import FileTransfer
from safetensors import SafetensorError
from speculators.data_generation.offline import check_hidden_states
from speculators.data_generation.vllm_client import (
    InvalidResponseError,
    extract_output,
    generate_hidden_states,
)

from breakeven.client.endpoint import ApiKey, normalise_url
from breakeven.eagle.states.flags import served_layers, server_command
from breakeven.eagle.states.passes import Passed, Wanted, passed
from breakeven.errors import ConnectFailed, HttpError, ProtocolError, UsageError

NO_KEY = "EMPTY"
APART = 0.5
"""Of two log-probabilities of one token, ours and the server's: more than half precision leaves."""


class Served:
    """A server at work. Raises EndpointError where it fails, and UsageError where it was started otherwise.

    `shared` is the folder that is proposed for the states where the server has to be started anew.
    """

    def __init__(self, wanted: Wanted, url: str, shared: Path, key: ApiKey | None) -> None:
        target = wanted.target
        self._wanted, self._url = wanted, normalise_url(url)
        self._command = server_command(target.folder, wanted.layers, target.layers, shared)
        served = served_layers(wanted.layers, target.layers)
        self._served = len(served)
        self._picked = [served.index(layer) for layer in (*wanted.layers, target.layers)]
        self._transfer = FileTransfer(shared)
        token = NO_KEY if key is None else key.reveal()
        self._client = openai.OpenAI(base_url=self._url, api_key=token, max_retries=0)
        self._name, self._room = self._model()

    def check_room(self, longest: int) -> None:
        """Raises UsageError where the server takes fewer tokens than the longest sample has."""
        if self._room is not None and longest >= self._room:
            raise UsageError(
                f"a sample has {longest} tokens, and the server at {self._url} takes {self._room} with the "
                f"one that it adds: start it with  --max-model-len {longest + 1}  or more"
            )

    def check(self, sample: Sequence[int]) -> None:
        """Raises UsageError where the server gives its next token another probability than our last state."""
        with self._explained():
            said = self._client.completions.create(
                model=self._name,
                prompt=list(sample),
                max_tokens=1,
                temperature=0,
                logprobs=1,
                extra_body={"return_token_ids": True},
            )
            handle, where = extract_output(said, list(sample))
            states = self._fetch(handle, where, sample)
        choice = said.choices[0]
        token, theirs = choice.token_ids[0], choice.logprobs.token_logprobs[0]
        ours = float(torch.log_softmax(self._wanted.head(states[-1:, -1]), dim=-1)[0, token])
        if not abs(ours - theirs) <= APART:
            raise UsageError(
                f"the server at {self._url} gives token {token} a log-probability of {theirs:.2f}, and its "
                f"last state leads to {ours:.2f}: it serves another model than {self._wanted.target.folder}, "
                f"or hands out other layers; start it with  {self._command}"
            )

    def passes(self, batch: Sequence[Sequence[int]]) -> list[Passed]:
        """All samples of the batch are asked at once."""
        with ThreadPoolExecutor(len(batch)) as pool:
            states = list(pool.map(self._states, batch))
        return [passed(one, self._wanted.head, self._wanted.top) for one in states]

    def _states(self, sample: Sequence[int]) -> torch.Tensor:
        with self._explained():
            handle, said = generate_hidden_states(self._client, self._name, {"input_ids": list(sample)})
            return self._fetch(handle, said, sample)

    def _fetch(self, handle: str, said: Mapping[str, Any], sample: Sequence[int]) -> torch.Tensor:
        """[tokens, 4, hidden], out of the folder that is shared."""
        found = self._transfer.get_generated(dict(said))
        if found is None:
            raise UsageError(
                f"the server at {self._url} wrote {handle}, which this machine does not see: start it with a "
                f"shared_storage_path that both see, such as  {self._command}"
            )
        self._transfer.delete(handle)
        check_hidden_states(found, list(sample))
        states: torch.Tensor = found["hidden_states"]
        self._check_shape(states)
        return states[:, self._picked].to(self._wanted.torch_dtype)

    def _check_shape(self, states: torch.Tensor) -> None:
        target = self._wanted.target
        if states.shape[1] != self._served:
            raise UsageError(
                f"the server at {self._url} hands out {states.shape[1]} states of each token, and "
                f"{self._served} are needed: start it with  {self._command}"
            )
        if states.shape[2] != target.hidden:
            raise UsageError(
                f"the server at {self._url} has hidden states of {states.shape[2]} numbers, and "
                f"{target.folder} has {target.hidden}: serve the model that [target] names"
            )

    def _model(self) -> tuple[str, int | None]:
        """Its name on the server, and the tokens that it takes at most."""
        with self._explained():
            models = self._client.models.list().data
        if not models:
            raise ProtocolError(f"the server at {self._url} has no model: wait until it has loaded one")
        room = getattr(models[0], "max_model_len", None)
        return models[0].id, room if isinstance(room, int) else None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns what the libraries raise into what to do."""
        try:
            yield
        except InvalidResponseError as error:
            raise UsageError(
                f"the server at {self._url} hands out no hidden states ({error}): start it with  "
                f"{self._command}"
            ) from error
        except openai.APIStatusError as error:
            raise HttpError(error.status_code, error.message, f"see the log of {self._url}") from error
        except openai.APIConnectionError as error:
            raise ConnectFailed(
                f"nothing answers at {self._url} ({error}): start a server with  {self._command}"
            ) from error
        except (openai.OpenAIError, SafetensorError, ValueError, OSError) as error:
            raise ProtocolError(
                f"the server at {self._url} gave states that cannot be used ({error}): see its log"
            ) from error
