"""The processes that train together, as torchrun starts them; one alone where it did not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed


@dataclass(frozen=True, slots=True)
class Processes:
    """This one among `size`."""

    rank: int
    size: int
    device: Any

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and tells."""
        return self.rank == 0

    def add_up(self, tensor: Any) -> Any:
        """The tensor, in place, as the sum of all processes' own."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def as_first(self, tensors: Iterable[Any]) -> None:
        """The tensors, in place, as the first process has them."""
        if self.size > 1:
            for tensor in tensors:
                distributed.broadcast(tensor.detach(), 0)

    def wait(self) -> None:
        """Until all are here."""
        if self.size > 1:
            distributed.barrier()


@contextmanager
def joined() -> Iterator[Processes]:
    """RANK, WORLD_SIZE and LOCAL_RANK say how many there are: NCCL joins them on GPUs, gloo on CPUs."""
    size, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", local) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    if size == 1:
        yield Processes(0, 1, device)
        return
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    yield Processes(distributed.get_rank(), size, device)
    distributed.destroy_process_group()  # not after a failure: the others may wait for what will not come
