#!/usr/bin/env python3
"""Records the losses of three convolutional networks in PyTorch: LeNet, a residual network such as that of examples/digits_cnn.cpp, and one
with batch normalisation.

    pip install torch numpy
    python3 tests/parity/make_images.py        writes NAME_losses.csv beside itself for lenet, residual, resnet

The digits are those in examples/data, in their order; batches follow one another without a shuffle. A formula gives the initial parameters,
so that no file is needed for them. The tests read the losses and need no PyTorch.
"""
import gzip
import pathlib

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parent.parent / "examples/data/mnist"
BATCH, STEPS, SCALE = 32, 100, 2
RATES = {"lenet": 0.01, "residual": 0.01, "resnet": 0.001}


class Residual(torch.nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


class Sum(torch.nn.ModuleList):
    def forward(self, x):
        return sum(branch(x) for branch in self)


def lenet():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(6, 16, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(400, 120), torch.nn.ReLU(), torch.nn.Linear(120, 84), torch.nn.ReLU(), torch.nn.Linear(84, 10))  # fmt: skip


def residual():
    def convolution(inputs, outputs, stride=1):
        return torch.nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)

    def block(channels):
        norms = torch.nn.GroupNorm(4, channels), torch.nn.GroupNorm(4, channels)
        return Residual(convolution(channels, channels), norms[0], torch.nn.Tanh(), convolution(channels, channels), norms[1])

    wider = torch.nn.Sequential(convolution(16, 32, 2), torch.nn.GroupNorm(4, 32)), torch.nn.Conv2d(16, 32, 1, 2)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, 2, 1), torch.nn.Tanh(), block(16), torch.nn.Tanh(), Sum(wider), torch.nn.Tanh(), block(32),
        torch.nn.AvgPool2d(3, 2, 1), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(128, 10))  # fmt: skip


def resnet():
    nn = torch.nn

    def block(inputs, outputs, stride):
        convolutions = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        return convolutions[0], nn.BatchNorm2d(outputs), nn.ReLU(), convolutions[1], nn.BatchNorm2d(outputs)

    def wider(inputs, outputs):
        return Sum((nn.Sequential(*block(inputs, outputs, 2)), nn.Conv2d(inputs, outputs, 1, 2, bias=False)))

    return nn.Sequential(
        nn.Conv2d(1, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), Residual(*block(4, 4, 1)), nn.ReLU(), wider(4, 8), nn.ReLU(),
        wider(8, 8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))  # fmt: skip


def set_parameters(model):
    """Sets element i of tensor t to 2 (2 f - 1) / sqrt(inputs), with f the fraction of 0.618033988749895 (i + 1) + 0.137 t. Weights of
    normalisation are 1 more."""
    inputs = 1
    with torch.no_grad():
        for number, (name, tensor) in enumerate(model.named_parameters()):
            if tensor.dim() > 1:
                inputs = tensor[0].numel()
            place = 0.618033988749895 * numpy.arange(1, tensor.numel() + 1, dtype=numpy.float64) + 0.137 * number
            values = SCALE * (2 * (place - numpy.floor(place)) - 1) / numpy.sqrt(inputs)
            is_scale = name.endswith("weight") and tensor.dim() == 1
            tensor.copy_(torch.from_numpy((values + is_scale).astype(numpy.float32)).view(tensor.shape))


def read(name, offset):
    with gzip.open(DIGITS / name) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=offset)


def main():
    torch.set_num_threads(1)
    images = read("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)[: BATCH * STEPS].astype(numpy.float32)
    x = (torch.from_numpy(images) / 255 - 0.1307) / 0.3081
    y = torch.from_numpy(read("t10k-labels-idx1-ubyte.gz", 8)[: BATCH * STEPS].astype(numpy.int64))
    for name, model in (("lenet", lenet()), ("residual", residual()), ("resnet", resnet())):
        set_parameters(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATES[name])
        with open(HERE / f"{name}_losses.csv", "w") as file:
            file.write("step,loss\n")
            for step in range(STEPS):
                rows = slice(step * BATCH, (step + 1) * BATCH)
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
                loss.backward()
                optimizer.step()
                file.write(f"{step},{loss.item():.9g}\n")


if __name__ == "__main__":
    main()
