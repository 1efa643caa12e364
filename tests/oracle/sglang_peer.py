"""SGLang's own trie, compiled from the sources in its wheel, with the interface of the twin."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

from breakeven.drafters.sglang_ngram import SglangNgramSettings

SHIM = r"""
#include <stdexcept>
#include <string>
#include <cstring>
#include "trie.h"
using namespace sglang::ngram;
struct Peer { Param param; Trie* trie; MatchState state; };
extern "C" {
Peer* peer_new(int64_t capacity, int depth, int narrowest, int widest, int nodes) {
  auto* peer = new Peer();
  peer->param.max_trie_depth = depth;
  peer->param.min_bfs_breadth = narrowest;
  peer->param.max_bfs_breadth = widest;
  peer->param.draft_token_num = nodes;
  peer->trie = new Trie(capacity, peer->param);
  return peer;
}
void peer_free(Peer* peer) { delete peer->trie; delete peer; }
void peer_begin(Peer* peer) { peer->state = MatchState(); }
void peer_insert(Peer* peer, const int32_t* window, int length) { peer->trie->insert(window, length); }
void peer_draft(Peer* peer, const int32_t* window, int length, int64_t total, int frequent, int32_t* tokens,
                uint8_t* mask) {
  auto build = frequent ? &Trie::buildFrequency : &Trie::buildRecency;
  size_t budget = peer->param.draft_token_num - 1;
  auto result = (peer->trie->*build)(
      window, length, window[length - 1], budget, peer->param, peer->state, total);
  memcpy(tokens, result.token.data(), result.token.size() * sizeof(int32_t));
  memcpy(mask, result.mask.data(), result.mask.size());
}
}
"""
WHERE = """
from importlib.util import find_spec
print(*(find_spec("sglang").submodule_search_locations if find_spec("sglang") else ["nowhere"]))
"""


def compiled(folder: Path) -> ctypes.CDLL | None:
    """None without a C++ compiler, or without SGLang in the Python that BREAKEVEN_PEERS_PYTHON names."""
    python, compiler = os.environ.get("BREAKEVEN_PEERS_PYTHON"), shutil.which("c++")
    if not python or not compiler:
        return None
    found = subprocess.run([python, "-c", WHERE], capture_output=True, text=True, check=True).stdout.strip()
    sources = Path(found) / "kernels/jit/csrc/ngram_corpus"
    if not sources.is_dir():
        return None
    (folder / "shim.cpp").write_text(SHIM)
    files = [folder / "shim.cpp", sources / "trie.cpp", sources / "result.cpp"]
    options = ["-std=c++17", "-O2", "-shared", "-fPIC", f"-I{sources}", "-include", "stdexcept"]
    subprocess.run([compiler, *options, "-o", folder / "peer.so", *files], check=True)
    library = ctypes.CDLL(str(folder / "peer.so"))
    library.peer_new.restype = ctypes.c_void_p
    library.peer_new.argtypes = [ctypes.c_int64, *[ctypes.c_int] * 4]
    return library


class SglangPeer:
    def __init__(self, library: ctypes.CDLL, settings: SglangNgramSettings) -> None:
        self.library, self.settings = library, settings
        self.peer = ctypes.c_void_p(
            library.peer_new(
                settings.capacity,
                settings.max_trie_depth,
                settings.min_bfs_breadth,
                settings.max_bfs_breadth,
                settings.k + 1,
            )
        )

    def __del__(self) -> None:
        self.library.peer_free(self.peer)

    def begin(self) -> None:
        self.library.peer_begin(self.peer)

    def insert(self, window: list[int]) -> None:
        self.library.peer_insert(self.peer, (ctypes.c_int32 * len(window))(*window), len(window))

    def step(self, context: list[int]) -> list[tuple[int, ...]]:
        n, window = self.settings.k + 1, context[-self.settings.max_trie_depth :]
        tokens, mask = np.zeros(n, np.int32), np.zeros((n, n), np.uint8)
        self.library.peer_draft(
            self.peer,
            (ctypes.c_int32 * len(window))(*window),
            len(window),
            ctypes.c_int64(len(context)),
            int(self.settings.match_type == "PROB"),
            ctypes.c_void_p(tokens.ctypes.data),
            ctypes.c_void_p(mask.ctypes.data),
        )
        self.insert(window)
        return sorted(tuple(tokens[1:][mask[i, 1:] == 1].tolist()) for i in range(1, n))
