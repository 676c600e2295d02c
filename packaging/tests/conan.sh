#!/usr/bin/env bash
# Creates pdp's Conan package without a network, checks what the recipe refuses, and builds and runs programs that use the package:
#   packaging/tests/conan.sh
# The dependencies come from conan-index, whose recipes find the packages of Debian. Needs Conan 2, g++ 12 and Ninja; clang++-16, Gloo, Open MPI,
# oneDNN, libcsv, libzip and nvcc are used if they are installed. Exits with 77 if Conan is not installed.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")

skip() {
  echo "skipped: $1"
  exit 77
}
command -v conan >/dev/null || skip "conan is not installed"
[[ $(conan --version) =~ ^Conan\ version\ 2\. ]] || skip "this test needs Conan 2; found $(conan --version)"
for tool in g++ ninja pkg-config git; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CONAN_HOME=$work/home CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

fail() {
  printf '%s\n' "conan: $1" "${@:2}" >&2
  exit 1
}

section() { echo "== $1 (at $SECONDS s)"; }

# logs COMMAND...: runs the command with its output in $work/log, and prints the log if the command fails.
logs() { "$@" >"$work/log" 2>&1 || fail "this command fails: $*" "$(<"$work/log")"; }

# logged TEXT: fails unless the log holds TEXT.
logged() { grep -F -- "$1" "$work/log" >/dev/null || fail "the last command does not say: $1" "$(<"$work/log")"; }

# not_logged TEXT: fails if the log holds TEXT.
not_logged() { if grep -F -- "$1" "$work/log" >/dev/null; then fail "the last command says, and should not: $1" "$(<"$work/log")"; fi; }

installed() { dpkg-query -W "$1" >/dev/null 2>&1; }

# ---- Configuration --------------------------------------------------------------------------------------------------

case $(uname -m) in
  x86_64) arch=x86_64 ;;
  aarch64) arch=armv8 ;;
  *) skip "Conan's recipes of this test have no name for the processor $(uname -m)" ;;
esac

# profile NAME COMPILER VERSION COMMAND: writes a profile to $work/NAME.
profile() {
  cat >"$work/$1" <<END
[settings]
os=Linux
arch=$arch
compiler=$2
compiler.version=$3
compiler.libcxx=libstdc++11
compiler.cppstd=20
build_type=Release
[conf]
tools.build:jobs=$CMAKE_BUILD_PARALLEL_LEVEL
tools.build:compiler_executables={"cpp": "$4"}
tools.cmake.cmaketoolchain:generator=Ninja
END
}
profile gcc gcc "$(g++ -dumpversion | cut -d . -f 1)" g++
profiles=(gcc)
if command -v clang++-16 >/dev/null; then
  profile clang clang 16 clang++-16
  profiles+=(clang)
fi

# Conan writes to the folders of recipes, so it gets a copy of the files under version control and of new ones.
mkdir "$work/pdp"
git -C "$root" ls-files -z --cached --others --exclude-standard | tar -C "$root" --null --files-from=- -c --ignore-failed-read | tar -C "$work/pdp" -x
cd "$work/pdp"
test_package=packaging/conan/test_package

logs conan remote disable conancenter
logs conan remote add system "$here/conan-index" --type=local-recipes-index

# ---- The package ----------------------------------------------------------------------------------------------------

section "conan create"
logs conan create . --profile:all="$work/gcc" --build=missing
for communicator in thread hierarchical tcp shm; do logged "2 ranks of $communicator, loss"; done
version=$(sed -n 's/.* version\[\] = "\(.*\)";/\1/p' include/pdp/core/version.hpp)
package=$(conan cache path "$(conan list "pdp/$version:*" --format=compact | grep -o "pdp/$version#[0-9a-f]*:[0-9a-f]*" | head -n 1)")
diff -r include "$package/include" || fail "the package has other headers"
diff -r src "$package/share/pdp/src" || fail "the package has other sources"
cmp LICENSE "$package/licenses/LICENSE" || fail "the package has no licence"
[[ ! -e $package/share/pdp/cmake && -z $(find "$package" -name 'pdp-config*') ]] || fail "the package has a configuration file of its own beside Conan's"
# The headers of dependencies must be those of Conan's packages.
deps=$(ninja -C "$(dirname "$(find "$work/pdp/$test_package/build" -name build.ninja)")" -t deps)
for header in asio/ip/tcp.hpp Eigen/Core nlohmann/json.hpp xxhash.h; do
  [[ $deps == *"$CONAN_HOME/p/"*"/include/$header"* ]] || fail "the program was not compiled with Conan's $header"
  [[ $deps != *" /usr/include/$header"* && $deps != *" /usr/include/eigen3/$header"* ]] || fail "the program was compiled with the system's $header"
done
echo "created pdp/$version with $(find "$package/include" -type f | wc -l) headers"

# refuses TEXT ARGUMENT...: checks that the recipe refuses a configuration with a message that holds TEXT.
refuses() {
  if conan install --requires="pdp/$version" --profile:all="$work/gcc" --output-folder="$work/refused" "${@:2}" >"$work/log" 2>&1; then
    fail "pdp accepts ${*:2}; expected: $1"
  fi
  logged "$1"
  echo "refused as it should be: $1"
}

section "what the recipe refuses"
refuses "pdp/$version runs on Linux only; this profile is for FreeBSD." -s:h os=FreeBSD
refuses "pdp/$version needs a 64-bit processor, x86_64 or armv8; this profile is for x86." -s:h arch=x86
refuses "Current cppstd (17) is lower than the required C++ standard (20)." -s:h compiler.cppstd=17
refuses "pdp/$version needs gcc 12 or newer; this profile has gcc 11." -s:h compiler.version=11
refuses "pdp/$version needs clang 16 or newer; this profile has clang 15." -s:h compiler=clang -s:h compiler.version=15 -s:h compiler.cppstd=20
refuses "pdp/$version needs C++20: set compiler.cppstd=20 in the profile" -s:h compiler=clang -s:h compiler.version=16
refuses "The option nccl of pdp/$version needs the option cuda" -o 'pdp/*:nccl=True'
refuses "The option cuda of pdp/$version needs the option separate_compilation" -o 'pdp/*:cuda=True' -o 'pdp/*:separate_compilation=False'

# ---- Options --------------------------------------------------------------------------------------------------------

# The package is the same whatever the options, so the test package runs against the one that exists.
# option OPTION=VALUE...: runs the test package with these options.
option() {
  local arguments=() setting
  for setting in "$@"; do arguments+=(-o "pdp/*:$setting"); done
  section "$*"
  rm -rf "$test_package/build"
  logs conan test "$test_package" "pdp/$version" --profile:all="$work/gcc" --build=missing "${arguments[@]}"
}

option tcp=False
logged "2 ranks of shm, loss"
not_logged "2 ranks of tcp, loss"
not_logged "2 ranks of hierarchical, loss"
not_logged "asio/"
option shm=False
logged "2 ranks of tcp, loss"
not_logged "2 ranks of shm, loss"
not_logged "2 ranks of hierarchical, loss"
option tcp=False shm=False
logged "2 ranks of thread, loss"
not_logged "openssl/"

packages=(libgloo-dev libopenmpi-dev libdnnl-dev libcsv-dev libzip-dev)
options=(gloo mpi onednn csv npz)
all=()
for index in "${!options[@]}"; do
  name=${options[index]}
  if ! installed "${packages[index]}"; then
    echo "left out: the option $name, which needs ${packages[index]}"
    continue
  fi
  option "$name=True"
  all+=("$name=True")
  case $name in
    gloo)
      logged "The option gloo uses the system's Gloo, as Conan Center has none."
      logged "2 ranks of gloo, loss"
      ;;
    mpi) logged "1 ranks of mpi, loss" ;;
    onednn)
      logged "The option onednn uses the system's oneDNN, as Conan Center has none."
      ldd "$(find "$test_package/build" -type f -name train -executable)" >"$work/log"
      logged libdnnl
      ;;
    csv)
      logged "The option csv uses the system's libcsv, as Conan Center has none."
      ldd "$(find "$test_package/build" -type f -name train -executable)" >"$work/log"
      logged libcsv
      ;;
    npz)
      logged "The option npz uses the system's libzip."
      ldd "$(find "$test_package/build" -type f -name train -executable)" >"$work/log"
      logged libzip
      ;;
  esac
done
option separate_compilation=False "${all[@]}"
logged "2 ranks of hierarchical, loss"
not_logged "pdp_core_compiled"
for setting in "${all[@]}"; do
  [[ $setting == onednn=True || $setting == csv=True || $setting == npz=True ]] || logged "ranks of ${setting%=True}, loss"
done

# ---- Programs of other projects --------------------------------------------------------------------------------------

# trains PROGRAM: runs the program on two ranks, which fails if the loss does not fall.
trains() {
  logs "$1" --ranks 2
  logged "2 ranks of hierarchical, loss"
  cat "$work/log"
}

for name in "${profiles[@]}"; do
  section "CMakeDeps and CMakeToolchain, $name"
  logs conan install --requires="pdp/$version" --profile:all="$work/$name" --build=missing --output-folder="$work/cmake-$name" \
    -g CMakeDeps -g CMakeToolchain
  logs cmake -S "$test_package" -B "$work/cmake-$name/build" -G Ninja -D CMAKE_BUILD_TYPE=Release \
    -D CMAKE_TOOLCHAIN_FILE="$work/cmake-$name/conan_toolchain.cmake"
  logs cmake --build "$work/cmake-$name/build"
  [[ -e $work/cmake-$name/build/libpdp_core_compiled.a ]] || fail "pdp's sources were not compiled once"
  trains "$work/cmake-$name/build/train"

  section "PkgConfigDeps, $name"
  logs conan install --requires="pdp/$version" --profile:all="$work/$name" --build=missing --output-folder="$work/pc-$name" -g PkgConfigDeps
  read -r -a flags <<<"$(PKG_CONFIG_PATH=$work/pc-$name PKG_CONFIG_LIBDIR=$work/none pkg-config --cflags --libs pdp-hierarchical)"
  compiler=g++
  [[ $name == gcc ]] || compiler=clang++-16
  logs "$compiler" -std=c++20 -O1 -DWITH_HIERARCHICAL "$test_package/train.cpp" -o "$work/train-$name" "${flags[@]}"
  trains "$work/train-$name"
done

# ---- The recipe for Conan Center ------------------------------------------------------------------------------------

section "the recipe for Conan Center"
tar --transform "s|^\.|pdp-$version|" --exclude=build -czf "$work/pdp.tar.gz" -C "$work/pdp" .
logs packaging/release example/pdp "$work/pdp.tar.gz" "$work/release" "file://$work/pdp.tar.gz"
mkdir -p "$work/index/recipes"
cp -r "$work/release/conan-center" "$work/index/recipes/pdp"
(
  export CONAN_HOME=$work/center
  logs conan remote disable conancenter
  logs conan remote add system "$here/conan-index" --type=local-recipes-index
  logs conan create "$work/release/conan-center/all" --version="$version" --profile:all="$work/gcc" --build=missing
  logged "2 ranks of hierarchical, loss"
  # The folder is also an entry of an index, which config.yml describes.
  logs conan remove "pdp/*" --confirm
  logs conan remote add center "$work/index" --type=local-recipes-index
  logs conan install --requires="pdp/$version" --profile:all="$work/gcc" --build=missing --output-folder="$work/center-out" -o "pdp/*:tcp=False"
  other=$(conan cache path "$(conan list "pdp/$version:*" --format=compact | grep -o "pdp/$version#[0-9a-f]*:[0-9a-f]*" | head -n 1)")
  diff -r "$package/include" "$other/include" || fail "the two recipes package other headers"
  diff -r "$package/share" "$other/share" || fail "the two recipes package other sources"
)
echo "created by the recipe for Conan Center"

# ---- GPUs -----------------------------------------------------------------------------------------------------------

if ! command -v nvcc >/dev/null; then
  echo "left out: the options cuda and nccl, which need nvcc"
  echo "conan: done in $SECONDS s"
  exit 0
fi
options=(-o "pdp/*:cuda=True")
if [[ -n $(find /usr/include "$(dirname "$(dirname "$(realpath "$(command -v nvcc)")")")" -name nccl.h 2>/dev/null | head -n 1) ]]; then
  options+=(-o "pdp/*:nccl=True")
else
  echo "left out: the option nccl, which needs NCCL"
fi
section "${options[*]}"
# Conan's toolchain file requires C++20 of all languages, but CMake 3.25 does not know it in CUDA; pdp's targets set it themselves.
options+=(-c 'tools.cmake.cmaketoolchain:extra_variables={"CMAKE_CUDA_STANDARD_REQUIRED": "OFF"}')
logs conan install --requires="pdp/$version" --profile:all="$work/gcc" --build=missing --output-folder="$work/gpu" -g CMakeDeps -g CMakeToolchain \
  "${options[@]}"
logged "The option cuda uses the system's CUDA toolkit (12 or newer, with nvcc), as Conan Center has none."
for languages in CXX "CXX CUDA"; do
  mkdir -p "$work/gpu/project"
  cat >"$work/gpu/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(gpu LANGUAGES $languages)
find_package(pdp REQUIRED CONFIG)
add_executable(gpu "$work/pdp/tests/consume/gpu.cpp" "$work/pdp/tests/consume/rule.cu")
target_link_libraries(gpu PRIVATE pdp::cuda \$<TARGET_NAME_IF_EXISTS:pdp::nccl>)
END
  configure=(cmake -S "$work/gpu/project" -B "$work/gpu/build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D CMAKE_CUDA_ARCHITECTURES=90
    -D CMAKE_TOOLCHAIN_FILE="$work/gpu/conan_toolchain.cmake" --fresh)
  if [[ $languages == CXX ]]; then
    if "${configure[@]}" >"$work/log" 2>&1; then fail "a project without CUDA C++ finds pdp with the option cuda"; fi
    tr -s ' \n' ' ' <"$work/log" >"$work/words"
    mv "$work/words" "$work/log"
    logged "The component cuda of pdp has a source in CUDA C++"
  else
    logs "${configure[@]}"
  fi
done
logs cmake --build "$work/gpu/build"
if "$work/gpu/build/gpu" >"$work/log" 2>&1; then
  logged learnt
else
  logged "cannot compute on GPU 0: "
fi
cat "$work/log"
echo "conan: done in $SECONDS s"
