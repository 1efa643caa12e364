#!/bin/sh
# Diagnoses the measured slowdown, from the root of the repository; options such as --json are passed on.
cd "$(dirname "$0")/../.." && exec breakeven diagnose examples/kimi-k2.5-ngram "$@"
