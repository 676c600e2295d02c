# shellcheck shell=bash
# Brings up a Slurm cluster of four nodes, for the script `run` beside this file, which includes it.

export PATH=$PATH:/usr/sbin
readonly network=10.201.0 # exists only in the network namespace of this script
readonly network6=fd00:201
readonly nodes=(n0 n1 n2 n3) # the last two are in a separate partition
readonly work=/run/pdp

bring_up() {
  local i node
  mount -t tmpfs -o mode=755 none /run
  mkdir -p "$work" /run/munge /run/netns
  {
    echo "127.0.0.1 localhost"
    echo "$network.254 $(hostname -s)"
    # Only Slurm knows the names of n2 and n3.
    for i in 0 1; do echo "$network.$((i + 1)) ${nodes[i]}"; done
  } >"$work/hosts"
  mount --bind "$work/hosts" /etc/hosts
  # As Debian's installer does: n0 resolves its own name to a loopback address, which no other host can reach.
  sed 's/.* n0$/127.0.1.1 n0/' "$work/hosts" >"$work/hosts.n0"
  for node in n1 n2 n3; do cp "$work/hosts" "$work/hosts.$node"; done

  ip link set lo up
  ip link add nodes type bridge
  ip address add "$network.254/24" dev nodes
  ip link set nodes up
  for i in "${!nodes[@]}"; do
    node=${nodes[i]}
    ip netns add "$node"
    ip link add "to_$node" type veth peer name eth0 netns "$node"
    ip link set "to_$node" master nodes up
    ip -n "$node" address add "$network.$((i + 1))/24" dev eth0
    ip -n "$node" address add "$network6::$((i + 1))/64" dev eth0 nodad || echo "slurm: there is no IPv6 here"
    ip -n "$node" link set lo up
    ip -n "$node" link set eth0 up
  done
  ip -n n0 address add "$network.101/24" dev eth0 # an address to which the name n0 does not resolve

  cat >"$work/slurm.conf" <<CONF
ClusterName=pdp
SlurmctldHost=$(hostname -s)($network.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=cred_expire=5
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool.%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=2
PropagateResourceLimits=NONE
NodeName=n0 NodeAddr=$network.1 CPUs=8 State=UNKNOWN
NodeName=n1 NodeAddr=$network.2 CPUs=8 State=UNKNOWN
NodeName=n2 NodeAddr=$network.3 CPUs=8 State=UNKNOWN
NodeName=n3 NodeAddr=$network.4 CPUs=8 State=UNKNOWN
PartitionName=main Nodes=n0,n1 Default=YES PriorityTier=1 GraceTime=30 MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=n0,n1 PriorityTier=2 PreemptMode=OFF MaxTime=INFINITE State=UP
PartitionName=hidden Nodes=n2,n3 MaxTime=INFINITE State=UP
CONF
  echo "CgroupPlugin=cgroup/v1" >"$work/cgroup.conf" # set to avoid autodetection; nothing uses it
  export SLURM_CONF=$work/slurm.conf

  (umask 077 && head -c 1024 /dev/urandom >"$work/munge.key")
  munged --force --key-file="$work/munge.key" --pid-file="$work/munged.pid" --log-file="$work/munged.log" --seed-file="$work/munge.seed"
  slurmctld
  for node in "${nodes[@]}"; do
    ip netns exec "$node" unshare --pid --fork --kill-child --mount-proc \
      bash -c "mount --bind $work/hosts.$node /etc/hosts && exec slurmd -D -N $node" >>"$work/$node.log" 2>&1 &
  done
  for ((i = 0; i < 300; ++i)); do
    if [[ $(sinfo -h -N -o "%N %T" 2>/dev/null | sort -u | grep -c " idle$") == "${#nodes[@]}" ]]; then return; fi
    sleep 0.1
  done
  echo "slurm: the nodes did not come up in 30 s:" >&2
  sinfo >&2 || true
  tail -n 20 "$work"/*.log >&2
  return 1
}

# Cancels jobs and ends processes in order. This script is the first process of its namespace, so its end kills all others at once.
take_down() {
  local status=$?
  trap - EXIT
  scancel --user root 2>/dev/null || true
  jobs -p | xargs -r kill 2>/dev/null || true
  exit "$status"
}
trap take_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
