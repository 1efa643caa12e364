"""llama-server's options and variables that concern speculation, by all their names (`common/arg.cpp`)."""

from __future__ import annotations

ALIASES = {
    "--draft": "--draft-max",
    "--draft-n": "--draft-max",
    "--draft-n-min": "--draft-min",
    "-md": "--spec-draft-model",
    "--model-draft": "--spec-draft-model",
    "-hfd": "--spec-draft-hf",
    "-hfrd": "--spec-draft-hf",
    "--hf-repo-draft": "--spec-draft-hf",
    "-td": "--spec-draft-threads",
    "--threads-draft": "--spec-draft-threads",
    "-tbd": "--spec-draft-threads-batch",
    "--threads-batch-draft": "--spec-draft-threads-batch",
    "-Cd": "--spec-draft-cpu-mask",
    "--cpu-mask-draft": "--spec-draft-cpu-mask",
    "-Crd": "--spec-draft-cpu-range",
    "--cpu-range-draft": "--spec-draft-cpu-range",
    "--cpu-strict-draft": "--spec-draft-cpu-strict",
    "--prio-draft": "--spec-draft-prio",
    "--poll-draft": "--spec-draft-poll",
    "-Cbd": "--spec-draft-cpu-mask-batch",
    "--cpu-mask-batch-draft": "--spec-draft-cpu-mask-batch",
    "-Crbd": "--spec-draft-cpu-range-batch",
    "--cpu-range-batch-draft": "--spec-draft-cpu-range-batch",
    "--cpu-strict-batch-draft": "--spec-draft-cpu-strict-batch",
    "--prio-batch-draft": "--spec-draft-prio-batch",
    "--poll-batch-draft": "--spec-draft-poll-batch",
    "-otd": "--spec-draft-override-tensor",
    "--override-tensor-draft": "--spec-draft-override-tensor",
    "-cmoed": "--spec-draft-cpu-moe",
    "--cpu-moe-draft": "--spec-draft-cpu-moe",
    "-ncmoed": "--spec-draft-n-cpu-moe",
    "--n-cpu-moe-draft": "--spec-draft-n-cpu-moe",
    "--spec-draft-ncmoe": "--spec-draft-n-cpu-moe",
    "--draft-p-split": "--spec-draft-p-split",
    "--draft-p-min": "--spec-draft-p-min",
    "-devd": "--spec-draft-device",
    "--device-draft": "--spec-draft-device",
    "-ngld": "--spec-draft-ngl",
    "--gpu-layers-draft": "--spec-draft-ngl",
    "--n-gpu-layers-draft": "--spec-draft-ngl",
    "-ctkd": "--spec-draft-type-k",
    "--cache-type-k-draft": "--spec-draft-type-k",
    "-ctvd": "--spec-draft-type-v",
    "--cache-type-v-draft": "--spec-draft-type-v",
    "-cd": "--ctx-size-draft",
    "-lcs": "--lookup-cache-static",
    "-lcd": "--lookup-cache-dynamic",
}
"""Short and older names, by the name that is read and written."""
OTHERS = ("--draft-max", "--draft-min", "--ctx-size-draft", "--lookup-cache-static", "--lookup-cache-dynamic")
"""Beside those that begin with --spec-."""
SWITCHES = (
    *("--spec-default", "--spec-draft-cpu-moe"),
    *("--spec-draft-backend-sampling", "--no-spec-draft-backend-sampling"),
)
PRESETS = ("--fim-qwen-7b-spec", "--fim-qwen-14b-spec")
"""Options that name a model and a draft model at once."""
VARIABLES = ("LLAMA_ARG_SPEC_TYPE", "LLAMA_ARG_SPEC_DRAFT_MODEL", "LLAMA_ARG_SPEC_DRAFT_HF_REPO")
"""Environment variables that turn speculation on."""
