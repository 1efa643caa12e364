import pytest

from breakeven.servers.kubernetes.images import entrypoint_of


@pytest.mark.parametrize(
    ("image", "entrypoint"),
    [
        ("vllm/vllm-openai:v0.11.0", ("vllm", "serve")),
        ("vllm/vllm-openai", ("vllm", "serve")),
        ("registry.example.com:5000/mirror/vllm/vllm-openai@sha256:ab", ("vllm", "serve")),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda", ("/app/llama-server",)),
        ("mirror/ggml-org/llama.cpp:server", ("/app/llama-server",)),
        ("ghcr.io/ggml-org/llama.cpp:full", ()),
        ("ghcr.io/huggingface/text-generation-inference:3", ("text-generation-launcher",)),
        ("own/vllm-openai:1", ()),
        ("notvllm/vllm-openai", ()),
    ],
)
def test_known_images(image, entrypoint):
    assert entrypoint_of(image) == entrypoint
