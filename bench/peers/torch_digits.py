"""Trains a classifier of handwritten digits with PyTorch's DistributedDataParallel on the CPU, in the usual way: with a TensorDataset, a
DistributedSampler, a DataLoader and Adam.

    torch_digits.py --data FOLDER [--world N] [--epochs E] [--batch B]

FOLDER holds MNIST's training files (train-images-idx3-ubyte and train-labels-idx1-ubyte, uncompressed). B is the number of samples in a
step of each rank. Each rank has one thread. Rank 0 prints one JSON object: train_s is the time of all epochs; loss and accuracy are those
of its share in the last epoch. run_digits starts this program.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True  # keeps __pycache__ out of the source folder

import blocks
import torch_ranks


def digits(folder):
    """Returns the images [samples, 1, 28, 28] as (byte / 255 - mean) / deviation, and their classes [samples]."""
    import numpy
    import torch

    images = numpy.fromfile(folder / "train-images-idx3-ubyte", numpy.uint8, offset=16).reshape(-1, 1, 28, 28)
    labels = numpy.fromfile(folder / "train-labels-idx1-ubyte", numpy.uint8, offset=8)
    return torch.utils.data.TensorDataset((torch.from_numpy(images).float() / 255 - 0.1307) / 0.3081, torch.from_numpy(labels).long())


def train(flags, rank):
    import torch

    torch.manual_seed(0)
    layers = [torch.nn.Flatten()]
    for inputs, outputs in ((784, 64), (64, 64), (64, 64)):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(64, 10))
    if flags.world > 1:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer, loss_of = torch.optim.Adam(model.parameters()), torch.nn.CrossEntropyLoss()
    samples = digits(flags.data)
    sampler = torch.utils.data.distributed.DistributedSampler(samples, num_replicas=flags.world, rank=rank)
    loader = torch.utils.data.DataLoader(samples, flags.batch, sampler=sampler)
    seconds = 0
    for epoch in range(flags.epochs):
        sampler.set_epoch(epoch)
        begin, total, correct, count = time.perf_counter(), 0, 0, 0
        for x, y in loader:
            optimizer.zero_grad()
            output = model(x)
            loss = loss_of(output, y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
            correct += (output.argmax(1) == y).sum().item()
            count += len(y)
        seconds += time.perf_counter() - begin
    return {"train_s": seconds, "loss": total / count, "accuracy": correct / count}


def report(flags, rank, found):
    if rank == 0:
        print(json.dumps({"world": flags.world, "epochs": flags.epochs, "batch": flags.batch, **found}), flush=True)


def main():
    parser = argparse.ArgumentParser(
        prog="torch_digits.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="FOLDER", help="folder with MNIST's training files, uncompressed")
    add("--world", type=blocks.at_least(1), default=2, metavar="N", help="ranks (default: 2)")
    add("--epochs", type=blocks.at_least(1), default=3, metavar="E", help="passes over the digits (default: 3)")
    add("--batch", type=blocks.at_least(1), default=128, metavar="B", help="samples of a step, on each rank (default: 128)")
    flags = parser.parse_args()
    torch_ranks.import_torch(threads=1)
    return 0 if torch_ranks.run(flags.world, lambda rank: report(flags, rank, train(flags, rank))) else 1


if __name__ == "__main__":
    sys.exit(main())
