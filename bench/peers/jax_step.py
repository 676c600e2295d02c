"""Measures a training step of JAX on the CPU, with the models, losses, optimizers and batch sizes of bench/common/configs.hpp.

    jax_step.py --config toy|mnist|ae|wide|lenet|resnet|gpt [--world N] [--steps N] [--warm-up N]

A step is one program that XLA compiles: forward, backward and the update of the parameters, whose memory it reuses. With several devices,
each has its own batch, and gradients are averaged over them. BatchNorm then takes the statistics of all of these batches, as in pdp, but not
in PyTorch's DistributedDataParallel. Each device has one thread, and the process is pinned to as many cores.

Prints one JSON object. median_us is the median over the steps; the warm-up steps are not timed. run_step starts this program.
"""

import argparse
import json
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True  # keeps __pycache__ out of the source folder

import blocks
import models
from torch_step import CONFIGS, POOL


# ---- The models: dictionaries of parameters with PyTorch's layouts and initial values ---------------------------------------------------


def uniform(random, shape, fan_in):
    return random.uniform(-(fan_in**-0.5), fan_in**-0.5, shape).astype("float32")


class Builder:
    """Collects the parameters of a model, and returns a function for each layer: layer(parameters, x, updates) -> y. A BatchNorm writes its
    new running statistics to `updates`. Their names are in `buffers`."""

    def __init__(self, random):
        self.random, self.values, self.buffers = random, {}, set()

    def add(self, value):
        name = str(len(self.values))
        self.values[name] = value
        return name

    def linear(self, inputs, outputs, bias=True):
        weight = self.add(uniform(self.random, (outputs, inputs), inputs))
        term = self.add(uniform(self.random, (outputs,), inputs)) if bias else None
        return lambda p, x, _: x @ p[weight].T + (p[term] if bias else 0)

    def convolution(self, inputs, outputs, kernel, stride=1, padding=0, bias=True):
        fan_in = inputs * kernel * kernel
        weight = self.add(uniform(self.random, (outputs, inputs, kernel, kernel), fan_in))
        term = self.add(uniform(self.random, (outputs, 1, 1), fan_in)) if bias else None

        def layer(p, x, _):
            y = jax.lax.conv_general_dilated(x, p[weight], (stride, stride), [(padding, padding)] * 2, dimension_numbers=("NCHW", "OIHW", "NCHW"))
            return y + p[term] if bias else y

        return layer

    def batch_norm(self, channels, momentum=0.1, eps=1e-5):
        weight, bias = self.add(numpy.ones((channels, 1, 1), "float32")), self.add(numpy.zeros((channels, 1, 1), "float32"))
        mean, variance = self.add(numpy.zeros((channels, 1, 1), "float32")), self.add(numpy.ones((channels, 1, 1), "float32"))
        self.buffers |= {mean, variance}

        def layer(p, x, updates):
            own_mean, own_variance = x.mean((0, 2, 3), keepdims=True)[0], x.var((0, 2, 3), keepdims=True)[0]
            count = x.shape[0] * x.shape[2] * x.shape[3]
            updates[mean] = (1 - momentum) * p[mean] + momentum * own_mean
            updates[variance] = (1 - momentum) * p[variance] + momentum * own_variance * count / (count - 1)
            return (x - own_mean) * jax.lax.rsqrt(own_variance + eps) * p[weight] + p[bias]

        return layer

    def layer_norm(self, width, eps=1e-5):
        weight, bias = self.add(numpy.ones(width, "float32")), self.add(numpy.zeros(width, "float32"))

        def layer(p, x, _):
            apart = x - x.mean(-1, keepdims=True)
            return apart * jax.lax.rsqrt((apart**2).mean(-1, keepdims=True) + eps) * p[weight] + p[bias]

        return layer

    def attention(self, width, heads):
        project, output = self.linear(width, 3 * width), self.linear(width, width)

        def layer(p, x, updates):
            rows, positions, _ = x.shape
            q, k, v = jnp.moveaxis(project(p, x, updates).reshape(rows, positions, 3, heads, width // heads), 2, 0)
            y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
            return output(p, y.reshape(rows, positions, width), updates)

        return layer


def elementwise(function):
    return lambda p, x, updates: function(x)


def chain(*layers):
    def layer(p, x, updates):
        for each in layers:
            x = each(p, x, updates)
        return x

    return layer


def total(*branches):
    return lambda p, x, updates: sum(branch(p, x, updates) for branch in branches)


def residual(*layers):
    return total(elementwise(lambda x: x), chain(*layers))


def largest_of_windows(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def flat(x):
    return x.reshape(x.shape[0], -1)


def perceptron(make, config):
    layers = []
    for inputs, outputs in zip(config.widths, config.widths[1:]):
        layers.append(make.linear(inputs, outputs, config.bias))
        if config.activation:
            layers.append(elementwise({"Tanh": jnp.tanh, "ReLU": jax.nn.relu}[config.activation]))
    return chain(*(layers[:-1] if config.activation else layers))


def lenet(make):
    relu, pool = elementwise(jax.nn.relu), elementwise(largest_of_windows)
    return chain(
        make.convolution(1, 6, 5, padding=2), relu, pool, make.convolution(6, 16, 5), relu, pool, elementwise(flat),
        make.linear(400, 120), relu, make.linear(120, 84), relu, make.linear(84, 10))  # fmt: skip


def resnet(make):
    relu = elementwise(jax.nn.relu)

    def convolution(inputs, outputs, stride):
        return make.convolution(inputs, outputs, 3, stride, 1, bias=False)

    def block(inputs, outputs, stride):
        first = convolution(inputs, outputs, stride), make.batch_norm(outputs), relu
        return *first, convolution(outputs, outputs, 1), make.batch_norm(outputs)

    def wider(inputs, outputs):
        return total(chain(*block(inputs, outputs, 2)), make.convolution(inputs, outputs, 1, 2, bias=False))

    return chain(
        convolution(1, 16, 1), make.batch_norm(16), relu, residual(*block(16, 16, 1)), relu, wider(16, 32), relu, wider(32, 64), relu,
        elementwise(lambda x: x.mean((2, 3))), make.linear(64, 10))  # fmt: skip


def gpt(make, layers=4, width=128, heads=4, positions=128, vocabulary=128):
    vectors = make.add(make.random.standard_normal((vocabulary, width)).astype("float32"))
    places = make.add(make.random.standard_normal((positions, width)).astype("float32"))
    blocks_of_model = []
    for _ in range(layers):
        blocks_of_model.append(residual(make.layer_norm(width), make.attention(width, heads)))
        gelu = elementwise(lambda x: jax.nn.gelu(x, approximate=False))
        blocks_of_model.append(residual(make.layer_norm(width), make.linear(width, 4 * width), gelu, make.linear(4 * width, width)))
    begin = lambda p, x, _: p[vectors][x] + p[places]
    return chain(begin, *blocks_of_model, make.layer_norm(width), make.linear(width, vocabulary))


# ---- Steps ----------------------------------------------------------------------------------------------------------


def loss_of(config, outputs, targets):
    if config.squared_error:
        return jnp.mean((outputs - targets) ** 2)
    logits = outputs.reshape(-1, outputs.shape[-1])
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), targets.reshape(-1, 1), 1))


def step_of(config, forward, buffers):
    """Returns step(parameters, state, number of the step, x, y) -> the first three, changed. PyTorch's rules and defaults."""

    def loss(trained, fixed, x, y):
        updates = {}
        return loss_of(config, forward({**trained, **fixed}, x, updates), y), updates

    def rule(value, gradient, state, number):
        if config.optimizer == "SGD":
            return value - config.lr * gradient, state
        mean, square = 0.9 * state[0] + 0.1 * gradient, 0.999 * state[1] + 0.001 * gradient**2
        if config.optimizer == "AdamW":
            value = value * (1 - config.lr * 0.01)
        moved = mean / (1 - 0.9**number) / (jnp.sqrt(square / (1 - 0.999**number)) + 1e-8)
        return value - config.lr * moved, (mean, square)

    def step(parameters, state, number, x, y):
        trained = {name: value for name, value in parameters.items() if name not in buffers}
        fixed = {name: value for name, value in parameters.items() if name in buffers}
        (_, updates), gradients = jax.value_and_grad(loss, has_aux=True)(trained, fixed, x, y)
        number = number + 1
        made = {name: rule(value, gradients[name], state[name], number) for name, value in trained.items()}
        return {**{name: each[0] for name, each in made.items()}, **updates}, {name: each[1] for name, each in made.items()}, number

    return step


def batches(config, random, rows):
    """Returns POOL pairs of input and target, as torch_step.py does."""
    if config.model in models.TOKENS:
        shape = (rows, *models.SHAPES[config.model])
        return [tuple(random.integers(0, config.widths[-1], shape).astype("int32") for _ in range(2)) for _ in range(POOL)]
    shape = models.SHAPES[config.model] if config.model else config.widths[:1]
    inputs = [random.uniform(0, 1, (rows, *shape)).astype("float32") for _ in range(POOL)]
    if config.squared_error:
        return [(x, x) for x in inputs]
    return [(x, random.integers(0, config.widths[-1], rows).astype("int32")) for x in inputs]


def measure(flags):
    """Returns the median time of a step in microseconds."""
    config, random = CONFIGS[flags.config], numpy.random.default_rng(0)
    make = Builder(random)
    forward = {"lenet": lenet, "resnet": resnet, "gpt": gpt}[config.model](make) if config.model else perceptron(make, config)
    mesh = jax.sharding.Mesh(numpy.array(jax.devices()[: flags.world]), ("data",))
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    by_rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    zeros = {name: (numpy.zeros_like(value),) * 2 for name, value in make.values.items() if name not in make.buffers}
    # Copies, as donated memory must not belong to two arrays.
    place = lambda tree: jax.tree.map(lambda value: jax.device_put(numpy.array(value), everywhere), tree)
    parameters, state, number = place(make.values), place(zeros), place(numpy.float32(0))
    pool = [tuple(jax.device_put(each, by_rows) for each in batch) for batch in batches(config, random, config.rows * flags.world)]
    step = jax.jit(step_of(config, forward, make.buffers), donate_argnums=(0, 1, 2))
    times = []
    for at in range(flags.warm_up + flags.steps):
        begin = time.perf_counter()
        parameters, state, number = step(parameters, state, number, *pool[at % POOL])
        jax.block_until_ready((parameters, state, number))
        if at >= flags.warm_up:
            times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


# ---- Flags ----------------------------------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(
        prog="jax_step.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--config", type=blocks.one_of(CONFIGS), required=True, help=", ".join(CONFIGS))
    add("--world", type=blocks.at_least(1), default=1, help="devices (default: 1)")
    steps = ", ".join(f"{config.steps} {key}" for key, config in CONFIGS.items())
    add("--steps", type=blocks.at_least(1), default=None, help=f"timed steps (default: {steps})")
    add("--warm-up", type=blocks.at_least(1), default=None, metavar="STEPS", help="steps before them (default: a tenth, at least 3)")
    flags = parser.parse_args()
    flags.steps = flags.steps or CONFIGS[flags.config].steps
    flags.warm_up = flags.warm_up or max(3, flags.steps // 10)
    return flags


def main():
    flags = parse()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[: flags.world])  # XLA starts as many threads as there are cores
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=false --xla_force_host_platform_device_count={flags.world}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    global jax, jnp, numpy
    import jax
    import jax.numpy as jnp
    import numpy

    median_us = measure(flags)
    figures = {"median_us": round(median_us, 3), "samples_per_s": round(CONFIGS[flags.config].rows * flags.world * 1e6 / median_us)}
    how = {name: getattr(flags, name) for name in ("config", "world", "steps", "warm_up")}
    print(json.dumps({"peer": "jax", "version": jax.__version__, **how, **figures}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
