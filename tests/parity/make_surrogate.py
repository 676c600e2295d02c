#!/usr/bin/env python3
"""Records how PyTorch trains a surrogate model with a validation after each epoch: data, initial parameters and results.

    pip install torch safetensors
    python3 tests/parity/make_surrogate.py        writes surrogate.safetensors, surrogate_init.safetensors and surrogate.csv beside itself

The function is the first of J. H. Friedman, "Multivariate adaptive regression splines", 1991, with ten inputs of which five matter. The tests
read these files and need no PyTorch.
"""
import math
import pathlib

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
INPUTS, HIDDEN, TRAIN, HELD_OUT, BATCH, EPOCHS, RATE = 10, 32, 400, 100, 32, 12, 0.01


def make_set():
    x = torch.rand(TRAIN + HELD_OUT, INPUTS)
    y = 10 * torch.sin(math.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4] + torch.randn(len(x))
    return x * 2 - 1, (y[:, None] - 14) / 5


def evaluate(model, x, y):
    """Returns the mean squared error, the mean absolute error and the coefficient of determination, in double precision."""
    with torch.no_grad():
        error = (model(x) - y).double()
    squares = (error**2).sum()
    return squares / len(x), error.abs().mean(), 1 - squares / ((y.double() - y.double().mean()) ** 2).sum()


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    x, y = make_set()
    train, held_out = (x[:TRAIN].clone(), y[:TRAIN].clone()), (x[TRAIN:].clone(), y[TRAIN:].clone())
    save_file({"train.x": train[0], "train.y": train[1], "held_out.x": held_out[0], "held_out.y": held_out[1]}, HERE / "surrogate.safetensors")
    layers = [torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 1)]
    model = torch.nn.Sequential(*layers)
    save_file({name: tensor.detach().clone() for name, tensor in model.state_dict().items()}, HERE / "surrogate_init.safetensors")
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    with open(HERE / "surrogate.csv", "w") as file:
        file.write("epoch,loss,validation loss,mean absolute error,R2\n")
        for epoch in range(EPOCHS):
            total = 0.0
            for first in range(0, TRAIN, BATCH):
                rows = train[0][first : first + BATCH]
                loss = torch.nn.functional.mse_loss(model(rows), train[1][first : first + BATCH])
                total += loss.item() * len(rows)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            file.write(f"{epoch},{total / TRAIN:.9g}," + ",".join(f"{value.item():.9g}" for value in evaluate(model, *held_out)) + "\n")


if __name__ == "__main__":
    main()
