#!/usr/bin/env bash
# Runs ranks in namespaces and control groups such as those of containers, without a container engine, and checks what docs/containers.md says.
# Builds build/release/examples/mnist_ddp first. If PDP_TEST_BUILD names a build folder, its examples/mnist_ddp is used instead. Needs root. It
# takes a minute.
# shellcheck disable=SC2016  # inner shells expand the variables
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/../.."

skip() {
  echo "skipped: $1"
  exit 77
}
((EUID == 0)) || skip "namespaces and control groups need root"
for tool in unshare ip setpriv python3; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done
unshare -fpmiu --mount-proc true 2>/dev/null || skip "this machine allows no namespaces"

work=$(mktemp -d)
groups=()
networks=()
clean_up() {
  local status=$? each
  for each in "${networks[@]}"; do ip netns delete "$each" || true; done
  for each in "${groups[@]}"; do rmdir "$each" || true; done
  rm -rf "$work"
  exit "$status"
}
trap clean_up EXIT

build=${PDP_TEST_BUILD-}
if [[ -z $build ]]; then
  build=build/release
  if ! { cmake --preset release && cmake --build --preset release --target mnist_ddp; } >"$work/log" 2>&1; then
    tail -n 40 "$work/log"
    exit 1
  fi
fi
program=$(realpath -e "$build/examples/mnist_ddp")
trains="test accuracy 0."
checks=0

# expect NAME PATTERN COMMAND...: the command ends within two minutes, and its output matches the extended regular expression.
expect() {
  local name=$1 pattern=$2 status=0
  timeout --signal KILL 120 "${@:3}" >"$work/out" 2>&1 || status=$?
  if ((status == 137)) || ! grep -E "$pattern" "$work/out" >/dev/null; then
    echo "containers: $name: exit status $status; expected '$pattern' in the output:" >&2
    tail -n 10 "$work/out" >&2
    exit 1
  fi
  checks=$((checks + 1))
  echo "$name"
}
# pair NAME PATTERN WRAPPER ARGUMENT...: starts two ranks, each by `WRAPPER RANK PROGRAM ARGUMENT...`. Their joint output matches.
pair() {
  export MASTER_PORT=$((MASTER_PORT + 1)) # the last one may still be in use
  expect "$1" "$2" both "${@:3}"
}
cat >"$work/both" <<'SH'
#!/usr/bin/env bash
export WORLD_SIZE=2 PDP_TIMEOUT=20
for rank in 0 1; do RANK=$rank "$1" "$rank" "${@:2}" & done
wait
SH
# Each wrapper gets the rank, and starts the program in namespaces.
wrapper() { printf '#!/usr/bin/env bash\nrank=$1; shift\nexec %s "$@"\n' "$2" >"$work/$1"; }
wrapper container "unshare -fpmiu --mount-proc bash -c 'hostname box && exec \"\$@\"' box"
wrapper pod "unshare -miu"
wrapper user "unshare -Umiur"
wrapper machine "ip netns exec pdp$$_\$rank unshare -fpmiu --mount-proc"
# within GROUP COMMAND...
printf '#!/usr/bin/env bash\necho $$ >"$1/cgroup.procs"\nshift\nexec "$@"\n' >"$work/within"
# without CALL COMMAND...: the system call fails with EPERM, as under the profiles of container engines.
cat >"$work/without" <<'PYTHON'
#!/usr/bin/env python3
import ctypes, os, struct, sys
ALLOW, EPERM, NO_NEW_PRIVILEGES, SECCOMP, FILTER = 0x7FFF0000, 0x00050001, 38, 22, 2
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (0x06, 0, 0, EPERM), (0x06, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None)
if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SECCOMP, FILTER, program, 0, 0):
    sys.exit("the kernel accepts no filter of system calls")
os.execv(sys.argv[2], sys.argv[2:])
PYTHON
chmod +x "$work"/*
PATH=$work:$PATH
train=("$program" --epochs 1)

# One container.
expect "a /dev/shm of 64 KB" "$trains" unshare -m bash -c 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"' - "${train[@]}" --ranks 4 --comm shm
mkdir "$work/empty"
expect "no /dev/shm" "$trains" unshare -m bash -c 'mount --bind "$0" /dev && exec "$@"' "$work/empty" "${train[@]}" --ranks 2 --comm shm
expect "a launcher that is process 1" "$trains" unshare -fpmiu --mount-proc "${train[@]}" --ranks 3
expect "a read-only file system" "$trains" unshare -m bash -c 'mount -o remount,bind,ro / && exec "$@"' - "${train[@]}" --ranks 2
expect "a user without a name and an empty environment" "$trains" setpriv --reuid 54321 --clear-groups env -i "${train[@]}" --ranks 2
expect "another PID namespace's /proc, with shared memory" "mount-proc" unshare -fp "${train[@]}" --ranks 2 --comm shm
expect "another PID namespace's /proc, with TCP" "$trains" unshare -fp "${train[@]}" --ranks 2 --comm tcp
if [[ $(uname -m) == x86_64 ]]; then
  expect "no memfd_create" "memfd_create.*tcp" without 319 "${train[@]}" --ranks 2
  expect "no pidfd_open" "pidfd_open.*tcp" without 434 "${train[@]}" --ranks 2
  expect "no pidfd_open, with TCP" "$trains" without 434 "${train[@]}" --ranks 2 --comm tcp
fi

# Several containers on one machine.
export MASTER_ADDR=127.0.0.1 MASTER_PORT=23140 PDP_SECRET=0123456789abcdef0123456789abcdef
pair "two containers, whose ranks are process 1" "$trains" container "${train[@]}"
pair "two containers, with shared memory" "in another container" container "${train[@]}" --comm shm
pair "two containers with one PID namespace" "$trains" pod "${train[@]}" --comm shm
pair "two user namespaces" "user namespace.*tcp" user "${train[@]}"
pair "two user namespaces, with TCP" "$trains" user "${train[@]}" --comm tcp
unset PDP_SECRET
pair "two containers without a secret" "PDP_SECRET_FILE" container "${train[@]}"

# Several machines.
if ip netns add "pdp$$_0" 2>/dev/null; then
  networks+=("pdp$$_0")
  ip netns add "pdp$$_1"
  networks+=("pdp$$_1")
  ip link add name eth0 netns "pdp$$_0" type veth peer name eth0 netns "pdp$$_1"
  for rank in 0 1; do
    ip -n "pdp$$_$rank" address add "10.99.5.$((rank + 1))/24" dev eth0
    ip -n "pdp$$_$rank" link set lo up
    ip -n "pdp$$_$rank" link set eth0 up
  done
  export MASTER_ADDR=10.99.5.1
  PDP_SECRET=0123456789abcdef0123456789abcdef pair "two containers with networks of their own" "$trains" machine "${train[@]}"
  pair "two containers with networks of their own, without a secret" "PDP_SECRET_FILE" machine "${train[@]}"
fi
unset MASTER_ADDR MASTER_PORT

# SIGTERM, as from `docker stop`. The program would train for hours.
# stop NAME PATTERN ARGUMENT...
stop() {
  expect "$1" "$2" bash -c 'unshare -fp --kill-child --mount-proc "$@" & sleep 3; kill -TERM "$(cat "/proc/$!/task/$!/children")"; wait $!; echo "status $?"' - \
    "$program" --epochs 1000000 "${@:3}"
}
stop "SIGTERM to a launcher that is process 1" "status 143" --ranks 2
stop "SIGTERM to a training with checkpoints that is process 1" "status 75" --checkpoint "$work/checkpoints"

# Control groups. Version 1 has a hierarchy for each controller.
# group CONTROLLER: makes a group and sets `group`. Fails if the machine does not allow it.
group() {
  local root=/sys/fs/cgroup
  if [[ -e $root/cgroup.controllers ]]; then
    grep -w "$1" "$root/cgroup.subtree_control" >/dev/null || return 1
  else
    root=$root/$1
  fi
  group=$root/pdp$$_$1
  mkdir "$group" 2>/dev/null && groups+=("$group")
}
if group cpu; then
  if [[ -e $group/cpu.max ]]; then echo "5000 100000" >"$group/cpu.max"; else echo 5000 >"$group/cpu.cfs_quota_us"; fi
  PDP_HEARTBEAT=2 expect "--cpus 0.05" "$trains" within "$group" "${train[@]}" --ranks 4
fi
if group pids; then
  echo 8 >"$group/pids.max"
  expect "--pids-limit 8" "$trains" within "$group" "${train[@]}" --ranks 2
  echo 4 >"$group/pids.max"
  expect "--pids-limit 4" "pids.max" within "$group" "${train[@]}" --ranks 2
  expect "--pids-limit 4, for threads" "pids.max" within "$group" "${train[@]}" --threads 8
fi
echo "passed: $checks containers of namespaces and control groups"
