#!/usr/bin/env bash
# Builds, tests and measures everything that needs a GPU, in one run:
#
#   bench/gpu.sh [build|test|measure|all] [FOLDER]
#
#   build     builds in build/gpu-objects, then copies the programs to build/gpu, with their shared libraries except those of CUDA, NCCL and
#             the C++ runtime. A checkout with that folder can be tested and measured on any GPU machine that has the CUDA toolkit, NCCL
#             and, for the comparison, PyTorch
#   test      runs every test that needs a GPU, the short ones also under memcheck and racecheck of compute-sanitizer. Checks that the losses
#             of training on the GPU match those on the CPU: in one process, in threads and over NCCL
#   measure   measures a training step against PyTorch's. FOLDER (default: build/gpu-figures) receives a Markdown table and the raw figures
#   all       does all of these (default). If build/gpu exists and this machine has no nvcc, the programs there are used
#
# If a step fails, the others still run, and the exit status is 1.
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.."

export PATH=$PATH:/usr/local/cuda/bin  # for nvcc and compute-sanitizer, if PATH lacks them
# The settings that docs/gpu.md recommends for training on several GPUs.
readonly several=(env CUDA_DEVICE_MAX_CONNECTIONS=32 CUDA_MODULE_LOADING=EAGER NCCL_RUNTIME_CONNECT=0)
readonly built=build/gpu
what=${1:-all}
figures=${2:-build/gpu-figures}
failed=()

say() { echo "gpu.sh: $*"; }

# attempt NAME COMMAND...: runs the command and records NAME as failed if it fails.
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

# The run path is relative to the programs, so that they find the libraries in build/gpu/lib at any path of the checkout.
build() {
  local -r objects=build/gpu-objects
  local program library
  cmake -S . -B $objects -G Ninja -D CMAKE_BUILD_TYPE=Release -D PDP_WARNINGS_AS_ERRORS=ON -D PDP_LINK_ONEDNN=OFF -D PDP_WITH_CUDA=ON -D PDP_WITH_NCCL=ON \
    -D PDP_WITH_MPI=OFF -D PDP_WITH_GLOO=OFF -D 'CMAKE_BUILD_RPATH=$ORIGIN/lib' &&
    cmake --build $objects --target "${programs[@]}" || return 1
  rm -rf $built
  mkdir -p $built/lib
  for program in "${programs[@]}"; do
    find $objects -type f -name "$program" -executable -exec cp {} $built/ \;
    ldd "$built/$program"
  done | awk '$3 ~ /^\// && $3 !~ /\/(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux[^\/]*|libcuda|libcudart|libcublas[^\/]*|libnccl)\.so/ { print $3 }' |
    sort -u | while read -r library; do cp -L "$library" $built/lib/ || exit 1; done
}

readonly programs=(test_cuda_device test_comm_nccl_device test_comm_cuda_thread_device gpu_step mnist_single mnist_ddp)

# Links CUDA's libraries, from the toolkit or from Python packages, into build/gpu/lib if the loader does not find them, and cuBLASLt, which
# programs load at run time. Only pdp's programs search that folder. PyTorch brings its own libraries.
find_libraries() {
  local program library found
  local -a folders=(/usr/local/cuda/lib64)
  mapfile -t -O 1 folders < <(python3 -c 'import glob, sysconfig; print("\n".join(glob.glob(sysconfig.get_paths()["purelib"] + "/nvidia/*/lib")))' 2>/dev/null)
  mkdir -p $built/lib
  while read -r found; do ln -sf "$(realpath "$found")" "$built/lib/${found##*/}"; done \
    < <(find -L "${folders[@]}" -regex '.*/libcublasLt\.so\.[0-9]+' 2>/dev/null)
  for program in "${programs[@]}"; do
    [[ -x $built/$program ]] || failed+=("$built/$program (missing)")
    while read -r library; do
      found=$(find -L "${folders[@]}" -name "$library" -print -quit 2>/dev/null)
      if [[ -n $found ]]; then ln -sf "$(realpath "$found")" "$built/lib/$library"; else failed+=("$library (not found)"); fi
    done < <(ldd "$built/$program" 2>/dev/null | awk '/not found/ { print $1 }')
  done
}

# Runs a test program. A skipped test counts as a failure.
on_gpu() {
  "$@" | tee $built/log
  local status=${PIPESTATUS[0]}
  ! grep -q '^skipped: ' $built/log && ((status == 0))
}

# same_losses PROGRAM FLAGS... : compares the losses of 50 steps on the CPU with those on one or several GPUs, for three seeds, of which one
# may differ. If an input of a Relu is 0 up to rounding, its gradient depends on the order of a sum. The losses then diverge, also on a CPU.
same_losses() {
  local seed name
  local -a files=()
  for seed in 45 46 47; do
    for name in cpu gpu; do files+=("$built/losses.$name.$seed.csv"); done
    "$built/$1" "${@:2}" --epochs 1 --seed $seed --losses "${files[-2]}" --data examples/data/mnist || return 1
    "${several[@]}" "$built/$1" "${@:2}" --epochs 1 --seed $seed --losses "${files[-1]}" --data examples/data/mnist --device cuda || return 1
  done
  python3 - "${files[@]}" <<'PYTHON'
import csv, sys

def losses(name):
    return [float(row["loss"]) for row in csv.DictReader(open(name))][:50]
apart = []
for names in zip(sys.argv[1::2], sys.argv[2::2]):
    cpu, gpu = map(losses, names)
    assert len(cpu) == len(gpu) > 0
    apart.append(max(abs(a - b) / abs(a) for a, b in zip(cpu, gpu)))
median = sorted(apart)[1]
print("losses of 50 steps, three seeds: " + ", ".join(f"{each:.1e}" for each in apart) + " apart, relative (the median at most 1e-4)")
sys.exit(not median < 1e-4)
PYTHON
}

tests() {
  local short='~[equivalence]~[nccl]'
  attempt "device tests" on_gpu "${several[@]}" $built/test_cuda_device
  attempt "NCCL's tests" on_gpu "${several[@]}" $built/test_comm_nccl_device
  attempt "tests of ranks that are threads" on_gpu $built/test_comm_cuda_thread_device
  local gpus
  gpus=$(nvidia-smi --list-gpus | wc -l)
  if ((gpus < 4)); then  # NCCL 2.30 and newer accept several ranks on a GPU; with older ones, these tests do nothing
    local -r shared=("${several[@]}" NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_MAX_CTAS=4)  # else the kernels of one rank may leave no room for those of another
    attempt "NCCL's tests, of ranks that share GPUs" on_gpu "${shared[@]}" $built/test_comm_nccl_device
    attempt "models over NCCL, of ranks that share GPUs" on_gpu "${shared[@]}" $built/test_cuda_device "[nccl]"
  fi
  attempt "losses of CPU and GPU" same_losses mnist_single
  attempt "losses of two threads on the CPU and on the GPU" same_losses mnist_ddp --threads 2
  attempt "losses of processes over NCCL, with a GPU each: $gpus" same_losses mnist_ddp --ranks "$gpus"
  if command -v compute-sanitizer >/dev/null; then
    attempt "memcheck" on_gpu compute-sanitizer --tool memcheck --error-exitcode 9 $built/test_cuda_device "$short"
    # Checks pdp's kernels only. Tests of ranks in threads are left out because racecheck is too slow for their deadlines. Tests of products in
    # 16 bits are left out because racecheck itself fails in cuBLASLt ("Internal Sanitizer Error").
    attempt "racecheck" on_gpu compute-sanitizer --tool racecheck --kernel-name kns=pdp --error-exitcode 9 $built/test_cuda_device \
      "$short~[cuda_thread]~*16 bits*~*16-bit*~*bfloat16*"
  else
    say "compute-sanitizer is not installed: its checks were skipped"
    failed+=("compute-sanitizer")
  fi
}

measure() {
  mkdir -p "$figures"
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$figures/machine.txt"
  attempt "figures" bash -c "bench/peers/run_gpu --pdp $built/gpu_step --markdown --raw '$figures/gpu_raw.jsonl' >'$figures/gpu.md'"
  cat "$figures/gpu.md"
  attempt "gains of two options of matrix products" with_and_without
}

# Measures two options of matrix products: the Relu fused into the product before it, and weight gradients in series instead of overlapped.
with_and_without() {
  local config precision more
  for config in toy mnist ae wide; do
    for precision in float32 tf32 bfloat16; do
      for more in "" --fused-relu --serial-weight-gradients; do
        $built/gpu_step --config $config --precision $precision --steps 300 --pairs 5 $more | tee -a "$figures/options.jsonl" || return 1
      done
    done
  done
}

case $what in
  build) attempt "build" build ;;
  test)
    find_libraries
    tests
    ;;
  measure)
    find_libraries
    measure
    ;;
  all)
    if [[ -x $built/${programs[0]} ]] && ! { command -v nvcc || [[ -x /usr/local/cuda/bin/nvcc ]]; } >/dev/null; then
      say "no nvcc here: the programs in $built are used"
    else
      attempt "build" build
    fi
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
