#!/usr/bin/env bash
# Unpacks the libraries that pdp and its tests need on aarch64 into a folder, for a build on a machine with another processor:
#   cmake/toolchains/aarch64_root.sh FOLDER
#
# The packages come from the apt sources of this machine, which must be Debian or a system with packages for arm64 at the same address. Neither
# the packages of this machine nor its lists of packages change, and root is not needed. Exits with 3 if the sources cannot be reached.
set -euo pipefail

if (($# != 1)); then
  echo "usage: cmake/toolchains/aarch64_root.sh FOLDER" >&2
  exit 2
fi
for tool in apt-get dpkg-deb; do
  command -v "$tool" >/dev/null || {
    echo "aarch64_root: $tool is not installed" >&2
    exit 3
  }
done
mkdir -p "$1"
folder=$(realpath "$1")
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT

# An apt that knows nothing but arm64 and believes that no package is installed.
mkdir -p "$state"/{lists/partial,cache/archives/partial}
: >"$state/status"
apt=(apt-get --quiet=2 -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= -o Debug::NoLocking=1
  -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache")
log=$state/log
try() {
  "${apt[@]}" "$@" >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    echo "aarch64_root: apt-get $1 fails for arm64" >&2
    exit 3
  }
}
try update
try install --yes --download-only --no-install-recommends libfmt-dev zlib1g-dev libssl-dev libeigen3-dev libasio-dev nlohmann-json3-dev \
  libxxhash-dev libcli11-dev catch2

count=0
for package in "$state"/cache/archives/*.deb; do
  case $(basename "$package") in
    # The cross compiler comes with these. A second copy of their headers in the folder would be mixed with its own.
    libc6*_* | libc-dev*_* | linux-libc-dev_* | libgcc-s1_* | libstdc++*_* | gcc-*_*) continue ;;
  esac
  dpkg-deb --extract "$package" "$folder"
  count=$((count + 1))
done
# Absolute links would lead out of the folder.
find "$folder" -type l -lname '/*' -printf '%p\t%l\n' | while IFS=$'\t' read -r link target; do
  ln -sfn "$folder$target" "$link"
done
echo "aarch64_root: $count packages in $folder"
