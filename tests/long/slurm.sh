#!/usr/bin/env bash
# Preempts a training under Slurm 20 times and stops it by a signal before its time limit 20 times. Each time it is queued again, continues,
# and must end with the parameters of an uninterrupted one. Runs the other checks of Slurm once. Needs root, the packages of
# `bash cmake/setup.sh --ci`, and one to two hours.
set -euo pipefail

skip() {
  echo "skipped: $1"
  exit 77
}
((EUID == 0)) || skip "namespaces need root"
for tool in slurmctld slurmd srun munged; do
  PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || skip "$tool is not installed"
done

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cmake -G Ninja -S . -B "$build" -D CMAKE_BUILD_TYPE=Debug -D PDP_BUILD_TESTS=ON >/dev/null
cmake --build "$build" --target mnist_ddp launch_program >/dev/null
said=$(tests/launch/slurm/run "$build" 20 | tee >(cat >&2))
[[ $said != *SKIPPED* ]] || skip "this user or kernel does not allow namespaces"
[[ $said == *"preempted, requeued and resumed 20 times"* && $said == *"requeued and resumed 20 times"*"scancel"* ]]
echo "passed: 20 preempted jobs and 20 that were stopped by a signal ended with the parameters of an uninterrupted one, to the bit"
