# shellcheck shell=bash
# Runs the scripts in examples/slurm as jobs, for the script `run` beside this file, which includes it.

readonly scripts=$source/examples/slurm
# Two ranks on each node, whatever the script says, as a debug build is slow. The digits are few, so epochs are short.
readonly training=(--data "$source/examples/data/mnist" --batch-size 64 --comm tcp)

# batch SCRIPT [SBATCH_ARGUMENT...] -- [FLAG...]: submits a script of examples/slurm. Leaves the job's number in $job and its output in out.
batch() {
  local -r script=$1
  local -a options=()
  shift
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  rm -f "$work/out" "$work/err"
  touch "$work/err"
  cd "$work"
  job=$(PROGRAM=$mnist sbatch --parsable --output "$work/out" --requeue "${options[@]}" "$scripts/$script.sbatch" "$@")
}

# in_state STATES SECONDS: waits until the last batch job is in one of these states (a pattern).
in_state() {
  local i state=
  for ((i = 0; i < 10 * $2; ++i)); do
    state=$(scontrol show job "$job" -o | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p' | sort -u | tr '\n' ' ')
    # shellcheck disable=SC2053 # the right side is a pattern
    if [[ $state == $1\  ]]; then return; fi
    if [[ $state == *FAILED* || $state == *TIMEOUT* ]]; then break; fi
    sleep 0.1
  done
  scontrol show job "$job" >>"$work/err"
  fail "job $job is ${state}within $2 s, expected $1"
}

# ends_well NAME: waits for the end of the last batch job, which must succeed.
ends_well() {
  in_state "COMPLETED" 300
  echo "$1: $(grep -c "test accuracy" "$work/out") lines with an accuracy"
}

# until_checkpoint: waits until the last batch job has saved a checkpoint.
until_checkpoint() {
  local i
  for ((i = 0; i < 300; ++i)); do
    if [[ -L $work/checkpoints-$job/latest ]]; then return; fi
    sleep 0.1
  done
  fail "job $job has saved no checkpoint in 30 s"
}

# same_as_whole NAME: waits for the end of the last job, which must have made the parameters of a job that was not interrupted. Sets $restarts.
same_as_whole() {
  in_state "COMPLETED" 400
  restarts=$(scontrol show job "$job" -o | sed -n 's/.* Restarts=\([0-9]*\) .*/\1/p')
  cmp "$work/whole.safetensors" "$work/resumed.safetensors" || fail "$1 does not end with the parameters of an uninterrupted job"
}

check_batch_scripts() {
  # With TIMES, long enough to meet the signal of a time limit: Slurm looks for these every 30 s or so.
  local -r length=(--epochs $((times > 1 ? 150 : 20)) --checkpoint-every 10)
  local i first
  batch one_device -- "${training[@]}" --epochs 1
  ends_well "one_device.sbatch"
  batch one_node --ntasks 2 -- "${training[@]}" --epochs 1
  ends_well "one_node.sbatch"
  batch many_nodes -- "${training[@]}" --epochs 1
  ends_well "many_nodes.sbatch"
  batch cpu --ntasks-per-node 2 -- "${training[@]}" --epochs 1
  ends_well "cpu.sbatch"
  batch array -- "${training[@]}" --epochs 1
  ends_well "array.sbatch"
  for i in 0 1 2 3; do [[ -L $work/checkpoints-$job-$i/latest ]] || fail "task $i of the array has saved no checkpoint"; done

  batch requeue --ntasks-per-node 1 -- "${training[@]}" "${length[@]}" --save "$work/whole.safetensors"
  ends_well "requeue.sbatch"
  for ((i = 0; i < times; ++i)); do
    rm -f "$work/resumed.safetensors"
    batch requeue --ntasks-per-node 1 -- "${training[@]}" "${length[@]}" --save "$work/resumed.safetensors"
    first=$job
    until_checkpoint
    status=0
    timeout 100 srun -p urgent -N 2 --exclusive true >>"$work/err" 2>&1 || status=$?
    ((status == 0)) || fail "the urgent job ended with $status"
    job=$first
    same_as_whole "a job that was preempted"
    ((restarts > 0)) || fail "job $job was preempted, but not restarted"
  done
  echo "preempted, requeued and resumed $times times: the parameters of an uninterrupted job to the bit"

  for ((i = 0; i < times; ++i)); do
    rm -f "$work/resumed.safetensors"
    if ((times > 1)); then
      batch requeue --ntasks-per-node 1 --time 1 --signal B:USR1@55 -- "${training[@]}" "${length[@]}" --save "$work/resumed.safetensors"
    else # the same signal to the same process, without the wait
      batch requeue --ntasks-per-node 1 -- "${training[@]}" "${length[@]}" --save "$work/resumed.safetensors"
      until_checkpoint
      scancel --batch --signal USR1 "$job"
    fi
    same_as_whole "a job that was stopped by a signal to its script"
    ((restarts > 0)) || fail "job $job got a signal, but was not restarted"
  done
  echo "stopped by a signal, requeued and resumed $times times: the parameters of an uninterrupted job to the bit"

  batch requeue --ntasks-per-node 1 -- "${training[@]}" "${length[@]}"
  until_checkpoint
  scancel "$job"
  in_state "CANCELLED" 60
  sleep 3
  in_state "CANCELLED" 1
  echo "a job that scancel ends is not queued again"
}
