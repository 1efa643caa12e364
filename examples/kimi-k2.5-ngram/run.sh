#!/bin/sh
# Diagnoses the measured slowdown; options such as --json are passed on.
exec breakeven diagnose "$(dirname "$0")" "$@"
