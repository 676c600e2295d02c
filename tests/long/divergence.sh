#!/usr/bin/env bash
# Lets the ranks of small worlds diverge, a hundred times in each way and over each communicator, and checks that all ranks notice within
# two seconds: tests/long/divergence.sh
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! { cmake --preset debug && cmake --build --preset debug --target test_comm; } >"$work/log" 2>&1; then
  tail -n 40 "$work/log"
  exit 1
fi

build/debug/tests/test_comm "[divergence][.long]" | tee "$work/out"
echo "passed: $(grep -c '"campaign": "divergence"' "$work/out") kinds of divergence and communicator, each noticed within 2 s in all runs"
