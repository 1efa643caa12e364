"""SGLang's command line and log."""

from __future__ import annotations

import pytest

from breakeven.engines.dialect import Address, Phase
from breakeven.engines.sglang import Sglang
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError

SERVE = ("python3", "-m", "sglang.launch_server", "--model-path", "m")
NGRAM = SpeculationConfig("ngram", 11)


def test_k_is_one_less_than_the_tokens_verified() -> None:
    words = ("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "12")
    assert Sglang().flags(NGRAM) == words
    assert Sglang().speculation((*SERVE, *words)) == NGRAM


def test_the_window_of_older_versions() -> None:
    # Taken away by sgl-project/sglang pull request 21225, after 0.5.9.
    config = SpeculationConfig("ngram", 5, 2, 4)
    flags = Sglang().flags(config, "0.5.9")
    assert flags[4:] == (
        *("--speculative-ngram-min-match-window-size", "2"),
        *("--speculative-ngram-max-match-window-size", "4"),
    )
    assert Sglang().speculation((*SERVE, *flags)) == config
    for version in ("0.5.10", "0.5.23", None):
        with pytest.raises(UsageError, match="leave out --min-n and --max-n"):
            Sglang().flags(config, version)


def test_a_chain_has_all_three_numbers() -> None:
    # "leave all three unset, or set all three": docs/advanced_features/speculative_decoding.md
    config = SpeculationConfig("eagle3", 3, draft="d")
    flags = Sglang().flags(config)
    assert flags == (
        *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "d"),
        *("--speculative-num-steps", "3", "--speculative-eagle-topk", "1"),
        *("--speculative-num-draft-tokens", "4"),
    )
    assert Sglang().speculation((*SERVE, *flags)) == config
    assert "--speculative-num-steps" not in Sglang().flags(SpeculationConfig("mtp"))


def test_a_tree_stays_one() -> None:
    words = ("--speculative-algo", "eagle", "--speculative-draft-model", "d", "--speculative-num-steps", "5")
    words += ("--speculative-eagle-topk", "8", "--speculative_num_draft_tokens=64")
    config = Sglang().speculation((*SERVE, *words))
    assert config == SpeculationConfig(
        "eagle",
        5,
        draft="d",
        options={"speculative-eagle-topk": 8, "speculative-num-draft-tokens": 64},
    )
    assert Sglang().flags(config)[-4:] == (
        *("--speculative-eagle-topk", "8"),
        *("--speculative-num-draft-tokens", "64"),
    )


@pytest.mark.parametrize(
    ("words", "method"),
    [
        (("--speculative-algorithm", "NEXTN"), "mtp"),
        (("--speculative-algorithm=EAGLE",), "mtp"),
        (("--speculative-algorithm=EAGLE", "--speculative-draft-model-path", "d"), "eagle"),
        (("--speculative-algorithm", "STANDALONE", "--speculative-draft-model-path", "d"), "draft-model"),
        (("--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", "d"), "dflash"),
    ],
)
def test_algorithms(words: tuple[str, ...], method: str) -> None:
    config = Sglang().speculation((*SERVE, *words))
    assert config is not None and config.method == method


def test_no_algorithm_is_no_speculation() -> None:
    argv = (*SERVE, "--speculative-num-draft-tokens", "4")
    assert Sglang().speculation(argv) is None
    assert Sglang().without(argv) == SERVE


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (SpeculationConfig("suffix"), "SGLang has no suffix"),
        (SpeculationConfig("eagle3", 3), "type --draft PATH"),
        (SpeculationConfig("ngram", 3, draft="d"), "leave out --draft"),
        (SpeculationConfig("ngram", 3, options={"tp": 2}), "has no setting tp of speculation"),
    ],
)
def test_refused(config: SpeculationConfig, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Sglang().flags(config)


def test_traps() -> None:
    found = " | ".join(Sglang().warnings(NGRAM, (*SERVE, "--enable-dp-attention", "--page-size", "64")))
    assert "learns across requests" in found and "overlap scheduler" in found
    assert "--enable-dp-attention" in found and "--attention-backend flashinfer" in found
    plain = (*SERVE, "--page-size", "64", "--attention-backend", "flashinfer")
    assert "flashinfer" not in " | ".join(Sglang().warnings(NGRAM, plain))
    assert Sglang().warnings(SpeculationConfig("eagle3", 3, draft="d"), SERVE) == ()
    assert Sglang().learns(NGRAM) and not Sglang().learns(SpeculationConfig("eagle", draft="d"))


def test_address() -> None:
    assert Sglang().address(SERVE, {"PORT": "1"}) == Address("127.0.0.1", 30000)
    assert Sglang().address((*SERVE, "--host=0.0.0.0", "--port", "8000"), {}) == Address("0.0.0.0", 8000)


def test_elsewhere() -> None:
    known = Sglang({"c.yaml": "speculative-algorithm: NGRAM\n", "d.yaml": "tp: 2\n"}.get)
    assert "c.yaml turns speculation on" in (known.elsewhere((*SERVE, "--config", "c.yaml"), {}) or "")
    assert known.elsewhere((*SERVE, "--config", "d.yaml"), {}) is None


# Formats as in sgl-project/sglang issue 12726.
@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("[2025-11-06 01:22:00] server_args=ServerArgs(model_path='m')", Phase("starting")),
        ("[2025-11-06 01:22:04] Load weight begin. avail mem=78.00 GB", Phase("loading weights")),
        ("Loading safetensors checkpoint shards:  33% Completed | 1/3 [00:00<00:01, 1.2it/s]",
         Phase("loading weights", 1, 3)),
        ("[2025-11-06 01:22:10] Capture cuda graph begin. This can take minutes.", Phase("capturing graphs")),
        ("Capturing batches (bs=1 avail_mem=12.19 GB):  50%|███  | 12/23 [00:02<00:00, 9.88it/s]",
         Phase("capturing graphs", 12, 23)),
        ("[2025-11-06 01:22:14] INFO:     Application startup complete.", Phase("warming up")),
        ("[2025-11-06 01:22:16] The server is fired up and ready to roll!", Phase("serving")),
        ("[2025-11-06 01:22:20] Decode batch. #running-req: 1, accept len: 2.10", None),
    ],
)  # fmt: skip
def test_phase(line: str, phase: Phase | None) -> None:
    assert Sglang().phase(line) == phase


def test_facts() -> None:
    log = [
        "server_args=ServerArgs(attention_backend='fa3', disable_overlap_schedule=True, tp_size=1)",
        "[2025-11-06 01:22:10] KV Cache is allocated. #tokens: 421472, K size: 28.94 GB, V size: 28.94 GB",
        "[2025-11-06 01:22:10] Capture cuda graph bs [1, 2, 3, 4]",
    ]
    assert Sglang().facts(log) == {
        "attention_backend": "fa3",
        "async_scheduling": "off",
        "kv_cache_tokens": "421472",
        "cuda_graphs": "1 2 3 4",
    }
    assert Sglang().facts(["disable_cuda_graph=True"]) == {"cuda_graphs": "none"}


def test_failure() -> None:
    log = ["[2025-11-06 01:22:14 TP0] Scheduler hit an exception: Traceback (most recent call last):"]
    log += ["RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "Killed"]
    assert (Sglang().failure(log) or "").startswith("RuntimeError: Not enough memory.")
