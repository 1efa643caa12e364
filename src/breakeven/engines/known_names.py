"""What each engine calls its methods, and its settings of speculation.

vLLM: the fields of SpeculativeConfig and its methods (`vllm/config/speculative.py`), with those of older
versions. SGLang: the arguments of `python/sglang/srt/server_args.py`, with those of older versions.
llama.cpp: `common/arg.cpp`. TensorRT-LLM: the fields of its decoding configurations
(`tensorrt_llm/llmapi/llm_args.py`, and its API reference). TGI: `launcher/src/main.rs`.
"""

from __future__ import annotations

from breakeven.engines.llamacpp_options import ALIASES, OTHERS, SWITCHES
from breakeven.engines.names import Names

VLLM = Names(
    "vLLM",
    "0.33",
    (
        *("ngram", "suffix", "eagle3", "eagle", "mtp", "draft-model", "medusa", "guard", "guard-off"),
        *("custom_class", "ngram_gpu"),
        *("draft_model", "mlp_speculator", "dflash", "dspark", "extract_hidden_states"),
        *("deepseek_mtp", "dots3_note_mtp", "mimo_mtp", "mimo_v2_mtp", "glm4_moe_mtp", "glm4_moe_lite_mtp"),
        *("glm_ocr_mtp", "glm5_next_mtp", "ernie_mtp", "nemotron_h_mtp", "exaone_moe_mtp", "exaone4_5_mtp"),
        *("qwen3_next_mtp", "qwen3_5_mtp", "qwen4_exp_mtp", "longcat_flash_mtp", "bailing_hybrid_mtp"),
        *("bailing_hybrid_v3_mtp", "minimax_m3_mtp", "kimi_k3_mtp", "pangu_ultra_moe_mtp", "step3p5_mtp"),
        *("hy_v3_mtp", "hy_v4_mtp", "gemma4_mtp", "inkling_mtp"),
    ),
    (
        *("acceptance_method", "attention_backend", "code_revision", "disable_by_batch_size"),
        *("disable_eagle_block_drop", "disable_logprobs", "disable_mqa_scorer"),
        *("disable_padded_drafter_batch", "draft_load_config", "draft_sample_method"),
        *("draft_tensor_parallel_size", "dspark_draft_topk", "enable_adaptive_verification"),
        *("enforce_eager", "index_share_for_mtp_iteration", "kv_cache_dtype", "max_model_len", "model"),
        *("moe_backend", "num_lookahead_slots", "num_speculative_tokens"),
        *("num_speculative_tokens_per_batch_size", "parallel_drafting", "posterior_alpha"),
        *("posterior_threshold", "prompt_lookup_max", "prompt_lookup_min", "quantization"),
        *("rejection_sample_method", "revision", "speculative_token_tree"),
        *("suffix_decoding_max_cached_requests", "suffix_decoding_max_spec_factor"),
        *("suffix_decoding_max_tree_depth", "suffix_decoding_min_token_prob"),
        *("synthetic_acceptance_length", "synthetic_acceptance_rate", "synthetic_acceptance_rates"),
        *("tensor_parallel_size", "use_heterogeneous_vocab", "use_local_argmax_reduction"),
    ),
)

SGLANG = Names(
    "SGLang",
    "0.5.19",
    (
        *("ngram", "eagle", "eagle3", "mtp", "draft-model", "nextn", "standalone", "dflash", "dspark"),
        *("NEXTN", "STANDALONE", "DFLASH", "DSPARK"),
    ),
    (
        *("spec-trace-dir", "speculative-accept-threshold-acc", "speculative-accept-threshold-single"),
        *("speculative-adaptive", "speculative-adaptive-config", "speculative-attention-mode"),
        *("speculative-dflash-block-size", "speculative-draft-attention-backend"),
        *("speculative-draft-kv-cache-dtype", "speculative-draft-load-format", "speculative-draft-model"),
        *("speculative-draft-model-path", "speculative-draft-model-quantization"),
        *("speculative-draft-model-revision", "speculative-draft-window-size"),
        *("speculative-dsa-topk-backend", "speculative-dspark-align-verify-tokens-to-graph-tier"),
        *("speculative-dspark-block-size", "speculative-dspark-confidence-sts-path"),
        *("speculative-dspark-sps-table-path", "speculative-eagle-topk", "speculative-moe-a2a-backend"),
        *("speculative-moe-runner-backend", "speculative-ngram-branch-length", "speculative-ngram-capacity"),
        *("speculative-ngram-external-corpus-max-tokens", "speculative-ngram-external-corpus-path"),
        *("speculative-ngram-external-sam-budget", "speculative-ngram-match-type"),
        *("speculative-ngram-max-bfs-breadth", "speculative-ngram-max-match-window-size"),
        *("speculative-ngram-max-trie-depth", "speculative-ngram-min-bfs-breadth"),
        *("speculative-ngram-min-match-window-size", "speculative-num-draft-tokens"),
        *("speculative-num-steps", "speculative-skip-dp-mlp-sync", "speculative-token-map"),
        "speculative-use-rejection-sampling",
    ),
)

_LOOKUPS = ("simple", "map-k", "map-k4v")
_SIZES = ("size-n", "size-m", "min-hits")
LLAMACPP = Names(
    "llama.cpp",
    "b10441",
    (
        *("ngram", "draft-model", "eagle3", "mtp", "none", "ngram-simple", "ngram-map-k", "ngram-map-k4v"),
        *("ngram-mod", "ngram-cache", "draft-simple", "draft-eagle3", "draft-mtp", "draft-dflash"),
    ),
    tuple(
        sorted(
            {
                *(name[2:] for name in (*ALIASES, *ALIASES.values(), *SWITCHES, *OTHERS) if name[:2] == "--"),
                *(f"spec-ngram-{one}-{part}" for one in _LOOKUPS for part in _SIZES),
                *(f"spec-ngram-mod-n-{part}" for part in ("match", "min", "max")),
                *("spec-ngram-size-n", "spec-ngram-size-m", "spec-ngram-min-hits"),
                *("spec-draft-n-max", "spec-draft-n-min"),
            }
        )
    ),
)

TRTLLM = Names(
    "TensorRT-LLM",
    "1.4",
    (
        *("ngram", "eagle3", "mtp", "draft-model", "NGram", "Eagle3", "Eagle", "MTP", "DraftTarget"),
        *("Draft_Target", "Medusa", "Lookahead", "SA", "PARD", "DFlash", "AUTO", "SaveState"),
        "User_Provided",
    ),
    (
        *("acceptance_length_threshold", "acceptance_rate_threshold", "acceptance_rate_window_size"),
        *("acceptance_window", "advanced_sampling_mode", "allow_advanced_sampling"),
        *("begin_thinking_phase_token", "draft_len_schedule", "dynamic_tree_max_topK"),
        *("eagle3_layers_to_capture", "eagle3_model_arch", "eagle3_one_model", "eagle_choices"),
        *("enable_global_pool", "enable_penalty", "end_thinking_phase_token", "file_prefix"),
        *("global_pool_size", "greedy_sampling", "is_keep_all", "is_public_pool", "is_use_oldest"),
        *("load_format", "mask_token_id", "max_concurrency", "max_draft_len", "max_matching_ngram_size"),
        *("max_ngram_size", "max_non_leaves_per_layer", "max_total_draft_tokens"),
        *("max_verification_set_size", "max_window_size", "medusa_choices", "moe_backend", "moe_tactic"),
        *("mtp_eagle_one_model", "num_eagle_layers", "num_medusa_heads", "num_nextn_predict_layers"),
        *("output_directory", "posterior_threshold", "prompt_lookup_num_tokens"),
        *("pytorch_eagle_weights_path", "pytorch_weights_path", "relaxed_delta", "relaxed_topk", "sa_config"),
        *("spec_dec_variant", "speculative_model", "speculative_model_dir", "target_layer_ids"),
        *("use_dynamic_tree", "use_mtp_vanilla", "use_rejection_sampling"),
        *("use_relaxed_acceptance_for_thinking", "write_interval"),
    ),
)

TGI = Names("TGI", "3.3", ("ngram", "medusa"))
