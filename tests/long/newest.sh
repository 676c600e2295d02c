#!/usr/bin/env bash
# Compiles the headers and the examples against the newest fmt, Asio, Eigen, CLI11 and JSON for Modern C++ in Debian, with g++ and, if it is
# installed, clang 16. Headers that need CUDA, NCCL, MPI, Gloo, oneDNN, libcsv or libzip are left out. Downloads the packages from this machine's Debian mirror
# and unpacks them to a temporary folder.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/../.."

packages=(libfmt-dev libasio-dev libeigen3-dev libcli11-dev nlohmann-json3-dev)

skip() {
  echo "skipped: $1"
  exit 77
}

for tool in apt-get apt-cache dpkg-deb g++; do
  command -v "$tool" >/dev/null || skip "this machine has no $tool"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- The packages: apt with separate settings, whose only sources are the development suites of the mirror ------------

mirror=$(apt-get indextargets 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' --format '$(SITE)' 2>/dev/null | head -n 1)
[[ -n $mirror ]] || skip "apt knows no mirror of Debian"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -e $keys ]] || skip "there is no $keys"
mkdir -p "$work"/apt/{lists/partial,cache/archives/partial,parts} "$work/packages"
touch "$work/apt/status"
for suite in sid experimental; do
  echo "deb [signed-by=$keys] $mirror $suite main"
done >"$work/apt/sources.list"
cat >"$work/apt.conf" <<CONF
Dir::State "$work/apt";
Dir::State::status "$work/apt/status";
Dir::State::Lists "$work/apt/lists";
Dir::Cache "$work/apt/cache";
Dir::Etc::sourcelist "$work/apt/sources.list";
Dir::Etc::sourceparts "$work/apt/parts";
Dir::Etc::preferencesparts "$work/apt/parts";
Acquire::Languages "none";
APT::Sandbox::User "root";
CONF
export APT_CONFIG=$work/apt.conf
if ! apt-get update -qq >"$work/log" 2>&1; then
  tail -n 5 "$work/log"
  skip "the mirror cannot be reached, or has no development suites"
fi

newest=()
for package in "${packages[@]}"; do
  version=$(apt-cache madison "$package" | awk -F'|' '{ gsub(/ /, "", $2); print $2 }' | sort -V | tail -n 1)
  [[ -n $version ]] || skip "the mirror has no package $package"
  newest+=("$package=$version")
done
(cd "$work/packages" && apt-get download -qq "${newest[@]}") >"$work/log" 2>&1 || { cat "$work/log"; skip "the packages cannot be downloaded"; }
for package in "$work"/packages/*.deb; do
  dpkg-deb -x "$package" "$work/root"
done
printf '%s\n' "${newest[@]}"

# ---- The sources ----------------------------------------------------------------------------------------------------

# Headers that need further libraries are left to other tests.
(cd include && find pdp -name '*.hpp' ! -path 'pdp/cuda/*' ! -path '*/cuda_thread*' ! -path '*/nccl*' ! -path '*/gloo*' ! -path '*/mpi*' \
  ! -path '*/onednn*' ! -path '*/csv*' ! -path '*/npz*') | sort | sed 's/.*/#include <&>/' >"$work/headers.cpp"
sources=("$work/headers.cpp" examples/*.cpp examples/common/*.cpp)

include=$work/root/usr/include
options=(-std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Werror -DFMT_HEADER_ONLY -DASIO_NO_DEPRECATED
  '-DPDP_EXAMPLE_DATA="."' -Iinclude -Iexamples -isystem "$include" -isystem "$include/eigen3")
compilers=(g++)
if command -v clang++-16 >/dev/null; then compilers+=(clang++-16); fi

# Checks that each compiler includes the new headers and not those of the system, which would make this test meaningless.
for compiler in "${compilers[@]}"; do
  for source in "$work/headers.cpp" examples/common/command_line.cpp; do
    "$compiler" "${options[@]}" -Wno-unused-command-line-argument -M "$source"
  done | tr -s ' \\' '\n' >"$work/used"
  for header in fmt/format.h asio/io_context.hpp eigen3/Eigen/Core nlohmann/json.hpp CLI/CLI.hpp; do
    if ! grep -qxF "$include/$header" "$work/used" || grep -qxF "/usr/include/$header" "$work/used"; then
      echo "$compiler does not take the new $header" >&2
      exit 1
    fi
  done
done

failed=0
for compiler in "${compilers[@]}"; do
  for source in "${sources[@]}"; do
    if ! "$compiler" "${options[@]}" "$source"; then
      echo "$compiler does not compile $(basename "$source")" >&2
      failed=1
    fi
  done
done
((failed == 0)) || exit 1
echo "passed: $(wc -l <"$work/headers.cpp") headers and $((${#sources[@]} - 1)) sources of the examples compile with ${compilers[*]} and ${newest[*]}"
