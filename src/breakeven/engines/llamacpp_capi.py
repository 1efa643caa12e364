"""What reading a model's routing takes of llama.cpp's C API (include/llama.h), by ctypes.

Parameter structs travel by value and change between versions. None is declared here: each is room enough for
any version, filled by the library's own defaults and handed back. Two fields are set in one of them. n_ctx
comes first; cb_eval is found between neighbours whose defaults are known, and a library in which they are not
found is refused. Room beyond a struct's end does no harm: it is the last argument, and calling conventions
pass one of its size in memory from its start, or by address.

A wrong call can still end the process: use it only in one that may end.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from ctypes import c_bool, c_char_p, c_int32, c_size_t, c_void_p
from typing import Any

from breakeven.errors import UsageError

EvalCallback = ctypes.CFUNCTYPE(c_bool, c_void_p, c_bool, c_void_p)
"""ggml_backend_sched_eval_callback: (tensor, ask, user data). Asked whether the tensor is wanted once it is
computed; if so called again with ask false, to say whether to go on."""
_FIRST_FIELDS = struct.pack("<4I", 512, 2048, 512, 1)
"""Defaults of n_ctx, n_batch, n_ubatch and n_seq_max."""
_BEFORE_CALLBACK = struct.pack("<fIf", -1, 0, -1)
"""Of yarn_beta_slow, yarn_orig_ctx and defrag_thold."""
_FROM_CALLBACK = struct.pack("<QQii", 0, 0, 1, 1)
"""Of cb_eval, cb_eval_user_data, type_k and type_v (F16)."""
_POINTER_BYTES = 8


class Params(ctypes.Structure):
    """Room for llama_model_params, llama_context_params (168 bytes in 0.6.0) or llama_batch (56)."""

    _fields_ = (("words", ctypes.c_uint64 * 128),)


class ChatMessage(ctypes.Structure):
    """llama_chat_message."""

    _fields_ = (("role", c_char_p), ("content", c_char_p))


_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "llama_version": (c_char_p,),
    "llama_backend_init": (None,),
    "llama_model_default_params": (Params,),
    "llama_context_default_params": (Params,),
    "llama_model_load_from_file": (c_void_p, c_char_p, Params),
    "llama_init_from_model": (c_void_p, c_void_p, Params),
    "llama_set_n_threads": (None, c_void_p, c_int32, c_int32),
    "llama_n_ctx": (ctypes.c_uint32, c_void_p),
    "llama_n_batch": (ctypes.c_uint32, c_void_p),
    "llama_model_n_ctx_train": (c_int32, c_void_p),
    "llama_model_meta_val_str": (c_int32, c_void_p, c_char_p, c_void_p, c_size_t),
    "llama_model_chat_template": (c_char_p, c_void_p, c_char_p),
    "llama_chat_apply_template": (c_int32, c_char_p, c_void_p, c_size_t, c_bool, c_void_p, c_int32),
    "llama_model_get_vocab": (c_void_p, c_void_p),
    "llama_vocab_n_tokens": (c_int32, c_void_p),
    "llama_vocab_is_eog": (c_bool, c_void_p, c_int32),
    "llama_tokenize": (c_int32, c_void_p, c_char_p, c_int32, c_void_p, c_int32, c_bool, c_bool),
    "llama_get_memory": (c_void_p, c_void_p),
    "llama_memory_clear": (None, c_void_p, c_bool),
    "llama_batch_get_one": (Params, c_void_p, c_int32),
    "llama_decode": (c_int32, c_void_p, Params),
    "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), c_void_p, c_int32),
    "ggml_get_name": (c_char_p, c_void_p),
    "ggml_nbytes": (c_size_t, c_void_p),
    "ggml_backend_tensor_get": (None, c_void_p, c_void_p, c_size_t, c_size_t),
}
"""Result and arguments of each function. Models, contexts, vocabularies and tensors are addresses."""


def load(path: str, version: str) -> Any:
    """The library at `path` with these functions declared; `version` names it in messages.

    Raises UsageError where one is missing.
    """
    library = ctypes.CDLL(path)
    for name, (result, *arguments) in _SIGNATURES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise _unknown(version, f"it has no {name}") from None
        function.restype, function.argtypes = result, arguments
    return library


def context_params(library: Any, version: str, n_ctx: int, callback: Callable[..., bool]) -> Params:
    """The defaults, with `n_ctx` tokens of context and `callback`, an EvalCallback that must stay alive.

    Raises UsageError where the layout is not one that is known.
    """
    params: Params = library.llama_context_default_params()
    at = callback_offset(bytes(params))
    if at is None:
        raise _unknown(version, "its llama_context_params are laid out otherwise")
    struct.pack_into("<I", params, 0, n_ctx)
    struct.pack_into("<Q", params, at, ctypes.cast(callback, c_void_p).value)  # type: ignore[arg-type]
    return params


def callback_offset(defaults: bytes) -> int | None:
    """Where cb_eval is in default llama_context_params; None if its neighbours are not found just once."""
    found = defaults.find(_BEFORE_CALLBACK)
    if found < 0 or not defaults.startswith(_FIRST_FIELDS) or defaults.count(_BEFORE_CALLBACK) > 1:
        return None
    end = found + len(_BEFORE_CALLBACK)
    at = -(-end // _POINTER_BYTES) * _POINTER_BYTES
    return at if defaults[at:].startswith(_FROM_CALLBACK) else None


def _unknown(version: str, why: str) -> UsageError:
    return UsageError(
        f"routing cannot be read through xllamacpp {version}, {why}: "
        "type  pip install 'xllamacpp==2026.10.11549'  in an environment of its own"
    )
