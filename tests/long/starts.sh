#!/usr/bin/env bash
# Runs mnist_zero repeatedly with more ranks than cores, and checks that every run succeeds:
#   tests/long/starts.sh [STARTS [RANKS]]      200 starts of 128 ranks unless given
# Builds build/release/examples/mnist_zero first. If PDP_TEST_BUILD names a build folder, its examples/mnist_zero is used instead.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/../.."

starts=${1-200}
ranks=${2-128}
[[ $starts =~ ^[1-9][0-9]*$ && $ranks =~ ^[1-9][0-9]*$ ]] || { echo "usage: tests/long/starts.sh [STARTS [RANKS]]" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=${PDP_TEST_BUILD-}
if [[ -z $build ]]; then
  build=build/release
  if ! { cmake --preset release && cmake --build --preset release --target mnist_zero; } >"$work/log" 2>&1; then
    tail -n 40 "$work/log"
    exit 1
  fi
fi
program=$(realpath -e "$build/examples/mnist_zero")

failed=0
for ((start = 1; start <= starts; ++start)); do
  begin=$(date +%s%N)
  if ! "$program" --ranks "$ranks" --batch-size 2 --epochs 1 \
    >"$work/out" 2>"$work/err" </dev/null; then
    failed=$((failed + 1))
    echo "start $start failed: $(head -c 2000 "$work/err")"
  fi
  echo $((($(date +%s%N) - begin) / 1000000)) >>"$work/times"
done
sort -n -o "$work/times" "$work/times"
median=$(sed -n "$(((starts + 1) / 2))p" "$work/times")
slowest=$(tail -n 1 "$work/times")

echo "{\"campaign\": \"starts\", \"ranks\": $ranks, \"cores\": $(nproc), \"starts\": $starts, \"failed\": $failed, \"median_ms\": $median, \"slowest_ms\": $slowest}"
((failed == 0)) || exit 1
echo "passed: $starts starts of $ranks ranks on $(nproc) cores, the median in $median ms, the slowest in $slowest ms"
