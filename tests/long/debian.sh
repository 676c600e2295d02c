#!/usr/bin/env bash
# Runs every command of the README's code blocks on minimal Debian systems, each in a chroot, from a clean clone of HEAD:
#   tests/long/debian.sh [SUITE...]      (bookworm and trixie if none is named)
# Also builds the README's program with the single header of tools/amalgamate.
# The commands that build and test pdp run twice: as root and as an unprivileged user. The tests also run with the system's clang, if it is 16 or
# newer. The mirror and apt's settings are those of this machine. Needs root, debootstrap (apt-get install debootstrap), git, 4 GB of disk, and
# 40 to 70 minutes for each suite on two cores.
set -euo pipefail
exec </dev/null

root=$(realpath "$(dirname "$(realpath "$0")")/../..")
suites=("$@")
(($# > 0)) || suites=(bookworm trixie)

skip() {
  echo "skipped: $1"
  exit 77
}
((EUID == 0)) || skip "debootstrap and chroot need root"
for tool in debootstrap git apt-get findmnt python3; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done
# shellcheck disable=SC2016  # apt expands the variable
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
[[ -n $mirror ]] || skip "apt of this machine knows no mirror of Debian"

work=$(mktemp -d)
mounts=() # in the order of mounting
clean_up() {
  local status=$? index
  for ((index = ${#mounts[@]} - 1; index >= 0; --index)); do
    umount "${mounts[index]}" || umount -l "${mounts[index]}" || true
  done
  if findmnt -rno TARGET | grep -F "$work/" >/dev/null; then
    echo "debian: something is still mounted under $work, which is therefore left" >&2
  else
    rm -rf --one-file-system "$work"
  fi
  exit "$status"
}
trap clean_up EXIT

fail() {
  echo "debian: $1" >&2
  exit 1
}

# The commands in the README's sh blocks, one a line.
mapfile -t commands < <(awk '/^```/ { code = !code && $0 == "```sh"; next } code' "$root/README.md")
# block LANGUAGE: prints the README's first code block in this language.
block() { awk -v fence='```'"$1" '/^```/ { inside = !done && $0 == fence; done = done || inside; next } inside' "$root/README.md"; }

# inside COMMAND...: runs the command in the chroot, without this machine's environment.
inside() { env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$system" "$@"; }
as_root() { inside bash -c "cd /srv/pdp && export $settings && $1"; }
# as_user FOLDER COMMAND
as_user() { inside su - tester -c "cd $1 && export $settings && $2"; }
# Warnings are errors in every build. The second build of a source gets its object from ccache, because it has the same path.
settings="CXXFLAGS=-Werror CCACHE_DIR=/var/tmp/ccache CCACHE_UMASK=000"

# prepare SUITE: installs a minimal system, with a clone of pdp in /srv/pdp.
prepare() {
  local place
  system=$work/$1
  debootstrap --variant=minbase "$1" "$system" "$mirror" >"$work/log" 2>&1 || {
    tail -n 20 "$work/log" >&2
    if grep -E "^E: (Failed getting release|Couldn't download)" "$work/log" >/dev/null; then skip "debootstrap cannot reach $mirror"; fi
    fail "debootstrap fails"
  }
  apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets' >"$system/etc/apt/apt.conf.d/99host" || true
  printf '127.0.0.1 localhost %s\n::1 localhost\n' "$(<"$system/etc/hostname")" >"$system/etc/hosts"
  for place in proc sys dev dev/pts dev/shm; do
    mount --bind "/$place" "$system/$place"
    mounts+=("$system/$place")
  done
  inside useradd --create-home --shell /bin/bash tester
  install -d -m 1777 "$system/var/tmp/ccache"
  git clone --quiet --no-hardlinks "$root" "$system/srv/pdp"
}

# Builds everything and runs the tests with the system's clang, if pdp supports it.
check_with_clang() {
  local version
  version=$(inside apt-cache show --no-all-versions clang | sed -n 's/^Version: \([0-9]*:\)\?\([0-9]*\).*/\2/p')
  if ((${version:-0} < 16)); then
    echo "the system has clang ${version:-of no version}, which is too old for pdp"
    return
  fi
  inside apt-get install --quiet --yes clang
  echo "# with clang $version"
  as_root "rm -rf build && cmake --preset debug -D CMAKE_CXX_COMPILER=clang++ && cmake --build --preset debug && ctest --preset debug"
  versions[-1]+=", clang $version"
}

# check SUITE: runs all commands on this suite.
check() {
  local command said workflows=0
  prepare "$1"
  for command in "${commands[@]}"; do
    [[ $command == *"cmake --workflow "* ]] || continue
    echo "# $command"
    as_root "$command"
    workflows=$((workflows + 1))
  done
  ((workflows >= 2)) || fail "the README has $workflows commands with 'cmake --workflow '; expected 2 or more"

  # The same folder, now for the user.
  rm -rf "$system/srv/pdp/build"
  inside chown -R tester:tester /srv/pdp
  install -d "$system/home/tester/my_program"
  block cpp | tee "$system/srv/pdp/program.cpp" >"$system/home/tester/my_program/program.cpp"
  block cmake >"$system/home/tester/my_program/CMakeLists.txt"
  inside chown -R tester:tester /home/tester /srv/pdp
  for command in "${commands[@]}"; do
    echo "\$ $command"
    case $command in
      "cmake -B "*) as_user /home/tester/my_program "$command" ;;
      *) as_user /srv/pdp "$command" ;;
    esac
    ran=$((ran + 1))
  done

  # Runs the program that was built with the installed pdp, in a folder with the digits and in one without.
  said=$(as_user /srv/pdp "/home/tester/my_program/build/my_program --ranks 2")
  [[ $said == *"test accuracy 0."* ]] || fail "the installed pdp's program says: $said"
  if said=$(as_user /home/tester/my_program build/my_program 2>&1) || [[ $said != *"share/pdp/mnist"* ]]; then
    fail "without digits, the program does not say where they are: $said"
  fi
  [[ -e $system/home/tester/.local/share/pdp/mnist/t10k-images-idx3-ubyte.gz ]] || fail "the digits are not where the program says"

  # The single header. It is written outside, because the system has no Python.
  "$root/tools/amalgamate" --paths "$system/home/tester/single/pdp.hpp" pdp/comm/hierarchical.hpp
  inside chown -R tester:tester /home/tester/single
  as_user /srv/pdp "g++ -std=c++20 -O2 program.cpp -I/home/tester/single -I/usr/include/eigen3 -o single -lfmt -lz -lcrypto"
  said=$(as_user /srv/pdp "./single --ranks 2")
  [[ $said == *"test accuracy 0."* ]] || fail "the program with the single header says: $said"
  versions+=("$1 with g++ $(inside g++ -dumpfullversion) and CMake $(inside cmake --version | awk 'NR == 1 { print $3 }')")
  check_with_clang
  rm -rf --one-file-system "${system:?}"/{srv,home,var/tmp}
}

ran=0
versions=()
for suite in "${suites[@]}"; do
  echo "== $suite"
  check "$suite"
done
echo "passed: $ran commands of the README on$(printf ' %s,' "${versions[@]}" | sed 's/,$//')"
