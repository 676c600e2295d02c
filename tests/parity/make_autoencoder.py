#!/usr/bin/env python3
"""Records the losses of PyTorch's remote objects (torch.distributed.rpc) for the model of autoencoder_rpc, from pdp's initial parameters.

    pip install torch safetensors numpy
    autoencoder_rpc --seed 1 --epochs 0 --save init.safetensors
    python3 tests/parity/make_autoencoder.py init.safetensors        writes autoencoder_losses.csv beside itself

A master and two workers run as three processes, as autoencoder_rpc does. The digits, their order and the initial parameters are those of
`autoencoder_rpc --seed 1`. The tests read the losses and need no PyTorch.
"""
import gzip
import os
import pathlib
import socket
import sys

import numpy
import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing
from safetensors.torch import load_file
from torch.distributed.optim import DistributedOptimizer

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parent.parent / "examples/data/mnist/t10k-images-idx3-ubyte.gz"
TRAIN, PIXELS, HIDDEN, LATENT, BATCH, STEPS, RATE, SEED = 9000, 784, 128, 28, 64, 100, 0.01, 1
BITS = (1 << 64) - 1


def mix(x):
    """The output function of splitmix64."""
    x = x + 0x9E3779B97F4A7C15 & BITS
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & BITS
    x = (x ^ x >> 27) * 0x94D049BB133111EB & BITS
    return x ^ x >> 31


def fnv1a(name):
    total = 0xCBF29CE484222325
    for byte in name.encode():
        total = (total ^ byte) * 0x100000001B3 & BITS
    return total


def philox(counter, key):
    """Philox4x32-10 of a counter of four words and a key of two. Returns four words."""
    a, b, c, d = counter
    low, high = key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = second >> 32 ^ b ^ low, second & 0xFFFFFFFF, first >> 32 ^ d ^ high, first & 0xFFFFFFFF
        low, high = low + 0x9E3779B9 & 0xFFFFFFFF, high + 0xBB67AE85 & 0xFFFFFFFF
    return a, b, c, d


def draws(key):
    """The 64-bit numbers of a key's stream."""
    for block in range(1 << 32):
        a, b, c, d = philox((block, 0, 0, 0), (key & 0xFFFFFFFF, key >> 32))
        yield b << 32 | a
        yield d << 32 | c


def order_of_samples(epoch):
    """pdp::data::Sampler's order: a Fisher-Yates shuffle by the stream of (seed, "order of samples", epoch)."""
    stream = draws(mix(mix(mix(SEED) ^ fnv1a("order of samples")) ^ epoch))

    def below(bound):
        while (draw := next(stream)) < (1 << 64) % bound:
            pass
        return draw % bound

    order = list(range(TRAIN))
    for left in range(TRAIN, 1, -1):
        other = below(left)
        order[left - 1], order[other] = order[other], order[left - 1]
    return order


def digits():
    raw = numpy.frombuffer(gzip.open(DIGITS).read(), numpy.uint8, offset=16)
    return torch.from_numpy(raw.reshape(-1, PIXELS).astype(numpy.float32) / 255)[:TRAIN]


class Half(torch.nn.Module):
    """The encoder or the decoder, with the parameters of pdp's layers PART.0 and PART.1."""

    def __init__(self, part, widths, file):
        super().__init__()
        layers = [torch.nn.Linear(*widths[:2]), torch.nn.Linear(*widths[1:])]
        self.net = torch.nn.Sequential(*layers)
        values = load_file(file)
        with torch.no_grad():
            for i, layer in enumerate(layers):
                layer.weight.copy_(values[f"{part}.{i}.weight"])
                layer.bias.copy_(values[f"{part}.{i}.bias"])

    def forward(self, x):
        return self.net(x)

    def references(self):
        return [rpc.RRef(each) for each in self.parameters()]


def master(file):
    encoder = rpc.remote("worker1", Half, args=(0, (PIXELS, HIDDEN, LATENT), file))
    decoder = rpc.remote("worker2", Half, args=(1, (LATENT, HIDDEN, PIXELS), file))
    parameters = encoder.rpc_sync().references() + decoder.rpc_sync().references()
    optimizer = DistributedOptimizer(torch.optim.Adam, parameters, lr=RATE)
    images, order, losses = digits(), order_of_samples(0), []
    for step in range(STEPS):
        x = images[order[step * BATCH : (step + 1) * BATCH]]
        with dist_autograd.context() as context:
            loss = torch.nn.functional.mse_loss(decoder.rpc_sync().forward(encoder.rpc_sync().forward(x)), x)
            dist_autograd.backward(context, [loss])
            optimizer.step(context)
        losses.append(loss.item())
    with open(HERE / "autoencoder_losses.csv", "w") as out:
        out.write("step,loss\n")
        out.writelines(f"{step},{loss:.9g}\n" for step, loss in enumerate(losses))


def run(rank, port, file):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    torch.set_num_threads(1)
    rpc.init_rpc(f"worker{rank}" if rank else "master", rank=rank, world_size=3)
    if rank == 0:
        master(file)
    rpc.shutdown()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} INIT.safetensors")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port, str(pathlib.Path(sys.argv[1]).resolve())), nprocs=3)
