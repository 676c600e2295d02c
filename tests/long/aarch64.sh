#!/usr/bin/env bash
# Builds tests for aarch64 with the cross compiler of Debian and runs them in the emulator qemu-user:
#   tests/long/aarch64.sh [FOLDER...]      (core cpu nn loss optim plan strategy verify if none is named)
# A FOLDER is one of tests/. Its tests must not depend on speed, because the emulator is about ten times slower than a processor. The libraries
# for aarch64 come from the apt sources of this machine. Needs the packages of the preset aarch64 (see docs/build.md), 3 GB of disk and 20 to 60
# minutes on two cores. If PDP_TEST_BUILD names a build folder of that preset, the tests are built and run there.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/../.."

folders=("$@")
(($# > 0)) || folders=(core cpu nn loss optim plan strategy verify)

skip() {
  echo "skipped: $1"
  exit 77
}
for tool in cmake ninja apt-get dpkg-deb; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done
command -v aarch64-linux-gnu-g++ >/dev/null || skip "there is no compiler for aarch64 (g++-aarch64-linux-gnu)"
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || skip "there is no emulator of aarch64 (qemu-user)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=${PDP_TEST_BUILD-}
if [[ -z $build ]]; then
  build=$work/build
  status=0
  cmake/toolchains/aarch64_root.sh "$work/root" || status=$?
  ((status != 3)) || skip "the packages for aarch64 are not available here"
  ((status == 0)) || exit 1
  if ! CXXFLAGS=-Werror cmake --preset aarch64 -B "$build" -D CMAKE_FIND_ROOT_PATH="$work/root" >"$work/log" 2>&1; then
    tail -n 40 "$work/log"
    exit 1
  fi
fi

for folder in "${folders[@]}"; do
  if ! cmake --build "$build" --target "test_$folder" >"$work/log" 2>&1; then
    tail -n 60 "$work/log"
    exit 1
  fi
  echo "test_$folder is compiled after $SECONDS s"
done
machine=$(file -bL "$build/tests/test_${folders[0]}" 2>/dev/null || true)
[[ $machine == *aarch64* || -z $machine ]] || { echo "test_${folders[0]} is no program for aarch64: $machine"; exit 1; }

labels=$(IFS='|'; echo "${folders[*]}")
ctest --test-dir "$build" --label-regex "^($labels)\$" --parallel "$(nproc)" --output-on-failure --no-tests=error >"$work/log" 2>&1 || {
  tail -n 100 "$work/log"
  exit 1
}
count=$(sed -n 's/.* tests passed, 0 tests failed out of \([0-9]*\).*/\1/p' "$work/log")
[[ -n $count ]] || { tail -n 20 "$work/log"; exit 1; }
echo "passed: $count tests of ${folders[*]} for aarch64, compiled with g++ $(aarch64-linux-gnu-g++ -dumpfullversion), in $("$emulator" --version | head -n 1)"
