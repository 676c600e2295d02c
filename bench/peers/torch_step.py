"""Measures a training step of PyTorch on the CPU, with the models, losses, optimizers and batch sizes of bench/common/configs.hpp.

    torch_step.py step --config toy|mnist|ae|wide|lenet|resnet|gpt [--world N] [--threads K] [--compile]
    torch_step.py pipe --config mnist|wide --schedule gpipe|1f1b [--world 2] [--micro-batches M] [--batch B]

step: one rank, or several with DistributedDataParallel over Gloo. Each rank has its own batch. --compile: by torch.compile. pipe: torch.distributed.pipelining, with the
layers divided evenly between the ranks, and Adam for both configurations, as in bench/strategies. All other settings are PyTorch's
defaults.

Prints one JSON object. median_us is the median over the steps of rank 0; the warm-up steps are not timed. Starts its own ranks, which end
with it. Each rank is pinned to its own core if there are enough. run_step and run_pipelines start this program.
"""

import argparse
import json
import statistics
import sys
import time
from collections import namedtuple

sys.dont_write_bytecode = True  # keeps __pycache__ out of the source folder

import blocks
import models
import torch_ranks

# `model`: a name in models.py; without it, a multilayer perceptron. Of a model, `widths` are those of input and output.
Config = namedtuple("Config", "widths activation bias rows optimizer squared_error lr steps model", defaults=(None,))
PERCEPTRONS = {
    "toy": Config((1024, 256, 256, 256, 32), "Tanh", False, 64, "SGD", False, 0.1, 300),
    "mnist": Config((784, 64, 64, 64, 10), "ReLU", True, 128, "Adam", False, 1e-3, 500),
    "ae": Config((784, 128, 28, 128, 784), None, True, 64, "Adam", True, 1e-3, 300),
    "wide": Config((1024, 2048, 2048, 2048, 1000), "ReLU", True, 128, "SGD", False, 0.01, 15),
}
CONFIGS = {
    **PERCEPTRONS,
    "lenet": Config((784, 10), None, True, 128, "AdamW", False, 1e-3, 60, "lenet"),
    "resnet": Config((784, 10), None, True, 64, "AdamW", False, 1e-3, 24, "resnet"),
    "gpt": Config((128, 128), None, True, 16, "AdamW", False, 1e-3, 12, "gpt"),
}
PIPELINED = {"mnist": CONFIGS["mnist"]._replace(steps=60), "wide": CONFIGS["wide"]._replace(optimizer="Adam", lr=1e-3, steps=6)}
POOL = 16  # batches that the steps use in turn, so that the input of a step is not in the cache from the step before


# ---- The model ------------------------------------------------------------------------------------------------------


def layers_of(config):
    """Returns a list for each linear layer: the layer and its activation, if any."""
    pairs = list(zip(config.widths, config.widths[1:]))
    layers = [[torch.nn.Linear(inputs, outputs, bias=config.bias)] for inputs, outputs in pairs]
    if config.activation:
        for layer in layers[:-1]:
            layer.append(getattr(torch.nn, config.activation)())
    return layers


def chained(layers):
    return torch.nn.Sequential(*(module for layer in layers for module in layer))


def optimizer_of(config, model):
    return getattr(torch.optim, config.optimizer)(model.parameters(), lr=config.lr)


def loss_of(config):
    return torch.nn.functional.mse_loss if config.squared_error else torch.nn.functional.cross_entropy


def batches(config, rows):
    """Returns POOL pairs of input, rows of samples, and target: classes [rows], or the input itself for a squared error."""
    if config.model in models.TOKENS:
        tokens = [torch.randint(config.widths[-1], (2, rows, *models.SHAPES[config.model])) for _ in range(POOL)]
        return [(x, y.flatten()) for x, y in tokens]
    shape = models.SHAPES[config.model] if config.model else config.widths[:1]
    inputs = [torch.rand(rows, *shape) for _ in range(POOL)]
    if config.squared_error:
        return [(x, x) for x in inputs]
    return [(x, torch.randint(config.widths[-1], (rows,))) for x in inputs]


# ---- Steps ----------------------------------------------------------------------------------------------------------


def data_parallel_step(flags, rank):
    config = flags.chosen
    loss, pool = loss_of(config), batches(config, config.rows)
    model = models.MODELS[config.model](torch) if config.model else chained(layers_of(config))
    if flags.world > 1:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = optimizer_of(config, model)
    if flags.compile:
        model = torch.compile(model)

    def step(number):
        x, y = pool[number % POOL]
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step


def pipeline_step(flags, rank):
    from torch.distributed import pipelining

    config, last = flags.chosen, flags.world - 1
    layers, pool = layers_of(config), batches(config, flags.batch)
    begin, end = (len(layers) * r // flags.world for r in (rank, rank + 1))
    model = chained(layers[begin:end])
    stage = pipelining.PipelineStage(model, rank, flags.world, torch.device("cpu"))
    schedule = {"gpipe": pipelining.ScheduleGPipe, "1f1b": pipelining.Schedule1F1B}[flags.schedule]
    schedule = schedule(stage, flags.micro_batches, loss_fn=loss_of(config))
    optimizer = optimizer_of(config, model)

    def step(number):
        x, y = pool[number % POOL]
        optimizer.zero_grad()
        schedule.step(*((x,) if rank == 0 else ()), **({"target": y} if rank == last else {}))
        optimizer.step()

    return step


def measure(flags, rank):
    """Returns the median time of a step in microseconds."""
    torch.manual_seed(rank if flags.mode == "step" else 0)  # each data-parallel rank draws its own samples; pipeline ranks draw the same ones
    step = (data_parallel_step if flags.mode == "step" else pipeline_step)(flags, rank)
    for number in range(flags.warm_up):
        step(number)
    times = []
    for number in range(flags.steps):
        begin = time.perf_counter()
        step(number)
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def report(flags, rank, median_us):
    if rank != 0:
        return
    rows = flags.chosen.rows * flags.world if flags.mode == "step" else flags.batch
    figures = {"median_us": round(median_us, 3), "samples_per_s": round(rows * 1e6 / median_us)}
    how = {name: value for name, value in vars(flags).items() if name not in ("mode", "chosen")}
    print(json.dumps({"peer": "pytorch", "version": torch.__version__, "mode": flags.mode, **how, **figures}), flush=True)


# ---- Flags ----------------------------------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(
        prog="torch_step.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    modes = parser.add_subparsers(dest="mode", required=True, metavar="step|pipe")

    def mode(name, configs, world, text):
        add = modes.add_parser(name, help=text, description=text, allow_abbrev=False).add_argument
        add("--config", type=blocks.one_of(configs), required=True, help=", ".join(configs))
        add("--world", type=blocks.at_least(world), default=world, help=f"ranks (default: {world})")
        add("--threads", type=blocks.at_least(1), default=1, help="threads of a rank (default: 1)")
        steps = ", ".join(f"{config.steps} {key}" for key, config in configs.items())
        add("--steps", type=blocks.at_least(1), default=None, help=f"timed steps (default: {steps})")
        add("--warm-up", type=blocks.at_least(1), default=None, metavar="STEPS", help="steps before them (default: a tenth, at least 3)")
        return add

    add = mode("step", CONFIGS, 1, "a step on one rank, or data parallel on several")
    add("--compile", action="store_true", help="compile the model by torch.compile")
    add = mode("pipe", PIPELINED, 2, "a step of a pipeline")
    add("--schedule", type=blocks.one_of(("gpipe", "1f1b")), default="1f1b", help="gpipe or 1f1b (default)")
    add("--micro-batches", type=blocks.at_least(1), default=8, metavar="M", help="parts of the batch (default: 8)")
    add("--batch", type=blocks.at_least(1), default=512, help="samples of a step, over all micro-batches (default: 512)")
    flags = parser.parse_args()
    if flags.mode == "pipe" and flags.world > len(CONFIGS[flags.config].widths) - 1:
        parser.error(f"--world {flags.world}: {flags.config} has {len(CONFIGS[flags.config].widths) - 1} layers, and each rank needs one")
    flags.chosen = (CONFIGS if flags.mode == "step" else PIPELINED)[flags.config]
    flags.steps = flags.steps or flags.chosen.steps
    flags.warm_up = flags.warm_up or max(3, flags.steps // 10)
    return flags


def main():
    flags = parse()
    global torch
    torch = torch_ranks.import_torch(flags.threads)
    return 0 if torch_ranks.run(flags.world, lambda rank: report(flags, rank, measure(flags, rank))) else 1


if __name__ == "__main__":
    sys.exit(main())
