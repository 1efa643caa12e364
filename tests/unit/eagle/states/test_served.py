"""States from a server, by the trainer library's client: the same as from transformers, or what to type.

The server here answers as vLLM 0.32 does when it is started for extraction, with states of the same target.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("speculators")
pytest.importorskip("hs_connectors")
from safetensors.torch import load_file, save_file  # noqa: E402

from breakeven.eagle.recipe import Recipe  # noqa: E402
from breakeven.eagle.states.loaded import Loaded  # noqa: E402
from breakeven.eagle.states.passes import Wanted  # noqa: E402
from breakeven.eagle.states.run import make_states  # noqa: E402
from breakeven.eagle.states.target import open_weights, read_weights  # noqa: E402
from breakeven.eagle.states.target_head import TargetHead  # noqa: E402
from breakeven.errors import ConnectFailed, HttpError, ProtocolError, UsageError  # noqa: E402
from tests.unit.eagle.states.tiny import Counted, make_recipe, refused, write_data  # noqa: E402

pytestmark = pytest.mark.eagle

FLAGS = r"vllm serve .*extract_hidden_states.*\[2, 4, 5, 8\].*ExampleHiddenStatesConnector"


class Engine:
    """What the server does; tests change it."""

    def __init__(self, model: Path, shared: Path) -> None:
        self.shared = shared
        target = open_weights(model)
        head = TargetHead.of(read_weights(target), target.eps)
        self.target = Loaded(Wanted(target, head, (2, 4, 5), "float32", 1))
        self.head = head
        self.asked = 0
        self.extracts, self.writes, self.states, self.width = True, True, 4, None
        self.poisoned = False
        self.room = 128
        self.status = 200

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        ids = body["prompt"]
        passed = self.target.passes([ids])[0].hidden_states
        logprobs = torch.log_softmax(self.head(passed[-1:, -1]), -1)[0]
        token = int(logprobs.argmax())
        path = self.shared / f"{self.asked}.safetensors"
        kept = passed[:, : self.states, : self.width].clone(memory_format=torch.contiguous_format)
        if self.poisoned:
            kept[0, 0, 0] = torch.nan
        if self.extracts and self.writes:
            self.shared.mkdir(exist_ok=True)
            save_file({"hidden_states": kept, "token_ids": torch.tensor(ids)}, path)
        choice = {
            "index": 0,
            "text": "x",
            "finish_reason": "length",
            "prompt_token_ids": ids,
            "token_ids": [token],
            "logprobs": {"token_logprobs": [float(logprobs[token])], "tokens": ["x"]},
        }
        said = {"id": "1", "object": "text_completion", "created": 0, "model": "m", "choices": [choice]}
        return {**said, "kv_transfer_params": {"hidden_states_path": str(path)} if self.extracts else None}


def handler(engine: Engine) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer({"object": "list", "data": [{"id": "m", "max_model_len": engine.room}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                said = engine.complete(body) if engine.status == 200 else {"message": "out of memory"}
            self.answer(said, engine.status)

        def answer(self, said: dict[str, Any], status: int = 200) -> None:
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def engine(model: Path, tmp_path: Path) -> Engine:
    return Engine(model, tmp_path / "shared")


@pytest.fixture
def url(engine: Engine) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(engine)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def recipe(model: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    monkeypatch.setattr("speculators.data_generation.vllm_client.RETRY_BACKOFF_BASE", 0)
    made = make_recipe(tmp_path, model, source="vllm", batch=3)
    write_data(made)
    return replace(made, target=replace(made.target, url=url))


def test_a_server_s_states_are_those_of_transformers(recipe: Recipe, engine: Engine) -> None:
    make_states(recipe, Counted())
    other = replace(recipe, folder="other", states=replace(recipe.states, source="transformers"))
    write_data(other)
    make_states(other, Counted())
    folder = recipe.stage("states")
    for path in sorted(other.stage("states").glob("shard-*")):
        ours, theirs = load_file(path), load_file(folder / path.name)
        assert ours.keys() == theirs.keys()
        for name, tensor in ours.items():
            apart = (theirs[name] - tensor).abs().max() / tensor.abs().max()
            assert float(apart) <= 1e-5
    assert list(engine.shared.iterdir()) == []


def test_a_layer_beyond_the_last_is_the_last_state(recipe: Recipe, engine: Engine) -> None:
    target = open_weights(Path(recipe.target.model))
    engine.target = Loaded(Wanted(target, engine.head, (2, 4, 8), "float32", 1))
    engine.states = 3
    made = make_states(replace(recipe, states=replace(recipe.states, layers=(2, 4, 8))), Counted())
    tensors = load_file(recipe.stage("states") / "shard-00000.safetensors")
    assert made.found["layers"] == [2, 4, 8]
    states = tensors["0000.hidden_states"]
    assert states.shape[1] == 4 and torch.equal(states[:, 2], states[:, 3])


def test_a_server_that_extracts_nothing(recipe: Recipe, engine: Engine) -> None:
    engine.extracts = False
    refused(recipe, f"hands out no hidden states .*{FLAGS}")


def test_a_server_of_other_layers(recipe: Recipe, engine: Engine) -> None:
    engine.states = 3
    refused(recipe, f"hands out 3 states of each token, and 4 are needed.*{FLAGS}")


def test_a_server_of_another_hidden_size(recipe: Recipe, engine: Engine) -> None:
    engine.width = 16
    refused(recipe, r"hidden states of 16 numbers, and .* has 32")


def test_a_server_of_another_model(recipe: Recipe, engine: Engine) -> None:
    engine.head = TargetHead(engine.head.norm, -engine.head.lm_head, engine.head.eps)
    refused(recipe, f"another model .*{FLAGS}")


def test_a_folder_that_only_the_server_sees(recipe: Recipe, engine: Engine) -> None:
    engine.writes = False
    refused(recipe, f"which this machine does not see.*such as  {FLAGS}")


def test_a_sample_that_the_server_has_no_room_for(recipe: Recipe, engine: Engine) -> None:
    engine.room = 20
    with pytest.raises(UsageError, match="--max-model-len 31"):
        make_states(recipe, Counted())


def test_a_server_that_fails(recipe: Recipe, engine: Engine) -> None:
    engine.status = 500
    refused(recipe, "HTTP 500", HttpError)


def test_states_that_are_not_finite(recipe: Recipe, engine: Engine) -> None:
    engine.poisoned = True
    refused(recipe, "non-finite", ProtocolError)


def test_no_server(recipe: Recipe) -> None:
    nowhere = replace(recipe, target=replace(recipe.target, url="http://127.0.0.1:9"))
    refused(nowhere, r"nothing answers at http://127\.0\.0\.1:9/v1 .*vllm serve", ConnectFailed)
