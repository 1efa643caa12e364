"""Lines as engines print them, from true counts."""

from collections.abc import Sequence


def vllm_line(drafts: Sequence[tuple[int, int]], window: int, at: str = "11-29 11:18:25") -> str:
    """vLLM 0.32's line over drafts of (drafted, accepted) tokens."""
    drafted = sum(one for one, _ in drafts)
    accepted = sum(two for _, two in drafts)
    shares = [sum(two > position for _, two in drafts) / len(drafts) for position in range(window)]
    return (
        f"(APIServer pid=19425) INFO {at} [metrics.py:120] SpecDecoding metrics: "
        f"Mean acceptance length: {1 + accepted / len(drafts):.2f}, "
        f"Accepted throughput: {accepted / 10:.2f} tokens/s, "
        f"Drafted throughput: {drafted / 10:.2f} tokens/s, "
        f"Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
        f"Per-position acceptance rate: {', '.join(f'{share:.3f}' for share in shares)}, "
        f"Avg Draft acceptance rate: {accepted / drafted * 100:.1f}%"
    )


def llamacpp_lines(drafts: Sequence[tuple[int, int]], output: int, task: int = 0) -> str:
    """llama.cpp's lines of a request of so many tokens."""
    drafted = sum(one for one, _ in drafts)
    accepted = sum(two for _, two in drafts)
    prefix = f"0.04.140.{task % 1000:03} I slot print_timing: id  0 | task {task} |"
    lines = (
        f"{prefix} prompt eval time =      48.08 ms /     5 tokens (    9.62 ms per token)\n"
        f"{prefix}        eval time =    1358.90 ms / {output:5} tokens (   13.73 ms per token)\n"
    )
    if not drafted:
        return lines
    return (
        f"{lines}{prefix} draft acceptance = {accepted / drafted:.5f} "
        f"({accepted:5} accepted / {drafted:5} generated), mean len = {1 + accepted / len(drafts):5.2f}\n"
    )


def sglang_line(length: float, rate: float, requests: int = 1, at: str = "2025-10-22 10:27:57") -> str:
    """SGLang's line of a decode batch."""
    return (
        f"[{at} TP0] Decode batch. #running-req: {requests}, #token: 108, token usage: 0.25, "
        f"accept len: {length:.2f}, accept rate: {rate:.2f}, cuda graph: True, "
        f"gen throughput (token/s): 178.86, #queue-req: 3, "
    )


def vllm_state_line(rank: int, running: int, at: str, output: float = 31.8, extra: str = "") -> str:
    """vLLM's line of one rank's state."""
    return (
        f"(APIServer pid=19425) INFO {at} [loggers.py:335] Engine {rank:03}: "
        f"Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: {output} tokens/s, "
        f"Running: {running} reqs, Waiting: {2 * running} reqs, "
        f"{extra}GPU KV cache usage: {running * 10.0}%, Prefix cache hit rate: 53.4%"
    )
