"""What the programs of PyTorch beside this file share: ranks, which start together and end together."""

import os
import sys

import blocks


def import_torch(threads):
    """The module. Only now: it takes seconds, which --help need not, and its threads are to be so many from the start."""
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
    if os.getppid() != parent:  # it has ended before the kernel knew
        os._exit(1)
    pin(rank, world)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # what this host is called may have no address
    store = distributed.FileStore(store, world)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=world)
    body(rank)
    distributed.destroy_process_group()


def run(world, body):
    """Calls body(rank), on processes where there are several ranks, each on a core of its own where there are enough. Whether all of them
    succeeded; when one has not, the others are ended."""
    import multiprocessing
    from multiprocessing.connection import wait

    if world == 1:
        pin(0, 1)
        body(0)
        return True
    fork = multiprocessing.get_context("fork")  # torch is there already and has not yet started a thread
    # They find each other by a file, so that no port need be free; it is in memory, so that nothing is left of it however they end.
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
