#!/usr/bin/env python3
"""Makes the reference data for toy_mlp with PyTorch: a small dataset, initial parameters, and PyTorch's training losses.

    pip install torch safetensors numpy
    python3 tests/parity/make_toy_mlp.py        writes toy_mlp.safetensors, toy_mlp_init.safetensors and toy_mlp_losses.csv beside itself

The tests read these files and need no PyTorch. Run the script again to check that another version gives the same losses.
"""
import pathlib

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
DIM_IN, DIM_HIDDEN, CLASSES, LAYERS = 24, 16, 5, 4
TRAIN, TEST, BATCH, STEPS, RATE = 200, 40, 16, 200, 0.1
RANKS = 2  # data-parallel ranks, each with a batch of its own


def make_set():
    corners = torch.randn(CLASSES * 3, DIM_IN)
    cluster = torch.randint(0, CLASSES * 3, (TRAIN + TEST,))
    return corners[cluster] + torch.randn(TRAIN + TEST, DIM_IN), cluster % CLASSES


def make_model():
    widths = [DIM_IN] + [DIM_HIDDEN] * (LAYERS - 1) + [CLASSES]
    layers = []
    for i in range(LAYERS):
        linear = torch.nn.Linear(widths[i], widths[i + 1], bias=False)
        torch.nn.init.kaiming_uniform_(linear.weight)
        layers += [linear, torch.nn.Tanh()] if i + 1 < LAYERS else [linear]
    return torch.nn.Sequential(*layers)


def losses(model, x, y, batch):
    """Trains the model and returns the mean loss of each step's batch, before its update. Batches are in order; a short last one is dropped."""
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - 0.7 * step / STEPS)
    found = []
    for step in range(STEPS):
        first = step % (len(x) // batch) * batch
        loss = torch.nn.functional.cross_entropy(model(x[first : first + batch]), y[first : first + batch])
        found.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return found


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    x, y = make_set()
    train, test = (x[:TRAIN].clone(), y[:TRAIN].clone()), (x[TRAIN:].clone(), y[TRAIN:].clone())
    save_file({"train.x": train[0], "train.y": train[1], "test.x": test[0], "test.y": test[1]}, HERE / "toy_mlp.safetensors")
    model = make_model()
    first = {name: value.clone() for name, value in model.state_dict().items()}
    save_file(first, HERE / "toy_mlp_init.safetensors")
    columns = []
    for batch in (BATCH, RANKS * BATCH):
        model.load_state_dict(first)
        columns.append(losses(model, *train, batch))
    with open(HERE / "toy_mlp_losses.csv", "w") as file:
        file.write(f"step,batch of {BATCH},batch of {RANKS * BATCH}\n")
        for step, pair in enumerate(zip(*columns)):
            file.write(f"{step},{pair[0]:.9g},{pair[1]:.9g}\n")


if __name__ == "__main__":
    main()
