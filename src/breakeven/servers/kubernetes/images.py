"""What the images of engines run where a manifest gives arguments only."""

from __future__ import annotations

_ENTRYPOINTS = {
    "vllm/vllm-openai": ("vllm", "serve"),
    "ghcr.io/ggml-org/llama.cpp": ("/app/llama-server",),
    "ghcr.io/huggingface/text-generation-inference": ("text-generation-launcher",),
}
"""By the image's name without tag and digest, from the Dockerfiles of vLLM, llama.cpp (tags `server*`) and
TGI. Older images of vLLM name the module of the same server instead."""


def entrypoint_of(image: str) -> tuple[str, ...]:
    """Empty for an image that is not known; a registry or mirror before the name does not matter."""
    name = image.partition("@")[0]
    slash = name.rfind("/")
    name = name[: slash + 1] + name[slash + 1 :].partition(":")[0]
    for known, entrypoint in _ENTRYPOINTS.items():
        if name == known or name.endswith("/" + known.removeprefix("ghcr.io/")):
            return entrypoint
    return ()
