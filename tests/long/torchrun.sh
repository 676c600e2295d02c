#!/usr/bin/env bash
# Starts pdp's ranks by PyTorch's torchrun. Installs PyTorch from PyPI into a temporary folder (6 GB, deleted at the end), and builds the programs
# there. PDP_TEST_TORCHRUN names a torchrun to use instead, PDP_TEST_BUILD a build folder that has mnist_ddp and launch_program.
set -euo pipefail

cd "$(dirname "$(realpath "$0")")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0

# fail WORDS: prints WORDS and the output of the last job, and exits.
fail() {
  echo "torchrun: $*; it said:"
  tail -n 30 "$work"/*.out
  exit 1
}

# job NAME EXPECTED COMMAND...: checks that the command succeeds and that exactly one line of its output matches EXPECTED.
job() {
  local -r name=$1 expected=$2
  shift 2
  rm -f "$work"/*.out
  timeout 120 "$@" >"$work/job.out" 2>&1 || fail "$name ended with $?"
  [[ $(grep -c "$expected" "$work/job.out") == 1 ]] || fail "$name did not say '$expected'"
  checks=$((checks + 1))
  echo "$name: $expected"
}

# two_agents NAME EXPECTED ARGUMENT...: runs two torchruns, each with its own address. AGENT in an argument becomes the number of the torchrun, 0
# or 1. Checks that both succeed and that exactly one line of their output matches EXPECTED.
two_agents() {
  local -r name=$1 expected=$2
  local agent status=0 arguments
  shift 2
  rm -f "$work"/*.out
  local -a pids=()
  for agent in 0 1; do
    arguments=("${@//AGENT/$agent}")
    timeout 120 "$torchrun" --nnodes 2 --local-addr "127.0.0.$((agent + 1))" --nproc-per-node 2 "${arguments[@]}" >"$work/agent$agent.out" 2>&1 &
    pids+=($!)
  done
  for agent in 0 1; do wait "${pids[agent]}" || status=$?; done
  ((status == 0)) || fail "$name ended with $status"
  [[ $(cat "$work"/agent?.out | grep -c "$expected") == 1 ]] || fail "$name did not say '$expected'"
  checks=$((checks + 1))
  echo "$name: $expected"
}

torchrun=${PDP_TEST_TORCHRUN-}
if [[ -z $torchrun ]]; then
  if ! python3 -m venv "$work/python" >"$work/venv.log" 2>&1; then
    echo "skipped: python3 cannot make a virtual environment"
    exit 77
  fi
  if ! "$work/python/bin/pip" install --quiet torch numpy >"$work/pip.log" 2>&1; then
    tail -n 2 "$work/pip.log"
    echo "skipped: PyTorch cannot be installed from PyPI"
    exit 77
  fi
  torchrun=$work/python/bin/torchrun
fi
version=$("$(dirname "$torchrun")/python" -c 'import torch; print(torch.__version__)')

build=${PDP_TEST_BUILD-}
if [[ -z $build ]]; then
  build=$work/build
  cmake -S . -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=Release >"$work/cmake.log" 2>&1 || { tail "$work/cmake.log"; exit 1; }
  cmake --build "$build" --target mnist_ddp launch_program >"$work/cmake.log" 2>&1 || { tail -n 30 "$work/cmake.log"; exit 1; }
fi
build=$(realpath "$build")
readonly program=$build/tests/programs/launch_program
readonly mnist=("$build/examples/mnist_ddp" --data examples/data/mnist --epochs 1 --batch-size 500)
export OMP_NUM_THREADS=1
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# A script that kills the last rank of the first attempt when all ranks are connected. Later attempts train.
cat >"$work/killed_once" <<SCRIPT
#!/usr/bin/env bash
if [[ -e $work/killed ]]; then exec ${mnist[*]@Q}; fi
if [[ \$RANK == 0 ]]; then exec "$program" loop >"$work/ready"; fi
if ((RANK != WORLD_SIZE - 1)); then exec "$program" loop; fi
"$program" loop &
until grep -q ready "$work/ready" 2>/dev/null; do sleep 0.05; done
touch "$work/killed"
kill -9 \$!
exit 137
SCRIPT
chmod +x "$work/killed_once"
forget() { rm -f "$work/killed" "$work/ready"; }

job "2 ranks" "test accuracy" "$torchrun" --nproc-per-node 2 --no-python "${mnist[@]}"
for ranks in 2 4; do
  job "$ranks ranks, standalone" "test accuracy" "$torchrun" --standalone --nproc-per-node "$ranks" --no-python "${mnist[@]}"
  job "$ranks ranks, c10d" "test accuracy" \
    "$torchrun" --rdzv-backend c10d --rdzv-endpoint "localhost:$(free_port)" --nproc-per-node "$ranks" --no-python "${mnist[@]}"
  job "$ranks ranks, address and port" "test accuracy" \
    "$torchrun" --master-addr 127.0.0.1 --master-port "$(free_port)" --nproc-per-node "$ranks" --no-python "${mnist[@]}"
done
job "the default communicator" "ranks 4 sum 10" \
  "$torchrun" --rdzv-backend c10d --rdzv-endpoint "localhost:$(free_port)" --nproc-per-node 4 --no-python "$program" default
job "without the agent's store" "ranks 2 sum 3" env TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 "$torchrun" --nproc-per-node 2 --no-python "$program" sum
forget
job "a killed rank of 2" "test accuracy" "$torchrun" --max-restarts 1 --nproc-per-node 2 --no-python "$work/killed_once"
forget
job "a killed rank of 4, standalone" "test accuracy" "$torchrun" --standalone --max-restarts 1 --nproc-per-node 4 --no-python "$work/killed_once"

port=$(free_port)
two_agents "two agents" "ranks 4 sum 10" --node-rank AGENT --master-addr 127.0.0.1 --master-port "$port" --no-python "$program" sum
port=$(free_port)
two_agents "two agents, c10d" "ranks 4 sum 10" --rdzv-backend c10d --rdzv-id job --rdzv-endpoint "127.0.0.1:$port" --no-python "$program" sum
forget
port=$(free_port)
two_agents "a killed rank of two agents, c10d" "test accuracy" --max-restarts 3 --rdzv-backend c10d --rdzv-id job --rdzv-endpoint "127.0.0.1:$port" --no-python "$work/killed_once"
forget
port=$(free_port)
two_agents "a killed rank of two agents" "test accuracy" --max-restarts 3 --node-rank AGENT --master-addr 127.0.0.1 --master-port "$port" --no-python "$work/killed_once"

# Two jobs at once, with ports that torchrun chooses.
"$torchrun" --nproc-per-node 2 --no-python "$program" sum >"$work/beside" 2>&1 &
beside=$!
job "beside another job" "ranks 2 sum 3" "$torchrun" --nproc-per-node 2 --no-python "$program" sum
wait "$beside" || fail "the other job ended with $?"

echo "passed: $checks ways to start ranks by torchrun of PyTorch $version"
