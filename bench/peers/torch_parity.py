"""Trains a model of models.py in PyTorch, for a comparison of its losses with those of bench/parity:

    torch_parity.py --model lenet|resnet|gpt --steps K --batch B --lr R --init FILE.safetensors --data FILE.safetensors --losses FILE [--make]

--make first writes random weights and data, twelve batches, to the two files. Then run parity with the same arguments. All means the same
as there. Needs torch and safetensors.
"""

import argparse
import sys

sys.dont_write_bytecode = True  # keeps __pycache__ out of the source folder

import blocks
import models


def make(flags, model):
    shape = (12 * flags.batch, *models.SHAPES[flags.model])
    classes = models.CLASSES[flags.model]
    if flags.model in models.TOKENS:
        x, y = torch.randint(classes, (2, *shape))
    else:
        x, y = torch.randn(shape), torch.randint(classes, shape[:1])
    # A counter of batches is no parameter of pdp.
    save_file({name: each for name, each in model.state_dict().items() if not name.endswith("num_batches_tracked")}, flags.init)
    save_file({"train.x": x.contiguous(), "train.y": y.contiguous()}, flags.data)


def train(flags, model):
    model.load_state_dict(load_file(flags.init), strict=False)
    data = load_file(flags.data)
    batches = len(data["train.x"]) // flags.batch
    if batches == 0:
        sys.exit(f"{flags.data}: train.x has fewer than {flags.batch} samples")
    optimizer = torch.optim.SGD(model.parameters(), lr=flags.lr)
    with open(flags.losses, "w") as file:
        file.write("step,loss\n")
        for step in range(flags.steps):
            first = step % batches * flags.batch
            x, y = (data[name][first : first + flags.batch] for name in ("train.x", "train.y"))
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y.flatten())
            loss.backward()
            optimizer.step()
            file.write(f"{step},{loss.item():.9g}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("--model", type=blocks.one_of(models.MODELS), required=True, help=", ".join(models.MODELS))
    add("--steps", type=blocks.at_least(0), default=100, help="steps (default: 100)")
    add("--batch", type=blocks.at_least(1), default=32, help="samples in a step (default: 32)")
    add("--lr", type=float, default=0.01, help="learning rate (default: 0.01)")
    for name in ("init", "data", "losses"):
        add(f"--{name}", required=True, metavar="FILE")
    add("--make", action="store_true", help="write random weights and data first")
    flags = parser.parse_args()

    global torch, load_file, save_file
    import torch
    from safetensors.torch import load_file, save_file

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = models.MODELS[flags.model](torch)
    if flags.make:
        make(flags, model)
    train(flags, model)


if __name__ == "__main__":
    main()
