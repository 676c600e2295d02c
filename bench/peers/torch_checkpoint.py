#!/usr/bin/env python3
"""Measures how fast torch.distributed.checkpoint saves and loads the state that bench/checkpoint.cpp saves and loads.

    torch_checkpoint.py [--ranks N] [--width W] [--rounds N] [--folder DIR]

Each rank holds a part of the parameters of a multilayer perceptron 1024-W-W-W-1000 and of its Adam state, as DTensors. Prints a JSON object
for each measurement, as bench/checkpoint.cpp does: what ("save", "load"), comm, ranks, bytes, median_ms.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def state_of(width, mesh):
    widths = [1024, width, width, width, 1000]
    shapes = {}
    for number, (rows, cols) in enumerate(zip(widths[1:], widths)):
        shapes[f"{2 * number}.weight"] = (rows, cols)
        shapes[f"{2 * number}.bias"] = (rows,)
    return {
        f"{kind}.{name}": distribute_tensor(torch.randn(shape), mesh, [Shard(0)])
        for kind in ("model", "exp_avg", "exp_avg_sq")
        for name, shape in shapes.items()
    }


def measure(call):
    dist.barrier()
    begin = time.perf_counter()
    call()
    dist.barrier()
    return 1000 * (time.perf_counter() - begin)


def rank_main(rank, options, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=options.ranks)
    mesh = init_device_mesh("cpu", (options.ranks,))
    state = state_of(options.width, mesh)
    own = torch.tensor(sum(each.to_local().numel() * each.to_local().element_size() for each in state.values()))
    dist.all_reduce(own)
    times = {"save": [], "load": []}
    folder = Path(options.folder) / "torch-bench-checkpoint"
    for number in range(options.rounds + 1):  # the first one warms up
        if rank == 0:
            shutil.rmtree(folder, ignore_errors=True)
        saved = measure(lambda: dcp.save(state, checkpoint_id=folder))
        loaded = measure(lambda: dcp.load(state, checkpoint_id=folder))
        if number > 0:
            times["save"].append(saved)
            times["load"].append(loaded)
    if rank == 0:
        shutil.rmtree(folder, ignore_errors=True)
        for what, all_times in times.items():
            print(
                json.dumps(
                    {"what": what, "comm": "gloo", "ranks": options.ranks, "bytes": int(own), "median_ms": round(statistics.median(all_times), 2)}
                )
            )
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--width", type=int, default=3072)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", default=".")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as store:
        mp.spawn(rank_main, args=(options, os.path.join(store, "store")), nprocs=options.ranks)


if __name__ == "__main__":
    main()
