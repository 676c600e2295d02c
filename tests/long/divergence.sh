#!/usr/bin/env bash
# Makes ranks of small worlds diverge into a deadlock, 100 times for each kind of divergence and each CPU communicator that detects it.
# Checks that all ranks notice within two seconds: tests/long/divergence.sh
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! { cmake --preset debug && cmake --build --preset debug --target test_comm; } >"$work/log" 2>&1; then
  tail -n 40 "$work/log"
  exit 1
fi

# Version 2 of Catch2 also succeeds if no test has the tags.
least=45  # 9 kinds over 5: Thread, Shm, Tcp, and the hierarchical communicator on hosts in two layouts
build/debug/tests/test_comm "[divergence][.long]" | tee "$work/out"
count=$(grep -c '"campaign": "divergence"' "$work/out" || true)
if ((count < least)); then
  echo "test_comm has checked $count kinds of divergence and communicator; expected at least $least" >&2
  exit 1
fi
echo "passed: $count kinds of divergence and communicator, each noticed within 2 s in all runs"
