"""vLLM's own connector for hidden states, without the pinned memory that it copies into: for a CPU.

The original (0.32) ends the server there after the first request: "pin_memory=True requires a CUDA or other
accelerator backend".

It runs inside the server, which finds it by --kv-transfer-config's kv_connector_module_path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from vllm.distributed.kv_transfer.kv_connector.v1.example_hidden_states_connector import (
    ExampleHiddenStatesConnector,
    extract_from_kv_cache,
)


class Done:
    """An event that has happened."""

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass


class CpuHiddenStatesConnector(ExampleHiddenStatesConnector):
    """Writes at once what the parent copies in the background."""

    def _submit_async_write(self, pending: Any) -> None:
        blocks = torch.tensor(pending.block_ids)[:, None] * self._block_size
        slots = (blocks + torch.arange(self._block_size)).flatten()
        states = extract_from_kv_cache(self._kv_cache, slots, len(pending.token_ids)).contiguous()
        Path(pending.filename).parent.mkdir(parents=True, exist_ok=True)
        tensors = {"hidden_states": states, "token_ids": pending.token_ids.clone()}
        self._write_tensors(tensors, Done(), pending.filename, self._lock_fds.pop(pending.req_id, None))
        self._req_copy_events[pending.req_id] = Done()
