#!/usr/bin/env bash
# Compiles the headers for musl, the C library of Alpine Linux, with the clang, libc++ and musl of the PyPI package ziglang. Headers that need
# CUDA, NCCL, MPI, Gloo, oneDNN, libcsv or libzip are left out.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/../.."

skip() {
  echo "skipped: $1"
  exit 77
}

[[ $(uname -m) == x86_64 ]] || skip "this test is for x86-64"
command -v python3 >/dev/null || skip "this machine has no python3"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/python" >"$work/log" 2>&1 || skip "python3 cannot make a virtual environment"
"$work/python/bin/pip" install -q ziglang >"$work/log" 2>&1 || { tail -n 3 "$work/log"; skip "pip cannot install ziglang"; }
export ZIG_GLOBAL_CACHE_DIR=$work/cache ZIG_LOCAL_CACHE_DIR=$work/cache
zig=("$work/python/bin/python" -m ziglang)

# Copies the system's headers of other libraries and of the kernel, because glibc's headers are in the same folder.
mkdir "$work/include"
for name in zlib.h zconf.h fmt asio asio.hpp nlohmann linux asm-generic openssl; do
  [[ -e /usr/include/$name ]] || skip "this machine has no /usr/include/$name"
  cp -rL "/usr/include/$name" "$work/include/"
done
for name in asm openssl; do
  [[ ! -e /usr/include/x86_64-linux-gnu/$name ]] || cp -rL "/usr/include/x86_64-linux-gnu/$name" "$work/include/"
done

(cd include && find pdp -name '*.hpp' ! -path 'pdp/cuda/*' ! -path '*/cuda_thread*' ! -path '*/nccl*' ! -path '*/gloo*' ! -path '*/mpi*' \
  ! -path '*/onednn*' ! -path '*/csv*' ! -path '*/npz*') | sort | sed 's/.*/#include <&>/' >"$work/headers.cpp"
count=$(wc -l <"$work/headers.cpp")
cat >>"$work/headers.cpp" <<'CPP'
#include "headers/use.hpp"
#ifdef __GLIBC__
#error "this is glibc"
#endif
int main() {}
CPP
"${zig[@]}" c++ -target x86_64-linux-musl -std=c++20 -Wall -Wextra -Wconversion -Werror -DFMT_HEADER_ONLY \
  -DASIO_HAS_CO_AWAIT=1 -DASIO_HAS_STD_COROUTINE=1 -Iinclude -Itests -isystem "$work/include" -isystem /usr/include/eigen3 \
  -c "$work/headers.cpp" -o "$work/headers.o"
echo "passed: $count headers compile for musl with $("${zig[@]}" c++ --version | head -n 1), zig $("${zig[@]}" version)"
