#!/usr/bin/env bash
# Starts mnist_zero with more ranks than there are cores, and checks that each start succeeds:
#   tests/long/starts.sh [STARTS [RANKS]]      200 starts of 128 ranks unless given
# The program is build/release/examples/mnist_zero, which it builds if it is missing.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/../.."

starts=${1-200}
ranks=${2-128}
[[ $starts =~ ^[1-9][0-9]*$ && $ranks =~ ^[1-9][0-9]*$ ]] || { echo "usage: tests/long/starts.sh [STARTS [RANKS]]" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! { cmake --preset release && cmake --build --preset release --target mnist_zero; } >"$work/log" 2>&1; then
  tail -n 40 "$work/log"
  exit 1
fi

failed=0
slowest=0
for ((start = 1; start <= starts; ++start)); do
  begin=$(date +%s%N)
  if ! build/release/examples/mnist_zero --ranks "$ranks" --batch-size 2 --epochs 1 \
    >"$work/out" 2>"$work/err" </dev/null; then
    failed=$((failed + 1))
    echo "start $start failed: $(head -c 2000 "$work/err")"
  fi
  took=$((($(date +%s%N) - begin) / 1000000))
  ((took <= slowest)) || slowest=$took
done

echo "{\"campaign\": \"starts\", \"ranks\": $ranks, \"cores\": $(nproc), \"starts\": $starts, \"failed\": $failed, \"slowest_ms\": $slowest}"
((failed == 0)) || exit 1
echo "passed: $starts starts of $ranks ranks on $(nproc) cores, the slowest in $slowest ms"
