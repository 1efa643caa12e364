#!/bin/sh
# Plans an EAGLE-3 head for Kimi-K2.5 on two machines. Writes here; options such as --json can be added.
cd "$(dirname "$0")" || exit
breakeven eagle plan --model kimi-k2.5 --hardware rtx-pro-6000-ws --tp 8 --step-ms 12.1 --engine vllm \
  --disk 15TB --gpu-hours 2688 --out rtx-pro-6000-next-steps-eagle.md
breakeven eagle plan --model kimi-k2.5 --hardware h200-sxm --tp 8 --gpus 32 --engine vllm \
  --samples 600000 --tokens-per-sample 10000 --epochs 1 --steps 4 --draft-vocabulary 0 --generation-concurrency 512 \
  --disk 100TB --gpu-hours 2000 --out h200-next-steps-eagle.md
