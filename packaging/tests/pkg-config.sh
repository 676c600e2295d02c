#!/usr/bin/env bash
# Installs pdp, moves the installed tree, and builds and runs programs with the flags that pkg-config gives:
#   packaging/tests/pkg-config.sh
# Exits with 77 if pkg-config is not installed.
set -euo pipefail

root=$(realpath "$(dirname "$(realpath "$0")")/../..")
program=$root/packaging/conan/test_package/train.cpp

skip() {
  echo "skipped: $1"
  exit 77
}
for tool in pkg-config cmake ninja g++; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf '%s\n' "pkg-config: $1" "${@:2}" >&2
  exit 1
}

# logs COMMAND...: runs the command with its output in $work/log, and prints the log if the command fails.
logs() { "$@" >"$work/log" 2>&1 || fail "this command fails: $*" "$(<"$work/log")"; }

logs cmake -S "$root" -B "$work/build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D PDP_BUILD_TESTS=OFF -D PDP_BUILD_EXAMPLES=OFF -D PDP_BUILD_TOOLS=OFF \
  -D PDP_BUILD_BENCH=OFF
logs cmake --install "$work/build" --prefix "$work/first"
prefix=$work/second
mv "$work/first" "$prefix"
export PKG_CONFIG_PATH=$prefix/share/pkgconfig

# ---- The files ------------------------------------------------------------------------------------------------------

modules=(pdp)
for targets in "$prefix"/share/cmake/pdp/pdp-*-targets.cmake; do
  name=${targets##*/}
  modules+=("${name%-targets.cmake}")
done
version=$(sed -n 's/.* version\[\] = "\(.*\)";/\1/p' "$root/include/pdp/core/version.hpp")
for module in "${modules[@]}"; do
  [[ -e $prefix/share/pkgconfig/$module.pc ]] || fail "the target of $module is installed, but $module.pc is not"
  logs pkg-config --validate "$module"
  logs pkg-config --print-errors --exists "$module = $version"
  if grep -F -e "$work" -e "$root" "$prefix/share/pkgconfig/$module.pc"; then fail "$module.pc names a folder of the build, so it cannot be moved"; fi
  [[ -e $(pkg-config --variable=sources "$module")/core/cpu.cpp ]] || fail "the variable sources of $module does not name the folder of pdp's sources"
done
(($(find "$prefix/share/pkgconfig" -name '*.pc' | wc -l) == ${#modules[@]})) || fail "there are modules without a target"
echo "modules: ${modules[*]}"

# ---- Programs -------------------------------------------------------------------------------------------------------

# has MODULE: returns whether the module is installed.
has() { [[ " ${modules[*]} " == *" $1 "* ]]; }

# trains COMPILER MODULE...: builds the program with the communicators of these modules, and trains on two ranks with each of them. The program
# fails if the loss does not fall.
trains() {
  local definitions=() flags module name
  for module in "${@:2}"; do
    name=${module#pdp-}
    definitions+=("-DWITH_${name^^}")
    if [[ $name == onednn ]]; then definitions+=(-DINCLUDE_ONEDNN); fi
  done
  read -r -a flags <<<"$(pkg-config --cflags --libs "${@:2}")"
  logs "$1" -std=c++20 -O1 -Wall -Wextra -Werror "${definitions[@]}" "$program" -o "$work/train" "${flags[@]}"
  for module in "${@:2}"; do
    name=${module#pdp-}
    case $name in
      pdp) logs "$work/train" --threads 2 ;;
      onednn | csv | npz) continue ;;
      mpi) logs "$work/train" --comm mpi ;;
      *) logs "$work/train" --ranks 2 --comm "$name" ;;
    esac
    echo "$1, $(<"$work/log")"
  done
}

for module in pdp-shm pdp-tcp pdp-hierarchical; do
  has "$module" || skip "pdp was installed without ${module#pdp-}, which needs OpenSSL and Asio"
done
read -r -a flags <<<"$(pkg-config --cflags --libs pdp)"
[[ " ${flags[*]} " != *" -lcrypto "* ]] || fail "pdp.pc links libcrypto, which only the components of processes need"

optional=()
for module in pdp-gloo pdp-mpi pdp-onednn pdp-csv pdp-npz; do
  if has "$module"; then optional+=("$module"); else echo "left out: $module, which is not installed"; fi
done
trains g++ pdp pdp-shm pdp-tcp pdp-hierarchical "${optional[@]}"
if command -v clang++-16 >/dev/null; then trains clang++-16 pdp-hierarchical; fi

# The kernels need nvcc, so these modules only name the headers and libraries.
if has pdp-cuda; then
  printf '#include <cublasLt.h>\n#include <cuda_runtime_api.h>\nint main() { int n; return cudaGetDeviceCount(&n) == cudaSuccess && CUBLAS_VER_MAJOR == 0; }\n' \
    >"$work/gpu.cpp"
  read -r -a flags <<<"$(pkg-config --cflags --libs pdp-cuda)"
  [[ " ${flags[*]} " != *cublasLt* ]] || fail "pdp-cuda.pc links cuBLASLt, which pdp loads when it first uses a GPU"
  logs g++ "$work/gpu.cpp" -o "$work/gpu" "${flags[@]}"
  echo "a program links what pdp-cuda names"
fi
if has pdp-nccl; then
  printf '#include <nccl.h>\nint main() { int version; return ncclGetVersion(&version) != ncclSuccess; }\n' >"$work/gpus.cpp"
  read -r -a flags <<<"$(pkg-config --cflags --libs pdp-nccl)"
  logs g++ "$work/gpus.cpp" -o "$work/gpus" "${flags[@]}"
  echo "a program links what pdp-nccl names"
fi
echo "pkg-config: done in $SECONDS s"
