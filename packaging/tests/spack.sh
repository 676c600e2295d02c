#!/usr/bin/env bash
# Checks the package for Spack without Spack and without a network, by executing it against a small model of Spack (spack/):
#   packaging/tests/spack.sh [--tools]      (with --tools also the variant that builds pdp-checkpoint)
set -euo pipefail

here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")

skip() {
  echo "skipped: $1"
  exit 77
}
for tool in cmake ninja python3 git g++; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

version=$(sed -n 's/.* version\[\] = "\(.*\)";/\1/p' "$root/include/pdp/core/version.hpp")
git -C "$root" ls-files -z --cached --others --exclude-standard |
  tar -C "$root" --null --files-from=- --transform "s|^|pdp-$version/|" -czf "$work/pdp.tar.gz"
"$root/packaging/release" example/pdp "$work/pdp.tar.gz" "$work/release"
mkdir "$work/run"
python3 "$here/spack/run.py" "$work/release/spack" "$work/pdp.tar.gz" "$work/run" "$@"
echo "spack: done in $SECONDS s"
