"""The child process of `record_routing`: `python -m breakeven.servers.routing_child`.

Reads one JSON object on stdin, {"model", "prompts", "tokens", "threads", "out"}, where a prompt is a list of
{"role", "content"}. Writes `out`, an .npz of `experts` [tokens, layers, top_k] and `lengths` [replies], and
JSON lines on stdout: {"decoded"} for each token of a reply, and last {"count", "description"}, or {"usage"},
{"error"}, {"missing"}. It ends with its parent: its next line finds nobody. llama.cpp's log goes to stderr.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.engines import llamacpp_capi
from breakeven.engines.llamacpp_capi import ChatMessage, EvalCallback
from breakeven.errors import ServerError, UsageError

TOPK = re.compile(rb"ffn_moe_topk-(\d+)")
"""Tensor of the experts that each token of a batch uses in one layer (llama.cpp, src/llama-graph.cpp)."""
_MOST_TEXT = 4096
"""Bytes of one value of a model's metadata."""

Ids = NDArray[np.int32]
Messages = Sequence[Mapping[str, str]]


def main() -> None:
    """Answer one request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(line: dict[str, Any]) -> None:
        report.write(json.dumps(line) + "\n")

    request = json.loads(sys.stdin.buffer.read())
    try:
        say(_record(request, lambda: say({"decoded": True})))
    except ImportError:
        say({"missing": "xllamacpp"})
    except UsageError as error:
        say({"usage": str(error)})
    except ServerError as error:
        say({"error": str(error)})
    os._exit(0)


def _record(request: dict[str, Any], decoded: Any) -> dict[str, Any]:
    model = Model(request["model"])
    count = model.expert_count()
    prompts = [model.tokens(messages) for messages in request["prompts"]]
    context = Context(model, max(map(len, prompts)) + request["tokens"], request["threads"])
    replies = [context.routing_of_reply(prompt, request["tokens"], decoded) for prompt in prompts]
    replies = [reply for reply in replies if len(reply)]
    if not replies:
        raise ServerError("no reply has a token")
    np.savez(request["out"], experts=np.concatenate(replies), lengths=[len(reply) for reply in replies])
    return {"count": count, "description": model.metadata("general.description") or ""}


class Model:
    """A model in memory."""

    def __init__(self, path: str) -> None:
        import xllamacpp
        from xllamacpp import xllamacpp as extension

        self.version: str = xllamacpp.__version__
        self.api = llamacpp_capi.load(extension.__file__, self.version)
        self.api.llama_backend_init()
        self.address = self.api.llama_model_load_from_file(
            os.fsencode(path), self.api.llama_model_default_params()
        )
        if not self.address:
            raise ServerError("llama.cpp cannot load it")
        self.vocab = self.api.llama_model_get_vocab(self.address)

    def metadata(self, key: str) -> str | None:
        """A value of the file's metadata as text."""
        text = ctypes.create_string_buffer(_MOST_TEXT)
        n = self.api.llama_model_meta_val_str(self.address, key.encode(), text, _MOST_TEXT)
        return None if n < 0 else text.value.decode(errors="replace")

    def expert_count(self) -> int:
        """Routed experts of a layer. Raises UsageError for a dense model."""
        count = int(self.metadata(f"{self.metadata('general.architecture')}.expert_count") or 0)
        if not count:
            raise UsageError("it is no mixture of experts; there is nothing to route")
        return count

    def tokens(self, messages: Messages) -> Ids:
        """A chat by the model's own template; where it has none that llama.cpp knows, its texts alone."""
        text = self._templated(messages) or "\n".join(message["content"] for message in messages).encode()
        room = len(text) + 16
        ids = np.empty(room, np.int32)
        n = self.api.llama_tokenize(self.vocab, text, len(text), ids.ctypes.data, room, True, True)
        if n < 1:
            raise ServerError("llama.cpp cannot make tokens of a prompt")
        return ids[:n].copy()

    def _templated(self, messages: Messages) -> bytes | None:
        template = self.api.llama_model_chat_template(self.address, None)
        if template is None:
            return None
        turns = [ChatMessage(one["role"].encode(), one["content"].encode()) for one in messages]
        chat = (ChatMessage * len(turns))(*turns)
        n = self.api.llama_chat_apply_template(template, chat, len(turns), True, None, 0)
        if n <= 0:
            return None
        text = ctypes.create_string_buffer(n + 1)
        self.api.llama_chat_apply_template(template, chat, len(turns), True, text, n + 1)
        return text.raw[:n]


class Context:
    """One sequence at a time, decoded greedily, and the experts that each of its tokens uses."""

    def __init__(self, model: Model, n_ctx: int, threads: int) -> None:
        self.model, self.api = model, model.api
        self._layers: dict[int, Ids] | None = None
        """Experts of the token being decoded, by layer; None while nobody wants them."""
        trained = self.api.llama_model_n_ctx_train(model.address)
        if n_ctx > trained:
            raise UsageError(
                f"it holds {trained} tokens, and the longest prompt and its reply take {n_ctx}: "
                "type fewer --tokens, or leave long prompts out"
            )
        self._callback = EvalCallback(self._on_tensor)
        params = llamacpp_capi.context_params(self.api, model.version, n_ctx, self._callback)
        self.address = self.api.llama_init_from_model(model.address, params)
        if not self.address or self.api.llama_n_ctx(self.address) < n_ctx:
            raise ServerError("llama.cpp cannot make a context for it")
        self.api.llama_set_n_threads(self.address, threads, threads)

    def routing_of_reply(self, prompt: Ids, most: int, decoded: Any) -> Ids:
        """Experts of each token of the reply, up to `most` of them. [tokens, layers, top_k]"""
        self.api.llama_memory_clear(self.api.llama_get_memory(self.address), True)
        step = self.api.llama_n_batch(self.address)
        for start in range(0, len(prompt), step):
            self._decode(prompt[start : start + step])
        rows: list[Ids] = []
        while len(rows) < most and not self._ends(token := self._likeliest()):
            rows.append(self._routing(token))
            decoded()
        return np.array(rows, np.int32)

    def _routing(self, token: int) -> Ids:
        """Decode one token; its experts. [layers, top_k]"""
        self._layers = {}
        self._decode(np.array([token], np.int32))
        layers, self._layers = self._layers, None
        if not layers or len({len(experts) for experts in layers.values()}) > 1:
            seen = f"{len(layers)} layers of experts seen"
            raise UsageError(f"xllamacpp {self.model.version} does not show its routing ({seen})")
        return np.stack([layers[layer] for layer in sorted(layers)])

    def _decode(self, tokens: Ids) -> None:
        tokens = np.ascontiguousarray(tokens)
        batch = self.api.llama_batch_get_one(tokens.ctypes.data, len(tokens))
        status = self.api.llama_decode(self.address, batch)
        if status:
            raise ServerError(f"llama.cpp cannot decode (status {status})")

    def _likeliest(self) -> int:
        n_vocab = self.api.llama_vocab_n_tokens(self.model.vocab)
        logits = self.api.llama_get_logits_ith(self.address, -1)
        return int(np.ctypeslib.as_array(logits, (n_vocab,)).argmax())

    def _ends(self, token: int) -> bool:
        return bool(self.api.llama_vocab_is_eog(self.model.vocab, token))

    def _on_tensor(self, tensor: int, ask: bool, _user_data: Any) -> bool:
        if self._layers is None:
            return not ask
        name = TOPK.fullmatch(self.api.ggml_get_name(tensor))
        if name is not None and not ask:
            n_bytes = self.api.ggml_nbytes(tensor)
            experts = np.empty(n_bytes // 4, np.int32)
            self.api.ggml_backend_tensor_get(tensor, experts.ctypes.data, 0, n_bytes)
            self._layers[int(name[1])] = experts
        return name is not None or not ask


if __name__ == "__main__":
    main()
