#!/usr/bin/env bash
# Runs every fuzzer (tests/*/fuzz_*.cpp) under AddressSanitizer and UBSan, and prints one JSON object a line for each:
#   tests/long/fuzz.sh [SECONDS]      for each fuzzer; 60 unless given
# An input that makes a fuzzer fail is kept in build/fuzz-findings. CXX: a clang with libFuzzer (default: clang++-16).
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/../.."

seconds=${1-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "usage: tests/long/fuzz.sh [SECONDS]" >&2; exit 2; }
compiler=${CXX:-clang++-16}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' >"$work/probe.cpp"
if ! "$compiler" -fsanitize=fuzzer,address "$work/probe.cpp" -o "$work/probe" &>/dev/null; then
  echo "skipped: $compiler is not a clang with libFuzzer; install clang-16 and libclang-rt-16-dev, or set CXX"
  exit 77
fi

echo "building with $compiler"
if ! { cmake -S . -B "$work/build" -G Ninja -D CMAKE_BUILD_TYPE=Debug -D "CMAKE_CXX_COMPILER=$compiler" -D CMAKE_CXX_FLAGS_DEBUG="-g1 -O1" \
  -D PDP_BUILD_TESTS=ON -D PDP_BUILD_EXAMPLES=OFF -D PDP_LINK_ONEDNN=OFF -D PDP_SANITIZE=address -D PDP_BUILD_FUZZERS=ON &&
  cmake --build "$work/build" --target fuzzers; } >"$work/log" 2>&1; then
  tail -n 40 "$work/log"
  echo "the fuzzers do not build" >&2
  exit 1
fi

findings=build/fuzz-findings
failed=()
fuzzers=0
runs=0
for source in tests/*/fuzz_*.cpp; do
  name=$(basename "$source" .cpp)
  seeds=$(dirname "$source")/seeds/$name
  corpus=$work/corpus/$name
  mkdir -p "$corpus" "$findings"
  [[ ! -d $seeds ]] || cp "$seeds"/* "$corpus"
  status=0
  "$work/build/tests/$name" "$corpus" -max_total_time="$seconds" -max_len=4096 -malloc_limit_mb=64 -rss_limit_mb=2048 -timeout=30 \
    -print_final_stats=1 -artifact_prefix="$findings/$name-" >"$work/log" 2>&1 || status=$?
  stat() { sed -n "s/^stat::$1: *//p" "$work/log" | tail -n 1; }
  units=$(stat number_of_executed_units)
  if ((status == 0 && ${units:-0} == 0)); then
    echo "$name ended without an input" >>"$work/log"
    status=1
  fi
  covered=$(sed -n 's/^#[0-9]*.* cov: \([0-9]*\).*/\1/p' "$work/log" | tail -n 1)
  printf '{"fuzzer": "%s", "seconds": %d, "inputs": %d, "covered": %d, "corpus": %d, "peak_rss_mb": %d, "failed": %s}\n' "$name" "$seconds" \
    "${units:-0}" "${covered:-0}" "$(find "$corpus" -type f | wc -l)" "$(stat peak_rss_mb || true)" "$( ((status == 0)) && echo false || echo true)"
  if ((status != 0)); then
    failed+=("$name")
    tail -n 40 "$work/log" >&2
  fi
  fuzzers=$((fuzzers + 1))
  runs=$((runs + ${units:-0}))
done
rmdir --ignore-fail-on-non-empty "$findings"

if ((${#failed[@]} > 0)); then
  echo "failed: ${failed[*]}; the inputs are in $findings" >&2
  exit 1
fi
echo "passed: $fuzzers fuzzers, $seconds s each, $runs inputs in all; $("$compiler" --version | head -n 1)"
