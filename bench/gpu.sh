#!/usr/bin/env bash
# Builds, tests and measures all that needs a GPU, in one go:
#
#   bench/gpu.sh [build|test|measure|all] [FOLDER]
#
#   build     into build/gpu, with the shared libraries that the programs need beside them, but CUDA's: so that the checkout with this folder is
#             enough on a machine with a GPU that has nothing else installed than the CUDA toolkit, NCCL and, for the comparison, PyTorch
#   test      every test that needs a GPU, the short ones under compute-sanitizer's memcheck and racecheck too, and that training on the GPU has
#             the losses of the CPU
#   measure   a training step beside PyTorch's, into FOLDER (build/gpu/figures unless given): a table in Markdown, and the raw figures
#   all       all of it (default). Where build/gpu is there and this machine cannot build, what is there is used.
#
# Ends with 1 where something has failed, after the rest has run.
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.."

readonly built=build/gpu
what=${1:-all}
figures=${2:-$built/figures}
failed=()

say() { echo "gpu.sh: $*"; }

# attempt NAME COMMAND...
attempt() {
  say "$1"
  local begin=$SECONDS
  if "${@:2}"; then
    say "$1: passed in $((SECONDS - begin)) s"
  else
    say "$1: FAILED"
    failed+=("$1")
  fi
}

# The programs look for libraries in build/gpu/lib first, wherever the checkout is.
build() {
  local program library
  cmake -S . -B $built -G Ninja -D CMAKE_BUILD_TYPE=Release -D PDP_WARNINGS_AS_ERRORS=ON -D PDP_ONEDNN=OFF -D CMAKE_DISABLE_FIND_PACKAGE_MPI=ON \
    -D CMAKE_DISABLE_FIND_PACKAGE_Gloo=ON -D 'CMAKE_BUILD_RPATH=$ORIGIN/../lib;$ORIGIN/../../lib' &&
    cmake --build $built --target test_cuda_device test_comm_nccl_device gpu_step mnist_single mnist_ddp || return 1
  rm -rf $built/lib
  mkdir $built/lib
  for program in "${programs[@]}"; do
    ldd "$program" | awk '$3 ~ /^\// { print $3 }'
  done | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux[^/]*|libcuda|libcudart|libcublas[^/]*|libnccl)\.so' |
    while read -r library; do cp -L "$library" $built/lib/ || exit 1; done
}

readonly programs=($built/tests/cuda/test_cuda_device $built/tests/comm_nccl/test_comm_nccl_device $built/bench/gpu/gpu_step
  $built/examples/mnist_single $built/examples/mnist_ddp)

# CUDA's libraries, where neither the system nor the toolkit has them in its usual place: those of Python's packages.
find_libraries() {
  local folders
  folders=$(python3 -c 'import glob, sysconfig; print(":".join(glob.glob(sysconfig.get_paths()["purelib"] + "/nvidia/*/lib")))' 2>/dev/null)
  export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64${folders:+:$folders}"
}

# No test may be skipped here.
on_gpu() {
  "$@" | tee $built/log
  local status=${PIPESTATUS[0]}
  ! grep -q '^skipped: ' $built/log && ((status == 0))
}

# The losses of some steps on the CPU and on the GPU.
same_losses() {
  $built/examples/mnist_single --epochs 1 --seed 49 --losses $built/cpu.csv --data examples/data/mnist &&
    $built/examples/mnist_single --epochs 1 --seed 49 --losses $built/gpu.csv --data examples/data/mnist --device cuda &&
    python3 - $built/cpu.csv $built/gpu.csv <<'PYTHON'
import csv, sys
cpu, gpu = ([float(row["loss"]) for row in csv.DictReader(open(name))][:50] for name in sys.argv[1:])
apart = max(abs(a - b) / abs(a) for a, b in zip(cpu, gpu))
print(f"losses of {len(cpu)} steps: at most {apart:.2e} apart, relative (1e-4 wanted)")
sys.exit(not (len(cpu) == len(gpu) and apart < 1e-4))
PYTHON
}

tests() {
  local short='~[equivalence]~[nccl]'
  attempt "device tests" on_gpu $built/tests/cuda/test_cuda_device
  attempt "NCCL's tests" $built/tests/comm_nccl/test_comm_nccl_device
  attempt "losses of CPU and GPU" same_losses
  if command -v compute-sanitizer >/dev/null; then
    attempt "memcheck" on_gpu compute-sanitizer --tool memcheck --error-exitcode 9 $built/tests/cuda/test_cuda_device "$short"
    attempt "racecheck" on_gpu compute-sanitizer --tool racecheck --error-exitcode 9 $built/tests/cuda/test_cuda_device "$short"
  else
    say "compute-sanitizer is not there: nothing was run under it"
    failed+=("compute-sanitizer")
  fi
}

measure() {
  mkdir -p "$figures"
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$figures/machine.txt"
  attempt "figures" bash -c "bench/peers/run_gpu --pdp $built/bench/gpu/gpu_step --markdown --raw '$figures/gpu_raw.jsonl' >'$figures/gpu.md'"
  cat "$figures/gpu.md"
}

case $what in
  build) attempt "build" build ;;
  test) find_libraries && tests ;;
  measure) find_libraries && measure ;;
  all)
    if [[ -x ${programs[0]} ]] && ! cmake -S . -B build/gpu-probe -G Ninja >/dev/null 2>&1; then
      say "this machine lacks what pdp is built with: $built is used as it is"
    else
      attempt "build" build
    fi
    rm -rf build/gpu-probe
    find_libraries
    tests
    measure
    ;;
  *)
    echo "usage: bench/gpu.sh [build|test|measure|all] [FOLDER]" >&2
    exit 2
    ;;
esac

if ((${#failed[@]} > 0)); then
  say "failed: ${failed[*]}"
  exit 1
fi
