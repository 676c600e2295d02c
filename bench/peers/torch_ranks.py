"""Shared by the PyTorch programs in this folder: ranks that start together and end together."""

import os
import sys

import blocks


def import_torch(threads):
    """Imports and returns the module torch. Call it after the flags are parsed: the import takes seconds, for which --help should not wait,
    and the number of threads must be set before it."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch
    import torch.distributed

    torch.set_num_threads(threads)
    return torch


def pin(rank, world):
    allowed = sorted(os.sched_getaffinity(0))
    if world <= len(allowed):
        os.sched_setaffinity(0, {allowed[rank]})


def run_rank(world, body, rank, store):
    from torch import distributed

    parent = os.getppid()
    blocks.die_with_parent()
    if os.getppid() != parent:  # the parent ended before prctl took effect
        os._exit(1)
    pin(rank, world)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # otherwise Gloo resolves the name of this host, which may have no address
    store = distributed.FileStore(store, world)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=world)
    body(rank)
    distributed.destroy_process_group()


def run(world, body):
    """Calls body(rank) for each rank, in a process for each if there are several. Each rank is pinned to its own core if there are enough.
    Returns whether all ranks succeeded. If one fails, the others are killed."""
    import multiprocessing
    from multiprocessing.connection import wait

    if world == 1:
        pin(0, 1)
        body(0)
        return True
    fork = multiprocessing.get_context("fork")  # fork is safe: torch is imported but has not started a thread yet
    # The ranks rendezvous through a file, so that they need no free port. The file is in memory, so that it vanishes even if they are killed.
    store = os.memfd_create("store")
    ranks = [fork.Process(target=run_rank, args=(world, body, rank, f"/proc/self/fd/{store}")) for rank in range(world)]
    for process in ranks:
        process.start()
    running = {process.sentinel: process for process in ranks}
    while running:
        for sentinel in wait(running):
            process = running.pop(sentinel)
            process.join()
            if process.exitcode != 0:
                for other in ranks:
                    other.kill()
                print(f"rank {ranks.index(process)} has ended with status {process.exitcode}", file=sys.stderr)
                return False
    return True
