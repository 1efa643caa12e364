"""vLLM's command line in all its spellings, and its log."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from breakeven.engines.dialect import Address, Phase
from breakeven.engines.speculation import SpeculationConfig
from breakeven.engines.vllm import Vllm
from breakeven.errors import UsageError

GOLDEN = Path(__file__).parents[2] / "golden" / "engines"
SERVE = ("vllm", "serve", "m")
NGRAM = SpeculationConfig("ngram", 5, 2, 4)


def lines(name: str) -> list[str]:
    return (GOLDEN / name).read_text().splitlines()


def test_flags_as_the_documentation_has_them() -> None:
    flag, value = Vllm().flags(NGRAM)
    assert flag == "--speculative-config"
    assert value == (
        '{"method":"ngram","num_speculative_tokens":5,"prompt_lookup_min":2,"prompt_lookup_max":4}'
    )


@pytest.mark.parametrize("config", [SpeculationConfig("ngram", 5, max_n=4), SpeculationConfig("ngram", 5, 4)])
def test_both_lengths_are_always_written(config: SpeculationConfig) -> None:
    # vLLM sets the other to the same (seen on 0.32).
    written = json.loads(Vllm().flags(config)[1])
    assert (written["prompt_lookup_min"], written["prompt_lookup_max"]) == (4, 4)
    assert "sets both to 4" in Vllm().warnings(config, SERVE)[0]


def test_older_flags() -> None:
    # The last version with them is 0.8.2: vllm-project/vllm pull request 15466.
    words = ("--speculative-model", "[ngram]", "--num-speculative-tokens", "5")
    words += ("--ngram-prompt-lookup-min", "2", "--ngram-prompt-lookup-max", "4")
    assert Vllm().flags(NGRAM, "0.8.2") == Vllm().flags(NGRAM, "v0.6.4.post1") == words
    assert Vllm().flags(NGRAM, "0.8.3")[0] == "--speculative-config"
    assert Vllm().flags(NGRAM, "0.9.2.dev140+g8b6e1d639")[0] == "--speculative-config"
    draft = SpeculationConfig("draft-model", 3, draft="d", options={"disable_mqa_scorer": True})
    assert Vllm().flags(draft, "0.7") == (
        *("--speculative-model", "d", "--num-speculative-tokens", "3"),
        "--speculative-disable-mqa-scorer",
    )
    # A clone without tags: setuptools-scm guesses.
    assert Vllm().flags(NGRAM, "0.1.dev9321+g8b6e1d639")[0] == "--speculative-config"
    assert Vllm().flags(NGRAM, "0.0.0.dev0")[0] == "--speculative-config"
    with pytest.raises(UsageError, match=r"vLLM 0\.8\.2 has no suffix"):
        Vllm().flags(SpeculationConfig("suffix"), "0.8.2")
    with pytest.raises(UsageError, match="has no rejection_sample_method"):
        Vllm().flags(SpeculationConfig("ngram", 5, options={"rejection_sample_method": "block"}), "0.8")


@pytest.mark.parametrize(
    ("method", "without", "having"),
    [
        ("suffix", ("0.9.2", "0.11.0"), ("0.11.1rc2", "0.12.0", None)),
        ("mtp", ("0.10.2",), ("0.11.0",)),
        ("eagle3", ("0.8.4",), ("0.8.5.post1",)),
        ("draft-model", ("0.10.0", "0.13.0", "0.14.1"), ("0.8.5", "0.9.2", "0.15.0", "0.1.dev1+gabc")),
        ("dflash", ("0.15.1",), ("0.19.0",)),
        ("ngram", (), ("0.8.3",)),
    ],
)
def test_methods_that_a_version_has_not(
    method: str, without: tuple[str, ...], having: tuple[str | None, ...]
) -> None:
    """Known before the server is restarted, not after it failed to start."""
    config = SpeculationConfig(method, 3, draft="d" if method in ("eagle3", "draft-model") else None)
    for version in without:
        with pytest.raises(UsageError, match=f"vLLM {re.escape(version)} has no {method}"):
            Vllm().flags(config, version)
    for version in having:
        assert json.loads(Vllm().flags(config, version)[1])["num_speculative_tokens"] == 3


@pytest.mark.parametrize(
    "words",
    [
        ("--speculative-config", '{"method":"ngram","num_speculative_tokens":5,"prompt_lookup_min":2,'
         '"prompt_lookup_max":4}'),
        ('--speculative_config={"model":"[ngram]","num-speculative-tokens":5,"prompt-lookup-min":2,'
         '"prompt-lookup-max":4}',),
        ("-sc.method", "ngram", "-sc.num_speculative_tokens=5", "-sc.prompt_lookup_min", "2",
         "-sc.prompt_lookup_max", "4"),
        ("--speculative_config.method", "ngram", "--speculative-config.num_speculative_tokens", "5",
         "--speculative-config.prompt_lookup_min=2", "--speculative-config.prompt_lookup_max=4"),
        ("--spec-method", "ngram", "--spec-tokens", "5", "--speculative-config",
         '{"prompt_lookup_min":2,"prompt_lookup_max":4}'),
        ("--speculative-model", "[ngram]", "--num-speculative-tokens", "5", "--ngram-prompt-lookup-max", "4",
         "--ngram_prompt_lookup_min", "2"),
        ("--speculative-config", '{"method":"mtp"}', "--speculative-config",
         '{"method":"ngram","num_speculative_tokens":5,"prompt_lookup_min":2,"prompt_lookup_max":4}'),
    ],
)  # fmt: skip
def test_spellings(words: tuple[str, ...]) -> None:
    assert Vllm().speculation((*SERVE, *words, "--port", "8001")) == NGRAM
    assert Vllm().without((*SERVE, *words, "--port", "8001")) == (*SERVE, "--port", "8001")


@pytest.mark.parametrize(
    ("value", "method", "draft"),
    [
        ('{"model":"yuhuili/EAGLE3-LLaMA","num_speculative_tokens":3}', "eagle3", "yuhuili/EAGLE3-LLaMA"),
        ('{"model":"small","num_speculative_tokens":3}', "draft-model", "small"),
        ('{"method":"draft_model","model":"small"}', "draft-model", "small"),
        ('{"method":"qwen3_next_mtp"}', "qwen3_next_mtp", None),
    ],
)
def test_methods(value: str, method: str, draft: str | None) -> None:
    config = Vllm().speculation((*SERVE, "--speculative-config", value))
    assert config is not None and (config.method, config.draft) == (method, draft)


def test_lists_and_deeper_settings_in_dotted_form() -> None:
    words = ("-sc.method", "ngram", "-sc.a.b", "1", "-sc.rates+", "0.9,0.7", "-sc.rates+=0.5")
    config = Vllm().speculation((*SERVE, *words))
    assert config is not None and config.options == {"a": {"b": 1}, "rates": [0.9, 0.7, 0.5]}


@pytest.mark.parametrize("word", ["None", "null", ""])
def test_turned_off(word: str) -> None:
    assert Vllm().speculation((*SERVE, "--speculative-config", word)) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--speculative-config", "{method: ngram}"), "takes a JSON object"),
        (("--speculative-config",), "stands without a value"),
        (("--spec-tokens", "--port", "1"), "stands without a value"),
        (
            ("--speculative-config", '{"method":"ngram","num_speculative_tokens":"5"}'),
            "is '5': it must be a whole",
        ),
        (("--speculative-config", '{"method":5}'), "method is 5: it must be text"),
        (("-sc.a", "1", "-sc.a.b", "2"), "as one value and as several"),
        (("--spec-", "x"), "is no option of vLLM's speculation"),
        (("--speculative-future-thing", "x"), "is no option of vLLM's speculation"),
    ],
)
def test_unreadable(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Vllm().speculation((*SERVE, *words))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        # Each is refused by vLLM 0.32 as it starts.
        (SpeculationConfig("ngram", None, 2, 4), "type --k 5"),
        (SpeculationConfig("eagle3", 3), "type --draft PATH"),
        (SpeculationConfig("suffix", 5, 2, 4), "leave out --min-n"),
        (SpeculationConfig("ngram", 5, draft="d"), "leave out --draft"),
    ],
)
def test_refused(config: SpeculationConfig, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Vllm().flags(config)


def test_traps() -> None:
    argv = (
        *SERVE,
        "--max-num-seqs",
        "32",
        "--max-num-batched-tokens=64",
        "--attention-backend",
        "FLASHINFER",
    )
    found = " | ".join(Vllm().warnings(NGRAM, argv))
    assert "asynchronous scheduling off with ngram" in found
    assert "up to 192 tokens for --max-num-seqs 32" in found
    assert "HTTP 400" in found and "FlashInfer" in found
    assert "sets both" not in found
    suffix = " | ".join(Vllm().warnings(SpeculationConfig("suffix"), SERVE))
    assert "learns across requests" in suffix and "arctic-inference" in suffix
    assert Vllm().learns(SpeculationConfig("suffix")) and not Vllm().learns(NGRAM)
    # Unknown to 0.32, as its check of the configuration said.
    old = SpeculationConfig("ngram", 5, 2, 4, options={"disable_by_batch_size": 4})
    assert any("disable_by_batch_size" in each for each in Vllm().warnings(old, SERVE, "0.32"))
    assert not any("disable_by_batch_size" in each for each in Vllm().warnings(old, SERVE, "0.8.5"))


def test_address() -> None:
    files = {"c.yaml": "host: 10.1.1.1\nport: 7000 # ours\nmodel: m\n"}
    known = Vllm(files.get)
    # VLLM_PORT is not the server's port.
    assert known.address(SERVE, {"VLLM_PORT": "1234"}) == Address("0.0.0.0", 8000)
    assert known.address((*SERVE, "--port=8001", "--host", "::1"), {}) == Address("::1", 8001)
    assert known.address((*SERVE, "--config", "c.yaml"), {}) == Address("10.1.1.1", 7000)
    assert known.address((*SERVE, "--config", "c.yaml", "--port", "1"), {}) == Address("10.1.1.1", 1)
    with pytest.raises(UsageError, match="is no port"):
        known.address((*SERVE, "--port", "$PORT"), {})


def test_a_wrappers_options_are_not_the_engines() -> None:
    argv = ("torchrun", "--port", "29500", "--speculative-config", "x", *SERVE)
    assert Vllm().address(argv, {}).port == 8000
    assert Vllm().without(argv) == argv


def test_elsewhere() -> None:
    files = {
        "on.yaml": 'port: 1\nspeculative-config: {"method": "ngram"}\n',
        "off.yaml": "port: 1\n# speculative_config: {}\n",
        "old.yaml": "spec_method: ngram\n",
    }
    known = Vllm(files.get)
    assert known.elsewhere(SERVE, {}) is None
    assert known.elsewhere((*SERVE, "--config", "off.yaml"), {}) is None
    assert "on.yaml turns speculation on" in (known.elsewhere((*SERVE, "--config", "on.yaml"), {}) or "")
    assert "old.yaml turns speculation on" in (known.elsewhere((*SERVE, "--config=old.yaml"), {}) or "")
    assert "cannot be read here" in (known.elsewhere((*SERVE, "--config", "gone.yaml"), {}) or "")


def test_phases_of_a_real_start() -> None:
    seen = list(dict.fromkeys(filter(None, map(Vllm().phase, lines("vllm-0.32-ngram.log")))))
    assert seen == [
        Phase("starting"),
        Phase("loading weights"),
        Phase("loading weights", 0, 1),
        Phase("loading weights", 1, 1),
        Phase("compiling"),
        Phase("warming up"),
        Phase("serving"),
    ]


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("Loading safetensors checkpoint shards:  56% Completed | 5/9 [00:13<00:11, 2.87s/it]",
         Phase("loading weights", 5, 9)),
        ("\rLoading safetensors checkpoint shards:   0% Completed | 0/2 [00:00<?, ?it/s]"
         "\rLoading safetensors checkpoint shards:  50% Completed | 1/2 [00:02<00:02, 2.1s/it]",
         Phase("loading weights", 1, 2)),
        ("Capturing CUDA graphs (PIECEWISE): 100%|████| 3/3 [00:04<00:00, 1.37s/it]",
         Phase("capturing graphs", 3, 3)),
        ("Capturing CUDA graph shapes:  17%|█▋   | 6/35 [00:03<00:17, 1.65it/s]",
         Phase("capturing graphs", 6, 35)),
        ("(W pid=1) INFO 07-06 10:46:16 [backends.py:1148] Dynamo bytecode transform time: 0.10 s",
         Phase("compiling")),
        ("INFO:     127.0.0.1:46836 - \"GET /health HTTP/1.1\" 200 OK", None),
        ("", None),
    ],
)  # fmt: skip
def test_phase(line: str, phase: Phase | None) -> None:
    assert Vllm().phase(line) == phase


def test_facts_of_real_starts() -> None:
    common = {"version": "0.32.0", "model_runner": "V1", "cuda_graphs": "NONE"}
    assert Vllm().facts(lines("vllm-0.32-ngram.log")) == {
        **common,
        "async_scheduling": "off",
        "kv_cache_tokens": "43648",
    }
    # This server did not say whether it schedules asynchronously: what is unknown is absent.
    assert Vllm().facts(lines("vllm-0.32-baseline.log")) == {**common, "kv_cache_tokens": "131072"}
    assert Vllm().facts(lines("vllm-0.32-suffix.log"))["async_scheduling"] == "off"


def test_facts_of_a_gpu() -> None:
    # Formats as in vllm-project/vllm issues 39734, 44106, 49011 and 38820.
    log = [
        "INFO 07-25 13:42:16 [cuda.py:476] Using FLASH_ATTN attention backend out of potential backends: [].",
        "INFO 07-25 13:42:16 [mm.py:3] Using AttentionBackendEnum.TORCH_SDPA for MMEncoderAttention.",
        "INFO 07-25 13:42:16 [vllm.py:1042] Asynchronous scheduling is enabled.",
        "INFO 06-02 00:51:40 [model_runner.py:295] Model loading took 7.64 GiB and 32.97 seconds",
        "INFO 07-25 13:42:16 [model_runner.py:5233] Loading drafter model...",
        "INFO 07-25 13:42:16 [cuda.py:476] Using FLASHINFER attention backend out of potential backends: [].",
        "config: {'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, 'x': 1}",
        "CUDAGraphMode.FULL is not supported with spec-decode; setting cudagraph_mode=PIECEWISE",
        "INFO 07-25 13:42:38 [kv_cache_utils.py:2146] GPU KV cache size: 1,823,372 tokens",
    ]
    assert Vllm().facts(log) == {
        "attention_backend": "FLASH_ATTN",
        "async_scheduling": "on",
        "model_runner": "V2",
        "cuda_graphs": "PIECEWISE",
        "kv_cache_tokens": "1823372",
    }
    v1 = "INFO 05-06 20:59:59 [gpu_model_runner.py:4879] Model loading took 12.66 GiB memory"
    assert Vllm().facts([v1]) == {"model_runner": "V1"}


def test_a_real_death() -> None:
    assert (Vllm().failure(lines("vllm-0.32-died.log")) or "").startswith(
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
    )
    assert Vllm().failure(lines("vllm-0.32-baseline.log")) is None


ROOT = "(EngineCore pid=7) ERROR 11-29 11:42:15 [core.py:9] ValueError: bad head size 80"


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ([ROOT, "RuntimeError: Engine core initialization failed. See root cause above. Failed: {}"],
         "ValueError: bad head size 80"),
        (["(Worker pid=3) ERROR 05-06 20:59:57 [w.py:1] torch.OutOfMemoryError: CUDA out of memory.", ROOT],
         "torch.OutOfMemoryError: CUDA out of memory."),
        (["INFO 07-24 03:57:37 [m.py:1] If you are running out of memory, lower max_num_seqs.", ROOT],
         "ValueError: bad head size 80"),
        (["Nov 29 10:00:00 gpu1 vllm[123]: " + ROOT], "ValueError: bad head size 80"),
        (["(APIServer pid=1) pydantic_core.ValidationError: 1 validation error for Config",
          "(APIServer pid=1) disable_by_batch_size",
          "(APIServer pid=1)   Unexpected keyword argument [type=unexpected_keyword_argument]",
          "(APIServer pid=1)     For further information visit https://errors.pydantic.dev"],
         "pydantic_core.ValidationError: 1 validation error for Config: disable_by_batch_size: "
         "Unexpected keyword argument [type=unexpected_keyword_argument]"),
        (["usage: vllm serve", "vllm serve: error: unrecognized arguments: --speculativ-config x"],
         "vllm serve: error: unrecognized arguments: --speculativ-config x"),
        (["OSError: [Errno 98] Address already in use", "INFO: bye"],
         "OSError: [Errno 98] Address already in use"),
        (["INFO: fine", "Killed"], "Killed"),
        (["INFO: fine"], None),
        ([], None),
    ],
)  # fmt: skip
def test_failure(log: list[str], message: str | None) -> None:
    assert Vllm().failure(log) == message


GUARDED, IDLE = "breakeven.guard.vllm.GuardedNgram", "breakeven.guard.vllm_idle.IdleNgram"


@pytest.mark.parametrize(("method", "drafter"), [("guard", GUARDED), ("guard-off", IDLE)])
def test_guard_is_a_class_of_ours(method: str, drafter: str) -> None:
    flag, value = Vllm().flags(SpeculationConfig(method))
    assert json.loads(value) == {"method": "custom_class", "model": drafter, "num_speculative_tokens": 10}
    assert Vllm().speculation((*SERVE, flag, value)) == SpeculationConfig(method, 10)
    assert json.loads(Vllm().flags(SpeculationConfig(method, 4))[1])["num_speculative_tokens"] == 4
    assert any("pip install" in one for one in Vllm().warnings(SpeculationConfig(method), SERVE))


def test_another_custom_class_is_no_guard() -> None:
    config = SpeculationConfig("custom_class", 3, draft="mine.Drafter")
    assert Vllm().speculation((*SERVE, *Vllm().flags(config))) == config


def test_guard_has_no_lengths_or_weights_and_needs_a_recent_version() -> None:
    with pytest.raises(UsageError, match="guard has no min_n"):
        Vllm().flags(SpeculationConfig("guard", min_n=2))
    with pytest.raises(UsageError, match="guard has no draft"):
        Vllm().flags(SpeculationConfig("guard", draft="x"))
    with pytest.raises(UsageError, match=r"vLLM 0\.29\.0 has no guard"):
        Vllm().flags(SpeculationConfig("guard"), "0.29.0")


@pytest.mark.parametrize("method", ["guard", "guard-off"])
def test_the_guards_own_settings_have_no_place_on_the_command_line(method: str) -> None:
    with pytest.raises(UsageError, match=r"--set epsilon: .* breakeven guard vllm-config --help"):
        Vllm().flags(SpeculationConfig(method, options={"epsilon": 0.01}))
    # A setting of vLLM's own goes beside the guard.
    written = Vllm().flags(SpeculationConfig(method, options={"moe-backend": "triton"}))[1]
    assert json.loads(written)["moe-backend"] == "triton"


@pytest.mark.parametrize("method", ["ngram", "suffix", "guard", "guard-off", "custom_class"])
@pytest.mark.parametrize("flag", ["--async-scheduling", "--async_scheduling"])
def test_what_asynchronous_scheduling_excludes(method: str, flag: str) -> None:
    config = SpeculationConfig(method, 5)
    assert any(f"scheduling off with {method}" in one for one in Vllm().warnings(config, SERVE))
    found = Vllm().warnings(config, (*SERVE, flag))
    assert any(f"does not start with --async-scheduling beside {method}" in one for one in found)
    assert not any("scheduling off with" in one for one in found)
    assert not any("async" in one for one in Vllm().warnings(SpeculationConfig("eagle3", 5), (*SERVE, flag)))


def test_the_guard_verifies_its_longest_draft_where_no_k_is_given() -> None:
    argv = (*SERVE, "--max-num-seqs", "32", "--max-num-batched-tokens", "64")
    assert any("up to 352 tokens" in one for one in Vllm().warnings(SpeculationConfig("guard"), argv))
    assert not any("verifies up to" in one for one in Vllm().warnings(SpeculationConfig("guard-off"), argv))


def test_the_longest_draft_of_the_guard() -> None:
    for method in ("guard", "guard-off"):
        with pytest.raises(UsageError, match="drafts of 64 tokens at most: type --k 64"):
            Vllm().flags(SpeculationConfig(method, 65))
    said = "most_tokens of BREAKEVEN_GUARD_CONFIG"
    assert any(said in one for one in Vllm().warnings(SpeculationConfig("guard", 11), SERVE))
    assert not any(said in one for one in Vllm().warnings(SpeculationConfig("guard", 10), SERVE))
