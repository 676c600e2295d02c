#!/usr/bin/env bash
# Checks the port of vcpkg without vcpkg and without a network: the manifest by vcpkg's rules, the portfile by running it with models of vcpkg's
# functions (vcpkg/models.cmake), and the package by building and running the example against it:
#   packaging/tests/vcpkg.sh
set -euo pipefail

here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")

skip() {
  echo "skipped: $1"
  exit 77
}
for tool in cmake ninja python3 git; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

fail() {
  printf '%s\n' "vcpkg: $1" "${@:2}" >&2
  exit 1
}

# logs COMMAND...: runs the command with its output in $work/log, and prints the log if the command fails.
logs() { "$@" >"$work/log" 2>&1 || fail "this command fails: $*" "$(<"$work/log")"; }

# ---- A release ------------------------------------------------------------------------------------------------------

version=$(sed -n 's/.* version\[\] = "\(.*\)";/\1/p' "$root/include/pdp/core/version.hpp")
git -C "$root" ls-files -z --cached --others --exclude-standard |
  tar -C "$root" --null --files-from=- --transform "s|^|pdp-$version/|" -czf "$work/pdp.tar.gz"
logs "$root/packaging/release" example/pdp "$work/pdp.tar.gz" "$work/release"
port=$work/release/vcpkg/ports/pdp

# ---- The manifest ---------------------------------------------------------------------------------------------------

logs python3 "$here/vcpkg/manifest.py" "$port"
echo "vcpkg.json is right"

# rejects TEXT SED_SCRIPT: checks that a changed manifest is rejected with a message that holds TEXT.
rejects() {
  rm -rf "$work/wrong"
  mkdir "$work/wrong"
  cp -r "$port" "$work/wrong"
  sed -i "$2" "$work/wrong/pdp/vcpkg.json"
  if python3 "$here/vcpkg/manifest.py" "$work/wrong/pdp" >"$work/log" 2>&1; then fail "the check of the manifest accepts this change: $2"; fi
  grep -F -- "$1" "$work/log" >/dev/null || fail "the check of the manifest does not say: $1" "$(<"$work/log")"
}
rejects "the features are not sorted" 's/"cuda": {/"zuda": {/'
rejects "'tru64' is no platform" 's/linux &/tru64 \&/'
rejects "& and | are mixed" 's/(x64 | arm64)/x64 | arm64/'
rejects "has unknown fields: licence" 's/"license"/"licence"/'
rejects "is not of the form" 's/"version": "/"version": "v/'
rejects "the dependencies of the port are not sorted" 's/"fmt"/"zmt"/'
echo "wrong manifests are rejected"

# ---- The portfile ---------------------------------------------------------------------------------------------------

# installs FEATURES TARGETS: runs the portfile with these features, and checks that the package has exactly these components.
installs() {
  local found
  logs cmake -D PORT_DIR="$port" -D ARCHIVE="$work/pdp.tar.gz" -D FEATURES="$1" -D WORK_DIR="$work/$3" -D VERSION="$version" -P "$here/vcpkg/models.cmake"
  found=$(find "$work/$3/packages/share/pdp" -name 'pdp-*-targets.cmake' -printf '%f\n' | sed 's/^pdp-//; s/-targets.cmake$//' | LC_ALL=C sort | tr '\n' ' ')
  [[ $found == "$2 " ]] || fail "with the features '$1' the package has the components '$found'; expected '$2 '"
  echo "features '$1': $found"
}
installs "" "launch safetensors" none
installs "shm;tcp" "hierarchical launch safetensors shm tcp" processes

features=() components=(launch safetensors)
add() { if dpkg-query -W "$2" >/dev/null 2>&1; then features+=("$1") components+=("$1"); else echo "left out: the feature $1, which needs $2"; fi; }
add gloo libgloo-dev
add mpi libopenmpi-dev
add onednn libdnnl-dev
add csv libcsv-dev
add npz libzip-dev
if command -v nvcc >/dev/null; then
  features+=(cuda) components+=(cuda)
  if [[ -e $(dirname "$(dirname "$(realpath "$(command -v nvcc)")")")/include/nccl.h ]]; then features+=(nccl) components+=(nccl); fi
fi
installs "$(IFS=';' && echo "${features[*]}")" "$(printf '%s\n' "${components[@]}" | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')" others

sed 's/vcpkg_install_copyright/#/' "$port/portfile.cmake" >"$work/portfile"
cp -r "$port" "$work/wrong/port"
cp "$work/portfile" "$work/wrong/port/portfile.cmake"
if cmake -D PORT_DIR="$work/wrong/port" -D ARCHIVE="$work/pdp.tar.gz" -D FEATURES= -D WORK_DIR="$work/refused" -D VERSION="$version" \
  -P "$here/vcpkg/models.cmake" >"$work/log" 2>&1; then fail "a package without a licence is accepted"; fi
grep -F "the package has no share/pdp/copyright" "$work/log" >/dev/null || fail "the wrong portfile fails for another reason" "$(<"$work/log")"

# ---- The example ----------------------------------------------------------------------------------------------------

# vcpkg copies a package to the installed tree, so it must work in another folder.
mv "$work/processes/packages" "$work/installed"
# The preset names vcpkg's toolchain file. This one adds the installed tree, as vcpkg's does, and requires what manifest mode reads.
mkdir -p "$work/vcpkg/scripts/buildsystems"
cat >"$work/vcpkg/scripts/buildsystems/vcpkg.cmake" <<END
if(DEFINED VCPKG_OVERLAY_PORTS AND NOT EXISTS "\${VCPKG_OVERLAY_PORTS}/pdp/portfile.cmake")
  message(FATAL_ERROR "there is no port of pdp in \${VCPKG_OVERLAY_PORTS}")
endif()
list(APPEND CMAKE_PREFIX_PATH "$work/installed")
END
cd "$work/release/vcpkg/example"
logs env VCPKG_ROOT="$work/vcpkg" cmake --preset vcpkg
logs cmake --build build
grep -F "pdp_DIR:PATH=$work/installed/share/pdp" build/CMakeCache.txt >/dev/null || fail "the example found another pdp"
grep -F "CMAKE_TOOLCHAIN_FILE:FILEPATH=$work/vcpkg/" build/CMakeCache.txt >/dev/null || fail "the preset does not use vcpkg's toolchain file"
logs build/train --ranks 2
read -r before after < <(sed -n 's/^2 ranks, loss \([0-9.]*\) -> \([0-9.]*\)$/\1 \2/p' "$work/log")
awk -v before="${before:-0}" -v after="${after:-1}" 'BEGIN { exit !(after < before / 2) }' || fail "the loss does not fall" "$(<"$work/log")"
tail -n 1 "$work/log"
echo "vcpkg: done in $SECONDS s"
