"""Measures a training step of PyTorch on a GPU, with the models, losses, optimizers and batch sizes of bench/common/configs.hpp.

    torch_gpu_step.py --config toy|mnist|ae|wide --mode eager|graph [--precision float32|tf32|bfloat16]
                      [--steps N] [--pairs P | --turns]

The batch is in GPU memory. eager: without a graph. graph: forward, backward and the optimizer's step are captured as one CUDA graph. The
optimizers are PyTorch's fused ones. bfloat16: torch.autocast, with parameters in float32. Prints one JSON object. median_us is the median
over P blocks of N steps, timed by events of the GPU. With --turns, runs two blocks for every line on standard input, and prints an object
each time. bench/peers/run_gpu starts this program.
"""

import argparse
import json
import statistics
import sys
import time

sys.dont_write_bytecode = True  # keeps __pycache__ out of the source folder

import blocks
import torch
import torch_step

torch_step.torch = torch  # torch_step's functions use this name


def training_step(config, mode, precision):
    """Returns two functions: one executes a step, the other returns the last loss."""
    device = torch.device("cuda")
    torch.manual_seed(0)
    model, loss = torch_step.chained(torch_step.layers_of(config)).to(device), torch_step.loss_of(config)
    x, y = (tensor.to(device) for tensor in torch_step.batches(config, config.rows)[0])
    make = getattr(torch.optim, config.optimizer)
    more = {"capturable": True} if config.optimizer == "Adam" and mode == "graph" else {}
    optimizer = make(model.parameters(), lr=config.lr, fused=True, **more)
    found = [None]

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16", cache_enabled=mode == "eager"):
            found[0] = loss(model(x), y)
        found[0].backward()
        optimizer.step()

    if mode == "eager":
        return step, lambda: found[0].item()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(11):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        step()
    return graph.replay, lambda: found[0].item()


def timed(step, count):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        step()
    end.record()
    end.synchronize()
    return 1000 * begin.elapsed_time(end) / count


def warm_up(step, seconds):
    """Runs steps for `seconds`, so that an idle GPU raises its clocks."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        timed(step, 20)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("--config", type=blocks.one_of(torch_step.PERCEPTRONS), required=True, help=", ".join(torch_step.PERCEPTRONS))
    add("--mode", type=blocks.one_of(("eager", "graph")), required=True, help="eager or graph")
    add("--precision", type=blocks.one_of(blocks.PRECISIONS), default="float32", help=", ".join(blocks.PRECISIONS) + " (default: float32)")
    add("--steps", type=blocks.at_least(1), default=1000, help="of a block (default: 1000)")
    add("--pairs", type=blocks.at_least(1), default=11, help="blocks (default: 11)")
    add("--turns", action="store_true", help="two blocks for every line on the standard input")
    return parser.parse_args()


def main():
    flags = parse()
    if not torch.cuda.is_available():
        print("torch_gpu_step.py: PyTorch finds no GPU", file=sys.stderr)
        return 1
    torch.backends.cuda.matmul.allow_tf32 = flags.precision == "tf32"
    step, last_loss = training_step(torch_step.PERCEPTRONS[flags.config], flags.mode, flags.precision)
    step()
    first = last_loss()
    warm_up(step, 0.5)

    def make_blocks(count):
        median_us = statistics.median(timed(step, flags.steps) for _ in range(count))
        figures = {"median_us": round(median_us, 3), "first_loss": first, "last_loss": last_loss()}
        how = {"peer": "pytorch", "version": torch.__version__, "device": torch.cuda.get_device_name()}
        print(json.dumps({**how, **vars(flags), **figures}), flush=True)

    if not flags.turns:
        make_blocks(flags.pairs)
        return 0
    for _ in sys.stdin:
        warm_up(step, 0.03)
        make_blocks(2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
