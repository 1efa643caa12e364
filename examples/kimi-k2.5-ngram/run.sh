#!/bin/sh
# Explains the measured slowdown; options such as --json or --html FILE are passed on.
exec breakeven explain \
  --speeds coding=62.6,46.4 --speeds math=78.0,64.8 \
  --speeds structured=76.1,65.5 --speeds explanatory=79.5,72.5 \
  --acceptance 17-31% \
  --engine vllm --engine-version 0.16 \
  --speculative-config '{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}' \
  --model kimi-k2.5 --hardware rtx-pro-6000-ws --tp 8 \
  --profiled all_reduce=6.2 "$@"
