"""What the images of engines run where a manifest gives arguments only."""

from __future__ import annotations

_ENTRYPOINTS = (
    ("vllm/vllm-openai", "", ("vllm", "serve")),
    ("ggml-org/llama.cpp", "server", ("/app/llama-server",)),
    ("huggingface/text-generation-inference", "", ("text-generation-launcher",)),
)
"""By the image's name without its registry, and the beginning of its tag; from the Dockerfiles of vLLM,
llama.cpp and TGI. Older images of vLLM name the module of the same server instead."""


def entrypoint_of(image: str) -> tuple[str, ...]:
    """Empty for an image that is not known; a registry or mirror before the name does not matter."""
    path, slash, last = image.partition("@")[0].rpartition("/")
    base, _, tag = last.partition(":")
    name = f"{path}{slash}{base}"
    for known, tag_begins, entrypoint in _ENTRYPOINTS:
        if f"/{name}".endswith(f"/{known}") and tag.startswith(tag_begins):
            return entrypoint
    return ()
