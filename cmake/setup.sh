#!/usr/bin/env bash
# Installs the tools and libraries for building pdp that are missing: bash cmake/setup.sh [--docs|--ci]
#
#   --docs  also what tools/site/build needs (MkDocs with its theme Material, Doxygen and Graphviz)
#   --ci    also what the checks of .ci/run need (clang 16, clang-tidy 16, clang-format 14, lld, Gloo, Open MPI, MPICH and Slurm), and --docs
#
# Installs with apt-get on Debian 12, Ubuntu 24.04 or later, through sudo unless run as root. On other systems, or without
# permission to install, prints what is missing and exits with 1. If nothing is missing, changes nothing and asks nothing.
set -euo pipefail

ci=false docs=false
case "${1-}" in
  '') ;;
  --docs) docs=true ;;
  --ci) ci=true docs=true ;;
  *)
    echo "usage: bash cmake/setup.sh [--docs|--ci]" >&2
    exit 2
    ;;
esac

# ---- Detection ------------------------------------------------------------------------------------------------------

has() { command -v "$1" >/dev/null 2>&1; }

# at_least VERSION MINIMUM: succeeds if VERSION is MINIMUM or newer.
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

# has_header HEADER: searches the prefixes that CMake searches: those of the system and of CMAKE_PREFIX_PATH.
has_header() {
  local prefix prefixes
  IFS=':;' read -r -a prefixes <<<"/usr:/usr/local:${CMAKE_PREFIX_PATH-}"
  for prefix in "${prefixes[@]}"; do
    [[ -n $prefix ]] || continue
    if [[ -e $prefix/include/$1 || -e $prefix/include/eigen3/$1 ]]; then return 0; fi
  done
  return 1
}

# Prints the compiler that CMake uses: $CXX, which may contain options, else c++, g++ or clang++.
compiler() {
  local name
  if [[ -n ${CXX-} ]]; then
    echo "$CXX"
    return
  fi
  for name in c++ g++ clang++; do
    if has "$name"; then
      echo "$name"
      return
    fi
  done
}

compiler_is_new() {
  local words macros
  read -r -a words <<<"$(compiler)"
  ((${#words[@]} > 0)) || return 1
  macros=$("${words[@]}" -x c++ -dM -E /dev/null 2>/dev/null) || return 1
  awk '{ value[$2] = $3 }
       END { exit !("__clang_major__" in value ? value["__clang_major__"] >= 16 : value["__GNUC__"] >= 12) }' <<<"$macros"
}

cmake_is_new() { has cmake && at_least "$(cmake --version | awk 'NR == 1 { print $3 }')" 3.25; }
has_catch() { has_header catch2/catch_all.hpp || has_header catch2/catch.hpp; }
has_material() { has mkdocs && [[ $(mkdocs build --help) == *material* ]]; }
has_clang_runtime() { compgen -G '/usr/lib/llvm-16/lib/clang/16/lib/*/libclang_rt.asan*' >/dev/null; }

has_slurm() { has srun && has_for_root slurmctld && has_for_root slurmd; }
has_for_root() { PATH=$PATH:/usr/sbin has "$1"; }

missing=() # packages, by Debian's names
wanted=()  # their descriptions

# need PACKAGE DESCRIPTION TEST...: adds the package to the missing ones if the test fails.
need() {
  local package=$1 description=$2
  shift 2
  if ! "$@"; then
    missing+=("$package")
    wanted+=("$description")
  fi
}

look() {
  missing=()
  wanted=()
  need g++ "a C++20 compiler: g++ 12 or clang 16, or newer" compiler_is_new
  need cmake "CMake 3.25 or newer" cmake_is_new
  need ninja-build "Ninja" has ninja
  need ccache "ccache" has ccache
  need libeigen3-dev "Eigen 3.4 or newer" has_header Eigen/Core
  need libfmt-dev "fmt 9 or newer" has_header fmt/format.h
  need zlib1g-dev "zlib" has_header zlib.h
  need libssl-dev "OpenSSL 1.1.1 or newer" has_header openssl/hmac.h
  need libasio-dev "standalone Asio 1.22 or newer" has_header asio.hpp
  need nlohmann-json3-dev "JSON for Modern C++ 3.10 or newer" has_header nlohmann/json.hpp
  need libxxhash-dev "xxHash 0.8 or newer" has_header xxhash.h
  need libcli11-dev "CLI11 2.1 or newer" has_header CLI/CLI.hpp
  need libdnnl-dev "oneDNN 2.0 or newer" has_header oneapi/dnnl/dnnl.h
  need libcsv-dev "libcsv 3.0 or newer" has_header csv.h
  need libzip-dev "libzip 1.7 or newer" has_header zip.h
  need catch2 "Catch2 2.13.10 or newer" has_catch
  if $ci; then
    need clang-16 "clang 16" has clang++-16
    need libclang-rt-16-dev "the sanitizers of clang 16" has_clang_runtime
    need llvm-16 "llvm-symbolizer, which names the functions in reports of sanitizers" has llvm-symbolizer-16
    need clang-tidy-16 "clang-tidy 16" has clang-tidy-16
    need lld "the linker of LLVM" has ld.lld
    need clang-format-14 "clang-format 14" has clang-format-14
    need libopenmpi-dev "Open MPI" has mpicxx.openmpi
    need openmpi-bin "Open MPI's mpirun" has mpirun.openmpi
    need libmpich-dev "MPICH" has mpicxx.mpich
    need mpich "MPICH's mpirun" has mpirun.mpich
    need libgloo-dev "Gloo" has_header gloo/context.h
    need slurm-wlm "Slurm" has_slurm
    need munge "munge" has_for_root munged
    need iproute2 "ip" has_for_root ip
  fi
  if $docs; then
    need mkdocs "MkDocs 1.4 or newer" has mkdocs
    need mkdocs-material "MkDocs' theme Material" has_material
    need doxygen "Doxygen" has doxygen
    need graphviz "Graphviz" has dot
  fi
}

# ---- Installation ---------------------------------------------------------------------------------------------------

# give_up REASON: prints the missing packages and the command that installs them, and exits with 1.
give_up() {
  {
    echo "setup: $1"
    echo "These are missing:"
    printf '  - %s\n' "${wanted[@]}"
    echo "On Debian 12 and Ubuntu 24.04 or later they come with:"
    echo "  apt-get install ${missing[*]}"
  } >&2
  exit 1
}

look
if ((${#missing[@]} == 0)); then
  echo "setup: nothing is missing"
  exit 0
fi

if [[ -n ${CXX-} ]] && ! compiler_is_new; then
  give_up "CXX names '$CXX', which is no g++ 12 or clang 16, or newer; nothing was installed."
fi
has apt-get || give_up "this system has no apt-get, so nothing was installed."

run=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
if ((EUID != 0)); then
  has sudo || give_up "installing needs root, or sudo, which is not here."
  run=(sudo "${run[@]}")
fi

echo "setup: installing ${missing[*]}"
"${run[@]}" update -qq </dev/null || give_up "apt-get update failed."
"${run[@]}" install -y -qq --no-install-recommends "${missing[@]}" </dev/null || give_up "apt-get install failed."

look
if ((${#missing[@]} != 0)); then
  give_up "what this system's packages hold is not enough; CXX names another compiler than $(compiler)."
fi
echo "setup: done"
